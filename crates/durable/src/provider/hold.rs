//! Holding a fetch until an item can be fetched.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use duroxide::providers::ProviderError;
use tokio::time::sleep;
use wakeline_bus::BusMode;
use wakeline_store::Error;
use wakeline_wake::{Cause, CheckResult, Hold, HoldError, HoldRefusal, WaitKey};

use super::{
    empty_polls::{EmptyPolls, NextDue, WakeCounters},
    error::provider_error,
    options::LongPollConfig,
    shared_bus::SharedBus,
};
use crate::{
    bus::DOOR,
    store::{FIRST_PAUSE, LONGEST_PAUSE, fetch::FetchResult, is_transient},
};

/// The expiry of a lease is awaited for at least this long: with many activities running elsewhere,
/// one of their leases is always about to expire, and is then renewed.
const SHORTEST_EXPIRY: Duration = Duration::from_millis(50);

/// A dispatcher of orchestrations or activities that fetches.
pub(crate) struct Dispatcher<'a> {
    pub(crate) operation: &'static str,
    pub(crate) shared: &'a SharedBus,
    pub(crate) empty_polls: &'a EmptyPolls,
    pub(crate) long_poll: &'a LongPollConfig,
    pub(crate) keys: Vec<WaitKey>,
    /// How many of the keys, the last ones, get its recheck timer.
    pub(crate) recheck_keys: usize,
}

impl Dispatcher<'_> {
    fn wake_counters(&self) -> WakeCounters {
        WakeCounters {
            published: self.shared.engine.wake_count(DOOR),
            rechecks: self.shared.bus.recheck_requests(),
        }
    }

    /// Dispatchers of the same kind can fetch the same items; their last key is the same.
    fn kind(&self) -> String {
        self.keys.last().map_or_else(String::new, |key| {
            format!("{}\0{}", key.topic.encoded(), key.group.name())
        })
    }

    fn next_due(&self, due: Option<Duration>, expiry: Option<Duration>) -> NextDue {
        let due = due.map(|due| due + self.long_poll.timer_grace);
        let after = due
            .into_iter()
            .chain(expiry.map(|expiry| expiry.max(SHORTEST_EXPIRY)))
            .min();
        NextDue {
            at: after.and_then(|after| Instant::now().checked_add(after)),
        }
    }

    /// An item, or none after `poll`. Never none before: the runtime would not fetch again before its
    /// shortest interval has passed.
    pub(crate) async fn hold<T, F>(
        &self,
        poll: Duration,
        fetch: impl Fn() -> F,
    ) -> Result<Option<T>, ProviderError>
    where
        F: Future<Output = Result<FetchResult<T>, Error>>,
    {
        if poll.is_zero() || !self.long_poll.enabled {
            return match fetch().await {
                Ok(FetchResult::Item(item)) => Ok(Some(item)),
                Ok(FetchResult::Nothing { .. }) => Ok(None),
                Err(error) => Err(provider_error(self.operation, &error)),
            };
        }
        let began = Instant::now();
        let left = || poll.saturating_sub(began.elapsed());
        let kind = self.kind();
        let hold = Hold {
            engine: &self.shared.engine,
            keys: &self.keys,
            recheck_keys: &self.keys[self.keys.len().saturating_sub(self.recheck_keys)..],
            time: poll,
        };
        match hold
            .until(|cause| self.check(&kind, cause, left, &fetch))
            .await
        {
            Ok(end) => Ok(end.value),
            Err(HoldError::Refused(HoldRefusal::Draining)) => Ok(None),
            Err(HoldError::Refused(refused)) => Err(ProviderError::retryable(
                self.operation,
                refused.to_string(),
            )),
            Err(HoldError::Check(error)) => Err(provider_error(self.operation, &error)),
        }
    }

    /// Repeats the fetch during an outage: after an error the runtime would wait longer.
    async fn check<T, F>(
        &self,
        kind: &str,
        cause: Option<Cause>,
        left: impl Fn() -> Duration,
        fetch: &impl Fn() -> F,
    ) -> Result<CheckResult<T>, Error>
    where
        F: Future<Output = Result<FetchResult<T>, Error>>,
    {
        let mut counters = self.wake_counters();
        // Only at first: a dispatcher that was woken has a reason to ask the database.
        if cause.is_none()
            && self.shared.bus.mode() == BusMode::Live
            && let Some(next) = self.empty_polls.still_empty(kind, counters)
        {
            return Ok(CheckResult::Nothing {
                recheck_after: next.after(),
            });
        }
        let mut pause = FIRST_PAUSE;
        loop {
            match fetch().await {
                Ok(FetchResult::Item(item)) => return Ok(CheckResult::Found(item)),
                Ok(FetchResult::Nothing { due, expiry }) => {
                    let next = self.next_due(due, expiry);
                    self.empty_polls.remember(kind, counters, next);
                    return Ok(CheckResult::Nothing {
                        recheck_after: next.after(),
                    });
                }
                Err(error) if is_transient(&error) && !left().is_zero() => {
                    tracing::debug!(%error, "the fetch failed; trying again");
                    sleep(pause.min(left())).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    counters = self.wake_counters();
                }
                Err(error) => return Err(error),
            }
        }
    }
}
