//! Reads the messages that the nodes send.

use serde_json::{Value, json};
use wakeline_bus::Options;
use wakeline_store::postgres::ListenConnection;

use crate::node::{connector, must};

pub(crate) struct ChannelReader(ListenConnection);

impl ChannelReader {
    pub(crate) async fn listen(url: &str) -> Self {
        let line = connector(url).listen().await.unwrap();
        let listen = format!("LISTEN {}", Options::default().channel);
        line.client.batch_execute(&listen).await.unwrap();
        Self(line)
    }

    /// The next message that is neither a canary nor the answer to a new node's greeting, which
    /// makes that node recheck everything and may come late.
    pub(crate) async fn message(&mut self) -> (String, Value) {
        loop {
            let (text, value) = self.next().await;
            if value["canary"].is_null() && value["doors"] != json!(["*"]) {
                return (text, value);
            }
        }
    }

    /// Returns after so many canaries, of any node.
    pub(crate) async fn canaries(&mut self, count: usize) {
        for _ in 0..count {
            while self.next().await.1["canary"].is_null() {}
        }
    }

    /// Drops the messages that have come so far.
    pub(crate) fn skip(&mut self) {
        while self.0.notifications.try_recv().is_ok() {}
    }

    async fn next(&mut self) -> (String, Value) {
        let message = must("a message", self.0.notifications.recv()).await;
        let text = message.expect("the connection holds").payload().to_owned();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }
}
