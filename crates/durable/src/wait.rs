//! Waiting for an orchestration's end without asking for it again and again, and for the last wakes
//! to be sent.

use std::{sync::Arc, time::Duration};

use duroxide::{Client, ClientError, OrchestrationStatus};
use tokio::time::Instant;
use wakeline_wake::{Lane, Outcome, Place, Settled};

use crate::provider::PostgresProvider;

/// How long a question may take even if the caller has no time: who does not wait asks, too.
const ONE_QUESTION: Duration = Duration::from_secs(1);

impl PostgresProvider {
    /// Waits until the other processes have been told of all that this one has written, at most
    /// `patience`. For a process that is about to end: what it does not tell, the others find by
    /// their fallback.
    pub async fn flush(&self, patience: Duration) {
        self.inner.store.hub.bus.flush(patience).await;
    }

    /// The orchestration's result as soon as it has one, or [`ClientError::Timeout`]. What
    /// `Client::wait_for_orchestration` does by polling: here the caller is woken when the
    /// orchestration ends, in whatever process it does. An instance that does not exist yet is
    /// waited for.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let client = Client::new(Arc::new(self.clone()));
        let store = &self.inner.store;
        let place = Place::new(store.topics.instance(instance), Lane::default());
        let began = Instant::now();
        let refused = |refused: wakeline_wake::Refused| ClientError::InvalidInput {
            message: refused.to_string(),
        };
        let engine = &store.hub.engine;
        let mut waiter = engine.register(&[place], timeout).map_err(refused)?;
        loop {
            // In an outage the question would last for longer than the caller.
            let left = timeout.saturating_sub(began.elapsed()).max(ONE_QUESTION);
            let asked = client.get_orchestration_status(instance);
            let asked = tokio::time::timeout(left, asked).await;
            let status = asked.map_err(|_| ClientError::Timeout)??;
            if matches!(
                status,
                OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. }
            ) {
                waiter.settle(Settled::Found);
                return Ok(status);
            }
            waiter.settle(Settled::Nothing);
            match waiter.park().await {
                Outcome::Woken { .. } if began.elapsed() < timeout => {}
                _ => return Err(ClientError::Timeout),
            }
        }
    }
}
