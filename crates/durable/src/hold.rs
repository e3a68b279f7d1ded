//! Holding a fetch until there is something: register, look, park, look again.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use duroxide::providers::ProviderError;
use tokio::time::sleep;
use wakeline_bus::Rung;
use wakeline_store::Error;
use wakeline_wake::{Outcome, Place, Settled};

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
    pub(crate) places: Vec<Place>,
    /// How many of these, the last ones, its alarm is set at.
    pub(crate) alarms: usize,
}

impl Dispatcher<'_> {
    fn said(&self) -> Said {
        Said {
            published: self.hub.engine.published(DOOR),
            asked: self.hub.bus.asked(),
        }
    }

    /// Those that stand at the same places may take the same.
    fn name(&self) -> String {
        let alarm = self.places.last();
        alarm.map_or_else(String::new, |place| {
            format!("{}\0{}", place.topic.encoded(), place.lane.name())
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
        let name = self.name();
        let mut pause = FIRST_PAUSE;
        let mut waiter = self
            .hub
            .engine
            .register(&self.places, poll)
            .map_err(|refused| ProviderError::retryable(self.operation, refused.to_string()))?;
        let mut is_first = true;
        loop {
            let said = self.said();
            // Only on entry: whoever was woken has a reason to look.
            let known = (is_first && self.hub.bus.rung() == Rung::Live)
                .then(|| self.quiet.still(&name, said))
                .flatten();
            is_first = false;
            let next = match known {
                Some(next) => next,
                None => match look().await {
                    Ok(Taken::Something(something)) => {
                        waiter.settle(Settled::Found);
                        return Ok(Some(something));
                    }
                    Ok(Taken::Nothing { due, lapse }) => {
                        waiter.settle(Settled::Nothing);
                        pause = FIRST_PAUSE;
                        let next = self.next(due, lapse);
                        self.quiet.remember(&name, said, next);
                        next
                    }
                    Err(error) if is_transient(&error) && began.elapsed() < poll => {
                        // Ridden out here: the runtime would wait longer after an error.
                        tracing::debug!(%error, "nothing can be fetched; trying again");
                        sleep(pause.min(poll.saturating_sub(began.elapsed()))).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        continue;
                    }
                    Err(error) => return Err(explain(self.operation, &error)),
                },
            };
            if let Some(after) = next.after() {
                for place in self.places.iter().rev().take(self.alarms) {
                    self.hub.engine.alarm(place, after);
                }
            }
            match waiter.park().await {
                Outcome::Woken { .. } => {}
                Outcome::Deadline | Outcome::Drain => return Ok(None),
            }
        }
    }
}
