//! Reads what is saved, in order, once per node, and tells the streams.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Mutex as Turn, time::sleep};
use wakeline_store::Error;
use wakeline_wake::{Cause, CheckResult, Engine, Hold, HoldEnd, HoldError, HoldRefusal};

use super::Hub;
use crate::{
    store::{Position, Store},
    topic,
};

/// Facts that are looked at together.
const BATCH: usize = 1_000;
/// So many settled positions behind, each stream looks for itself: that costs less than looking at
/// each fact.
const TOO_FAR: i64 = 100_000;
/// How long to wait for saves that began before others that have ended: the first time, and at most.
const UNSETTLED: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How often it looks while it may not wait.
const REFUSED: Duration = Duration::from_millis(500);
/// A follower waits as long as there are streams.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// See the module. Runs only while there are streams.
#[derive(Debug)]
pub struct Follower {
    hub: Arc<Hub>,
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    /// Where it is; `None` while it does not run.
    at: Mutex<Option<Position>>,
    /// Only one starts it.
    starting: Turn<()>,
}

impl Follower {
    #[must_use]
    pub fn new(hub: Arc<Hub>, store: Arc<dyn Store>, engine: Arc<Engine>) -> Arc<Self> {
        Arc::new(Self {
            hub,
            store,
            engine,
            at: Mutex::new(None),
            starting: Turn::new(()),
        })
    }

    /// After this, whatever is settled later is told. Called by a stream that has registered, before
    /// it looks into the store: so nothing falls between the two.
    pub async fn follows(self: &Arc<Self>) -> Result<(), Error> {
        if self.at().is_some() {
            return Ok(());
        }
        let _turn = self.starting.lock().await;
        if self.at().is_some() {
            return Ok(());
        }
        let horizon = self.store.horizon().await?;
        self.set(Some(horizon.settled));
        tokio::spawn(self.clone().keep_following());
        Ok(())
    }

    /// After a panic from where it was: streams believe that somebody follows.
    async fn keep_following(self: Arc<Self>) {
        while let Err(error) = tokio::spawn(self.clone().follow()).await {
            tracing::error!(%error, "reading the feeds' log has panicked; beginning again");
            sleep(OUTAGE.1).await;
        }
    }

    /// Where it is, while there are streams.
    #[must_use]
    pub fn at(&self) -> Option<Position> {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: Option<Position>) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    async fn follow(self: Arc<Self>) {
        let key = [topic::key(topic::log())];
        let unsettled = Mutex::new(UNSETTLED.0);
        loop {
            let hold = Hold {
                engine: &self.engine,
                keys: &key,
                recheck_keys: &key,
                time: FOREVER,
            };
            let check =
                |cause: Option<Cause>| self.check(cause.unwrap_or(Cause::Notify), &unsettled);
            match hold.until(check).await {
                Ok(HoldEnd {
                    value: Some(NoStreams),
                    ..
                }) => return,
                Ok(_) => {}
                Err(HoldError::Refused(HoldRefusal::Draining)) => return self.set(None),
                // Too many wait: nothing wakes it, so it looks from time to time.
                Err(_) => {
                    let checked = self.check(Cause::Fallback, &unsettled).await;
                    if let Ok(CheckResult::Found(NoStreams)) = checked {
                        return;
                    }
                    sleep(REFUSED).await;
                }
            }
        }
    }

    /// Reads on to the end of what is settled. An outage is ridden out here.
    async fn check(
        &self,
        cause: Cause,
        unsettled: &Mutex<Duration>,
    ) -> Result<CheckResult<NoStreams>, Infallible> {
        let mut outage = OUTAGE.0;
        loop {
            if self.has_nobody() {
                return Ok(CheckResult::Found(NoStreams));
            }
            let pause = || unsettled.lock().unwrap_or_else(PoisonError::into_inner);
            match self.read_on(cause).await {
                Ok(Read::More) => {}
                Ok(Read::All) => {
                    *pause() = UNSETTLED.0;
                    return Ok(CheckResult::Handled {
                        recheck_after: None,
                    });
                }
                Ok(Read::Unsettled) => {
                    let mut pause = pause();
                    let recheck_after = Some(*pause);
                    *pause = (*pause * 2).min(UNSETTLED.1);
                    return Ok(CheckResult::Handled { recheck_after });
                }
                Err(error) => {
                    tracing::warn!(%error, "the feeds' log cannot be read; trying again");
                    sleep(outage).await;
                    outage = (outage * 2).min(OUTAGE.1);
                }
            }
        }
    }

    /// `cause`: why it looks, which is why the streams do.
    async fn read_on(&self, cause: Cause) -> Result<Read, Error> {
        let Some(at) = self.at() else {
            return Ok(Read::All);
        };
        let log = self.store.log(at, BATCH).await?;
        if log.last - at > TOO_FAR {
            // Only over what is settled: while a transaction holds the horizon up, there is nothing
            // to look at, however much is behind it.
            let settled = self.store.horizon().await?.settled;
            if settled - at > TOO_FAR {
                self.hub.skip(at, settled, cause);
                self.set(Some(settled));
                return Ok(Read::More);
            }
        }
        self.hub.matched(&log, cause).await?;
        self.set(Some(log.to));
        Ok(if log.entries.len() >= BATCH {
            Read::More
        } else if log.to < log.last {
            Read::Unsettled
        } else {
            Read::All
        })
    }

    /// Ends it when no stream is left. Under the lock that a stream asks through after it has
    /// registered: so it is either seen here, or finds that nobody follows.
    fn has_nobody(&self) -> bool {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if self.hub.streams() == 0 {
            *at = None;
        }
        at.is_none()
    }
}

/// What ends the follower.
struct NoStreams;

enum Read {
    More,
    All,
    /// There are facts beyond the horizon.
    Unsettled,
}
