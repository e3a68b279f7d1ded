//! PostgreSQL's `LISTEN` and `NOTIFY`: one channel, one listening connection per process.

use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{self, BoxStream, StreamExt},
};
use tokio::sync::Mutex;
use tokio_postgres::{Client, types::Type};
use wakeline_store::postgres::Connector;

use crate::transport::{Transport, TransportError};

/// PostgreSQL refuses a payload of 8,000 bytes or more.
const MAX_PAYLOAD: usize = 7_999;

#[derive(Debug)]
pub(crate) struct Notifications {
    connector: Connector,
    sender: Mutex<Option<Client>>,
    channel: String,
}

impl Notifications {
    pub(crate) fn new(connector: Connector, channel: &str) -> Self {
        Self {
            connector,
            sender: Mutex::new(None),
            channel: channel.to_owned(),
        }
    }
}

impl Transport for Notifications {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn hint_when_silent(&self) -> &'static str {
        "Is a pooler in transaction mode (PgBouncer) in front of PostgreSQL? LISTEN needs a direct \
         connection or session mode"
    }

    fn max_bytes(&self) -> usize {
        MAX_PAYLOAD
    }

    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, String>, TransportError>> {
        async move {
            let line = self
                .connector
                .listen()
                .await
                .map_err(|error| TransportError(error.to_string()))?;
            let channel = self.channel.replace('"', "\"\"");
            line.client
                .batch_execute(&format!("LISTEN \"{channel}\""))
                .await
                .map_err(|error| TransportError(error.to_string()))?;
            // The stream keeps the client: dropping it would close the connection.
            let payloads = stream::unfold(line, |mut line| async move {
                let notification = line.notifications.recv().await?;
                Some((notification.payload().to_owned(), line))
            });
            Ok(payloads.boxed())
        }
        .boxed()
    }

    fn send(&self, messages: Vec<String>) -> BoxFuture<'_, Result<(), TransportError>> {
        async move {
            let mut sender = self.sender.lock().await;
            let client = match sender.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => self
                    .connector
                    .connect()
                    .await
                    .map_err(|error| TransportError(error.to_string()))?,
            };
            client
                .query_typed(
                    "SELECT pg_notify($1, payload) FROM unnest($2) AS payload",
                    &[(&self.channel, Type::TEXT), (&messages, Type::TEXT_ARRAY)],
                )
                .await
                .map_err(|error| TransportError(error.to_string()))?;
            // Only a connection that worked is kept.
            *sender = Some(client);
            Ok(())
        }
        .boxed()
    }
}
