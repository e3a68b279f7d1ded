//! Redis publish/subscribe: one subscription per process, publishes pipelined.

use std::time::Duration;

use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{BoxStream, StreamExt},
};
use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use tokio::{sync::Mutex, time::timeout};

use crate::transport::{Transport, TransportError};

/// Redis itself takes far longer ones.
const MAX_MESSAGE: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct PubSub {
    client: Client,
    sender: Mutex<Option<MultiplexedConnection>>,
    channel: String,
}

impl PubSub {
    pub(crate) fn new(url: &str, channel: &str) -> Result<Self, TransportError> {
        let client = Client::open(url).map_err(down)?;
        Ok(Self {
            client,
            sender: Mutex::new(None),
            channel: channel.to_owned(),
        })
    }
}

fn down(error: redis::RedisError) -> TransportError {
    TransportError(error.to_string())
}

impl Transport for PubSub {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn hint_when_silent(&self) -> &'static str {
        "Is Redis overloaded, or is there a proxy in front of it that does not know SUBSCRIBE?"
    }

    fn max_bytes(&self) -> usize {
        MAX_MESSAGE
    }

    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, String>, TransportError>> {
        async move {
            let connecting = async {
                let mut subscription = self.client.get_async_pubsub().await?;
                subscription.subscribe(&self.channel).await?;
                Ok(subscription)
            };
            let subscription = timeout(CONNECT_TIMEOUT, connecting)
                .await
                .map_err(|_| TransportError("no answer within the connect timeout".into()))?
                .map_err(down)?;
            let payloads = subscription
                .into_on_message()
                .filter_map(|message| async move { message.get_payload::<String>().ok() });
            Ok(payloads.boxed())
        }
        .boxed()
    }

    fn send(&self, messages: Vec<String>) -> BoxFuture<'_, Result<(), TransportError>> {
        async move {
            let mut sender = self.sender.lock().await;
            let mut connection = match sender.take() {
                Some(connection) => connection,
                None => {
                    let config = AsyncConnectionConfig::new()
                        .set_connection_timeout(Some(CONNECT_TIMEOUT))
                        .set_response_timeout(Some(SEND_TIMEOUT));
                    self.client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await
                        .map_err(down)?
                }
            };
            let mut pipeline = redis::pipe();
            for message in messages {
                pipeline.publish(&self.channel, message).ignore();
            }
            pipeline.exec_async(&mut connection).await.map_err(down)?;
            // Only a connection that worked is kept.
            *sender = Some(connection);
            Ok(())
        }
        .boxed()
    }
}
