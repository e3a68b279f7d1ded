//! Waiting for an orchestration's end without polling, and for the last wakes to be sent.

use std::{sync::Arc, time::Duration};

use duroxide::{Client, ClientError, OrchestrationStatus};
use tokio::time::Instant;
use wakeline_wake::{CheckResult, Hold, HoldError, HoldRefusal, WaitGroup, WaitKey};

use super::PostgresProvider;
use crate::bus;

/// How long one query may take even if the caller's timeout is shorter, or zero.
const ONE_QUERY: Duration = Duration::from_secs(1);

impl PostgresProvider {
    /// Waits at most `timeout` until all writes of this process have ended and their wakes have been
    /// sent. Call it before the process ends: a wake that was not sent is found by the other
    /// processes only at their next fallback.
    pub async fn flush(&self, timeout: Duration) {
        bus::flush(&self.inner.shared.bus, timeout).await;
    }

    /// Returns the status of an orchestration as soon as it has ended, in any process, or
    /// [`ClientError::Timeout`] after `timeout`. It is woken, where
    /// `Client::wait_for_orchestration` polls. It also waits for an instance that does not exist
    /// yet. Dropping the future ends the wait and nothing else.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let client = Client::new(Arc::new(self.clone()));
        let inner = &self.inner;
        let key = [WaitKey::new(
            inner.topics.instance(instance),
            WaitGroup::default(),
        )];
        let began = Instant::now();
        let hold = Hold {
            engine: &inner.shared.engine,
            keys: &key,
            recheck_keys: &[],
            time: timeout,
        };
        let ended = hold.until(async |_| {
            // In an outage the query would outlast the caller's timeout.
            let left = timeout.saturating_sub(began.elapsed());
            let status = client.get_orchestration_status(instance);
            let status = tokio::time::timeout(left.max(ONE_QUERY), status).await;
            let status = status.map_err(|_| ClientError::Timeout)??;
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
