//! A client with a WebSocket.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tungstenite::Message;
use wakeline_testkit::soon;

pub(crate) struct WebSocket(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl WebSocket {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let mut websocket = Self::raw(address, "").await?;
        let open = websocket.hear().await?.context("no open packet")?;
        anyhow::ensure!(open.starts_with(r#"0{"sid":"#), "{open}");
        Ok(websocket)
    }

    /// Begins the upgrade of a polling session to a WebSocket. It is done
    /// when the client sends a `5`.
    pub(crate) async fn probe(address: SocketAddr, sid: String) -> Result<Self> {
        let mut websocket = Self::raw(address, &format!("&sid={sid}")).await?;
        websocket.say("2probe").await?;
        let answer = websocket.hear().await?;
        anyhow::ensure!(answer.as_deref() == Some("3probe"), "{answer:?}");
        Ok(websocket)
    }

    pub(crate) async fn raw(address: SocketAddr, more: &str) -> Result<Self> {
        let url = format!("ws://{address}/socket.io/?EIO=4&transport=websocket{more}");
        let (stream, _) = soon("a WebSocket", connect_async(url)).await?;
        Ok(Self(stream))
    }

    pub(crate) async fn connect(&mut self, token: &str) -> Result<String> {
        self.say(&format!(r#"40{{"token":"{token}"}}"#)).await?;
        self.hear().await?.context("it ended")
    }

    pub(crate) async fn say(&mut self, packet: &str) -> Result<()> {
        Ok(self.0.send(Message::text(packet)).await?)
    }

    /// The next packet that is no ping; `None` when the connection has ended.
    pub(crate) async fn hear(&mut self) -> Result<Option<String>> {
        loop {
            match soon("a packet", self.0.next()).await {
                Some(Ok(Message::Text(packet))) if packet == "2" => {
                    // The next message shows whether the connection has ended.
                    let _ = self.say("3").await;
                }
                Some(Ok(Message::Text(packet))) => return Ok(Some(packet.to_string())),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(None),
                Some(Ok(other)) => anyhow::bail!("{other:?}"),
            }
        }
    }

    /// Sends a packet that is answered, so that every packet before it has been handled.
    pub(crate) async fn receive_all(&mut self) -> Result<()> {
        self.say(r#"4277["room_join",{"room_id":"settled"}]"#)
            .await?;
        loop {
            let packet = self.hear().await?.context("it ended")?;
            if packet.starts_with("4377") {
                return Ok(());
            }
        }
    }
}
