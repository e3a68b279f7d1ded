//! Reads the log of new facts, once per node, and delivers them to the streams.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Mutex as AsyncMutex, time::sleep};
use wakeline_store::Error;
use wakeline_wake::{Cause, CheckResult, Engine, Hold, HoldEnd, HoldError, HoldRefusal};

use super::Hub;
use crate::{
    store::{Seq, Store},
    topic,
};

/// Facts that are read together.
const BATCH: usize = 1_000;
/// If the follower is so many settled seqs behind, each stream reads for itself: that costs less
/// than looking up each fact.
const TOO_FAR: i64 = 100_000;
/// The pauses while saves are under way that began before others that have ended: first and
/// longest.
const UNSETTLED: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The pause between reads while the engine takes no more waiters.
const REFUSED: Duration = Duration::from_millis(500);
/// A follower waits as long as there are streams.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// See the module. Runs only while there are streams.
#[derive(Debug)]
pub struct Follower {
    hub: Arc<Hub>,
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    /// Up to where it has read; `None` while it does not run.
    at: Mutex<Option<Seq>>,
    /// Held by the caller that starts it.
    starting: AsyncMutex<()>,
}

impl Follower {
    #[must_use]
    pub fn new(hub: Arc<Hub>, store: Arc<dyn Store>, engine: Arc<Engine>) -> Arc<Self> {
        Arc::new(Self {
            hub,
            store,
            engine,
            at: Mutex::new(None),
            starting: AsyncMutex::new(()),
        })
    }

    /// After this call, facts that are settled later are delivered. A stream calls it after it has
    /// registered and before it reads the store, so no fact falls between the two.
    pub async fn ensure_running(self: &Arc<Self>) -> Result<(), Error> {
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

    /// After a panic it goes on where it was, because the streams rely on it.
    async fn keep_following(self: Arc<Self>) {
        while let Err(error) = tokio::spawn(self.clone().follow()).await {
            tracing::error!(%error, "reading the feeds' log has panicked; beginning again");
            sleep(OUTAGE.1).await;
        }
    }

    /// Up to where it has read, while there are streams.
    #[must_use]
    pub fn at(&self) -> Option<Seq> {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: Option<Seq>) {
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
                // The engine takes no more waiters, so nothing wakes it: it reads from time to
                // time.
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

    /// Reads on up to the settled horizon. During an outage it tries again until that works.
    async fn check(
        &self,
        cause: Cause,
        unsettled: &Mutex<Duration>,
    ) -> Result<CheckResult<NoStreams>, Infallible> {
        let mut outage = OUTAGE.0;
        loop {
            if self.stop_if_no_streams() {
                return Ok(CheckResult::Found(NoStreams));
            }
            let pause = || unsettled.lock().unwrap_or_else(PoisonError::into_inner);
            match self.read_on(cause).await {
                Ok(LogProgress::More) => {}
                Ok(LogProgress::CaughtUp) => {
                    *pause() = UNSETTLED.0;
                    return Ok(CheckResult::Handled {
                        recheck_after: None,
                    });
                }
                Ok(LogProgress::Unsettled) => {
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

    /// `cause`: why it reads, which is why the streams will.
    async fn read_on(&self, cause: Cause) -> Result<LogProgress, Error> {
        let Some(at) = self.at() else {
            return Ok(LogProgress::CaughtUp);
        };
        let log = self.store.log(at, BATCH).await?;
        if log.last - at > TOO_FAR {
            // Only up to the settled horizon: while an open transaction holds the horizon up, there
            // is nothing to read, however many seqs were drawn.
            let settled = self.store.horizon().await?.settled;
            if settled - at > TOO_FAR {
                self.hub.skip(at, settled, cause);
                self.set(Some(settled));
                return Ok(LogProgress::More);
            }
        }
        self.hub.matched(&log, cause).await?;
        self.set(Some(log.to));
        Ok(if log.entries.len() >= BATCH {
            LogProgress::More
        } else if log.to < log.last {
            LogProgress::Unsettled
        } else {
            LogProgress::CaughtUp
        })
    }

    /// Whether it ends because no stream is left. A stream registers first and then takes this lock
    /// in `ensure_running`: so either it is counted here, or it finds that the follower does not
    /// run.
    fn stop_if_no_streams(&self) -> bool {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if self.hub.streams() == 0 {
            *at = None;
        }
        at.is_none()
    }
}

/// What ends the follower.
struct NoStreams;

enum LogProgress {
    More,
    CaughtUp,
    /// There are facts beyond the horizon.
    Unsettled,
}
