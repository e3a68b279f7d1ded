//! Waiting for an orchestration's end without asking for it again and again, and for the last wakes
//! to be sent.

use std::{sync::Arc, time::Duration};

use duroxide::{Client, ClientError, OrchestrationStatus};
use tokio::time::Instant;
use wakeline_wake::{CheckResult, Hold, HoldError, HoldRefusal, WaitGroup, WaitKey};

use crate::provider::PostgresProvider;

/// How long a question may take even if the caller has no time: who does not wait asks, too.
const ONE_QUESTION: Duration = Duration::from_secs(1);

impl PostgresProvider {
    /// Waits until the other processes have been told of all that this one has written, at most
    /// `patience`. For a process that is about to end: what it does not tell, the others find by
    /// their fallback.
    pub async fn flush(&self, patience: Duration) {
        let began = Instant::now();
        let bus = &self.inner.store.hub.bus;
        bus.finish_writes(patience).await;
        bus.flush(patience.saturating_sub(began.elapsed())).await;
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
        let key = [WaitKey::new(
            store.topics.instance(instance),
            WaitGroup::default(),
        )];
        let began = Instant::now();
        let hold = Hold {
            engine: &store.hub.engine,
            keys: &key,
            recheck_keys: &[],
            time: timeout,
        };
        let ended = hold.until(async |_| {
            // In an outage the question would last for longer than the caller.
            let left = timeout.saturating_sub(began.elapsed());
            let asked = client.get_orchestration_status(instance);
            let asked = tokio::time::timeout(left.max(ONE_QUESTION), asked).await;
            let status = asked.map_err(|_| ClientError::Timeout)??;
            Ok(match status {
                OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. } => {
                    CheckResult::Found(status)
                }
                _ => CheckResult::Nothing {
                    recheck_after: None,
                },
            })
        });
        match ended.await {
            Ok(end) => end.value.ok_or(ClientError::Timeout),
            Err(HoldError::Check(error)) => Err(error),
            Err(HoldError::Refused(HoldRefusal::Draining)) => Err(ClientError::Timeout),
            Err(HoldError::Refused(refused)) => Err(ClientError::InvalidInput {
                message: refused.to_string(),
            }),
        }
    }
}
