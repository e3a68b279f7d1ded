//! Holding a fetch until there is something.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use duroxide::providers::ProviderError;
use tokio::time::sleep;
use wakeline_bus::BusMode;
use wakeline_store::Error;
use wakeline_wake::{Cause, CheckResult, Hold, HoldError, HoldRefusal, WaitKey};

use crate::{
    error::{explain, is_transient},
    hub::Hub,
    options::LongPollConfig,
    quiet::{Next, Quiet, Said},
    store::{FIRST_PAUSE, LONGEST_PAUSE, take::Taken},
    topic::DOOR,
};

/// Leases that end are looked after this often at most: with many activities running elsewhere one
/// of their leases is always about to end, and is prolonged.
const LAPSES: Duration = Duration::from_millis(50);

/// One kind of dispatcher.
pub(crate) struct Dispatcher<'a> {
    pub(crate) operation: &'static str,
    pub(crate) hub: &'a Hub,
    pub(crate) quiet: &'a Quiet,
    pub(crate) long_poll: &'a LongPollConfig,
    /// Where it stands.
    pub(crate) keys: Vec<WaitKey>,
    /// How many of these, the last ones, its alarm is set at.
    pub(crate) alarms: usize,
}

impl Dispatcher<'_> {
    fn said(&self) -> Said {
        Said {
            published: self.hub.engine.published(DOOR),
            asked: self.hub.bus.recheck_requests(),
        }
    }

    /// Those that stand at the same places may take the same.
    fn name(&self) -> String {
        let recheck_after = self.keys.last();
        recheck_after.map_or_else(String::new, |key| {
            format!("{}\0{}", key.topic.encoded(), key.group.name())
        })
    }

    fn next(&self, due: Option<Duration>, lapse: Option<Duration>) -> Next {
        let due = due.map(|due| due + self.long_poll.timer_grace);
        let after = due
            .into_iter()
            .chain(lapse.map(|lapse| lapse.max(LAPSES)))
            .min();
        Next {
            at: after.and_then(|after| Instant::now().checked_add(after)),
        }
    }

    /// Something, or nothing after `poll`. Never nothing before: the runtime would be deaf for the
    /// rest of its shortest interval.
    pub(crate) async fn hold<T, F>(
        &self,
        poll: Duration,
        look: impl Fn() -> F,
    ) -> Result<Option<T>, ProviderError>
    where
        F: Future<Output = Result<Taken<T>, Error>>,
    {
        if poll.is_zero() || !self.long_poll.enabled {
            return match look().await {
                Ok(Taken::Something(something)) => Ok(Some(something)),
                Ok(Taken::Nothing { .. }) => Ok(None),
                Err(error) => Err(explain(self.operation, &error)),
            };
        }
        let began = Instant::now();
        let left = || poll.saturating_sub(began.elapsed());
        let name = self.name();
        let hold = Hold {
            engine: &self.hub.engine,
            keys: &self.keys,
            recheck_keys: &self.keys[self.keys.len().saturating_sub(self.alarms)..],
            time: poll,
        };
        match hold
            .until(|cause| self.check(&name, cause, left, &look))
            .await
        {
            Ok(end) => Ok(end.value),
            Err(HoldError::Refused(HoldRefusal::Draining)) => Ok(None),
            Err(HoldError::Refused(refused)) => Err(ProviderError::retryable(
                self.operation,
                refused.to_string(),
            )),
            Err(HoldError::Check(error)) => Err(explain(self.operation, &error)),
        }
    }

    /// An outage is ridden out here: the runtime would wait longer after an error.
    async fn check<T, F>(
        &self,
        name: &str,
        cause: Option<Cause>,
        left: impl Fn() -> Duration,
        look: &impl Fn() -> F,
    ) -> Result<CheckResult<T>, Error>
    where
        F: Future<Output = Result<Taken<T>, Error>>,
    {
        let mut said = self.said();
        // Only on entry: a dispatcher that was woken has a reason to look.
        if cause.is_none()
            && self.hub.bus.mode() == BusMode::Live
            && let Some(next) = self.quiet.still(name, said)
        {
            return Ok(CheckResult::Nothing {
                recheck_after: next.after(),
            });
        }
        let mut pause = FIRST_PAUSE;
        loop {
            match look().await {
                Ok(Taken::Something(something)) => return Ok(CheckResult::Found(something)),
                Ok(Taken::Nothing { due, lapse }) => {
                    let next = self.next(due, lapse);
                    self.quiet.remember(name, said, next);
                    return Ok(CheckResult::Nothing {
                        recheck_after: next.after(),
                    });
                }
                Err(error) if is_transient(&error) && !left().is_zero() => {
                    tracing::debug!(%error, "nothing can be fetched; trying again");
                    sleep(pause.min(left())).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    said = self.said();
                }
                Err(error) => return Err(error),
            }
        }
    }
}
