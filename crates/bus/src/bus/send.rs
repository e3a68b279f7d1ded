//! The send loop: takes what is in the outbox and sends it to the other processes.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{Bus, Remote, backoff::Backoff};
use crate::{message, transport::TransportError};

/// Messages per send. Wakes that do not fit become "everything of the door".
const MAX_MESSAGES: usize = 32;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

impl Bus {
    /// Runs for ever. What cannot be sent becomes "everything of the door" with the next attempt.
    pub(super) async fn send_loop(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        let mut backoff = Backoff::new();
        loop {
            let batch = remote.outbox.take().await;
            let messages = message::pack(
                remote.node,
                &batch.wakes(),
                &batch.texts,
                batch.doors.clone(),
                remote.transport.max_bytes(),
                MAX_MESSAGES,
            );
            let count = messages.len() as u64;
            match remote.send(messages).await {
                Ok(()) => {
                    backoff.reset();
                    remote.outbox.sent();
                    metrics::counter!("wakeline_bus_sent_total").increment(count);
                }
                Err(error) => {
                    tracing::debug!(%error, "wakes could not be sent; trying again");
                    remote.outbox.put_doors(batch.all_doors());
                    backoff.pause().await;
                }
            }
        }
    }
}

impl Remote {
    pub(super) async fn send(&self, messages: Vec<String>) -> Result<(), TransportError> {
        timeout(SEND_TIMEOUT, self.transport.send(messages))
            .await
            .unwrap_or_else(|_| Err(TransportError("no answer to a message within 5 s".into())))
    }
}
