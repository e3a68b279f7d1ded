//! A stream: backfills its feed to the end, says SYNC, and follows live.
//!
//! One query cycle at a time, by being one loop. It is asked for its next event when the connection
//! can take one, so a slow reader holds up only itself, and what waits for it is its waitlist.

mod standing;
mod telemetry;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    task::yield_now,
    time::{Instant, sleep, timeout_at},
};
use wakeline_store::Error;
use wakeline_wake::{Cause, Engine, HoldRefusal, ParkOutcome, Waiter, WakeResult};

use crate::{
    bookmark::Bookmark,
    fact::Reference,
    feed::Feed,
    hub::{Follower, Hub, Registration},
    pages::{Page, Pages},
    query::Query,
    store::{Position, Store},
    topic,
};
pub use telemetry::{Ending, Telemetry};

/// The waits between attempts while the database is away.
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Clone, Debug)]
pub struct Limits {
    /// Pages of one cycle; then others have a turn.
    pub max_initial_pages: usize,
    /// Facts that may wait for a stream; past it the stream is closed.
    pub waitlist_cap: usize,
    /// After so many pages a stream lets others go first, for `page_delay`. 0: never.
    pub page_delay_every: usize,
    pub page_delay: Duration,
    /// How long after a live page SYNC is said. Jinaga's client forgets a page whose facts it could
    /// not load as soon as SYNC comes: so a server that dies in between has not said it yet.
    pub sync_delay: Duration,
    /// How often a blank line is sent when nothing else is.
    pub heartbeat: Duration,
    /// How long a reader may leave a frame unread; then its stream ends.
    pub slow_reader: Duration,
    /// How long a stream lives at most.
    pub max_age: Option<Duration>,
}

/// Whether the caller may have the feed, as it is now.
#[derive(Clone, Debug)]
pub enum Decision {
    Allowed,
    Denied(Denial),
}

#[derive(Clone, Debug)]
pub struct Denial {
    pub code: &'static str,
    pub reason: String,
    /// What may change it: facts that bring a tuple here.
    pub watched: Vec<(Arc<Query>, Vec<Reference>)>,
}

/// Asks for a [`Decision`].
pub type Decide = Arc<dyn Fn() -> BoxFuture<'static, Result<Decision, Error>> + Send + Sync>;

/// What streams stand on.
#[derive(Clone, Debug)]
pub struct Ground {
    pub store: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub hub: Arc<Hub>,
    pub follower: Arc<Follower>,
    pub pages: Arc<Pages>,
    pub limits: Arc<Limits>,
}

#[derive(Debug)]
pub enum Event {
    /// `is_synced`: a SYNC follows at once.
    Page { page: Arc<Page>, is_synced: bool },
    /// Nothing more for now.
    Sync(String),
    /// Not for this caller; it may become so.
    Denied { denial: Denial, bookmark: String },
    /// Nothing has happened.
    Heartbeat,
}

/// See the module.
pub struct Session {
    ground: Ground,
    feed: Arc<Feed>,
    decide: Decide,
    registration: Registration,
    waiter: Waiter,
    stage: Stage,
    /// Where the givens are, once all are stored.
    given: Option<Vec<Position>>,
    /// They are stored, and the caller may have the feed. Else whatever comes is a reason to find
    /// out again, and nothing is a page.
    stands: bool,
    /// Where it is.
    bookmark: Bookmark,
    /// What the client knows: nothing is announced before there was something.
    shown: String,
    pages_of_cycle: usize,
    /// When SYNC is to be said after the last live page.
    sync: Option<Instant>,
    began: Instant,
    /// It was asked for its first event.
    has_begun: bool,
    /// When the last event was given.
    told: Instant,
    is_slow: Arc<AtomicBool>,
    looked: Duration,
    woken_by: Option<Cause>,
    telemetry: Telemetry,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// What the feed stands on is not known yet, or no longer.
    Opening,
    /// Up to a settled position.
    Cycle(Position),
    Live,
    Over,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session")
            .field("feed", &self.feed.hash)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Registers first: whatever is saved from here on is heard of. Refused when too many wait.
    pub fn open(
        ground: Ground,
        feed: Arc<Feed>,
        decide: Decide,
        bookmark: Bookmark,
    ) -> Result<Self, HoldRefusal> {
        let topic = topic::stream(&feed.hash);
        let key = topic::key(topic.clone());
        let waiter = ground.engine.register(&[key], FOREVER)?;
        let registration = ground.hub.register(topic, ground.limits.waitlist_cap);
        let now = Instant::now();
        Ok(Self {
            telemetry: Telemetry::new(feed.hash.clone()),
            shown: bookmark.to_string(),
            ground,
            feed,
            decide,
            registration,
            waiter,
            stage: Stage::Opening,
            given: None,
            stands: false,
            bookmark,
            pages_of_cycle: 0,
            sync: None,
            began: now,
            has_begun: false,
            told: now,
            is_slow: Arc::default(),
            looked: Duration::ZERO,
            woken_by: None,
        })
    }

    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    pub(crate) fn slow_reader(&self) -> Duration {
        self.ground.limits.slow_reader
    }

    /// Set by whoever drops it because its reader has stopped to read.
    pub(crate) fn is_slow(&self) -> Arc<AtomicBool> {
        self.is_slow.clone()
    }

    /// What is to be sent next; `None` when the stream ends.
    pub async fn next(&mut self) -> Option<Event> {
        // The first call comes at once; every other one when the last event has been taken.
        if std::mem::replace(&mut self.has_begun, true)
            && self.told.elapsed() > self.ground.limits.slow_reader
        {
            return self.end(Ending::SlowReader);
        }
        self.told = Instant::now();
        let mut pause = OUTAGE.0;
        let mut is_outage = false;
        loop {
            if let Some(ending) = self.ending() {
                return self.end(ending);
            }
            if self.is_silent() {
                return Some(self.give(Event::Heartbeat));
            }
            match self.step().await {
                Ok(Some(event)) => return Some(self.give(event)),
                Ok(None) => (pause, is_outage) = (OUTAGE.0, false),
                Err(error) => {
                    // Once an outage: many streams wait for its end, and ask again and again.
                    if !std::mem::replace(&mut is_outage, true) {
                        tracing::warn!(%error, feed = %self.feed.hash, "a stream waits for the database");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(OUTAGE.1);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Event>, Error> {
        let began = Instant::now();
        let event = match self.stage {
            Stage::Opening => self.stand().await,
            Stage::Cycle(to) => self.page(to).await,
            Stage::Live => return Ok(self.wait().await),
            Stage::Over => return Ok(None),
        };
        self.looked += began.elapsed();
        event
    }

    /// How long it has looked into the store.
    #[must_use]
    pub fn looked(&self) -> Duration {
        self.looked
    }

    /// What woke it last.
    #[must_use]
    pub fn woken_by(&self) -> Option<Cause> {
        self.woken_by
    }

    async fn page(&mut self, to: Position) -> Result<Option<Event>, Error> {
        let Some(given) = &self.given else {
            let says_so = self.is_caught_up(to) && self.sync.is_none();
            return Ok(says_so.then(|| self.sync()));
        };
        let pages = &self.ground.pages;
        let known = self
            .registration
            .signal()
            .waitlist()
            .known(&self.bookmark, to)
            .filter(|page| page.tuples <= pages.size());
        let page = async {
            match known {
                Some(page) => Ok(page),
                None => pages.page(&self.feed, given, &self.bookmark, to).await,
            }
        };
        // Both are asked when `to` is settled, so what has taken the feed away by then is known.
        let (decision, page) = tokio::try_join!((self.decide)(), page)?;
        if let Decision::Denied(_) = decision {
            self.stands = false;
            self.stage = Stage::Opening;
            return Ok(None);
        }
        self.bookmark = page.reached.clone();
        let is_caught_up = page.is_last && self.is_caught_up(to);
        if page.references.is_empty() {
            if !is_caught_up {
                // A page that others have asked for is there at once: whoever goes round without one
                // to send must let the rest of the node run.
                yield_now().await;
            }
            let says_so = is_caught_up && self.sync.is_none();
            return Ok(says_so.then(|| self.sync()));
        }
        let is_synced = is_caught_up && self.telemetry.syncs == 0;
        if self.telemetry.syncs > 0 {
            // However long pages have been coming: SYNC names the last one, which may still be loading.
            self.sync = Some(Instant::now() + self.ground.limits.sync_delay);
        }
        self.telemetry.page(&page);
        self.shown = page.reached.to_string();
        self.pages_of_cycle += 1;
        let limits = self.ground.limits.clone();
        if self.pages_of_cycle >= limits.max_initial_pages {
            // Enough for one cycle: the next begins where this one ends, after the others' turn.
            self.pages_of_cycle = 0;
            self.telemetry.cycle();
            sleep(limits.page_delay).await;
        } else if limits.page_delay_every > 0
            && self.pages_of_cycle.is_multiple_of(limits.page_delay_every)
            && !is_synced
            && self.ground.pages.are_under_way()
        {
            sleep(limits.page_delay).await;
        }
        if is_synced {
            self.telemetry.synced();
            self.shown = self.bookmark.to_string();
        }
        Ok(Some(Event::Page { page, is_synced }))
    }

    /// The cycle up to `to` is at its end. Either nothing has come meanwhile, or another one follows.
    fn is_caught_up(&mut self, to: Position) -> bool {
        let mut waitlist = self.registration.signal().waitlist();
        waitlist.settle(to);
        let span = waitlist.span();
        drop(waitlist);
        // This node may be behind the one that the client was at before: it never goes back.
        self.bookmark = Bookmark::Finished(to.max(self.bookmark.base()));
        match span {
            None => {
                self.stage = Stage::Live;
                true
            }
            Some(span) => {
                self.telemetry.restart();
                self.look(span.after, span.to);
                false
            }
        }
    }

    /// A cycle over what the waitlist says.
    fn look(&mut self, after: Position, to: Position) {
        self.pages_of_cycle = 0;
        self.telemetry.cycle();
        // Nothing before it concerns this stream, so that all streams of a feed ask the same.
        let done = self.bookmark.base();
        if after == 0 || !self.stands {
            self.bookmark = Bookmark::Start;
            self.stage = Stage::Opening;
        } else {
            self.bookmark = Bookmark::Finished(after.max(done));
            self.stage = Stage::Cycle(to);
        }
    }

    fn sync(&mut self) -> Event {
        self.sync = None;
        self.telemetry.synced();
        if !self.shown.is_empty() {
            self.shown = self.bookmark.to_string();
        }
        Event::Sync(self.shown.clone())
    }

    /// Until something may have come, or it is time for a sign of life.
    async fn wait(&mut self) -> Option<Event> {
        let silent = self.told + self.ground.limits.heartbeat;
        let sync = self.sync.unwrap_or(silent);
        let until = self.until().map_or(silent, |end| end.min(silent)).min(sync);
        match timeout_at(until, self.waiter.park()).await {
            Err(_) if self.sync.is_some() && Instant::now() >= sync => return Some(self.sync()),
            Err(_) => return None,
            Ok(ParkOutcome::Deadline | ParkOutcome::Drain) => {
                self.stage = Stage::Over;
                return None;
            }
            Ok(ParkOutcome::Woken { cause, .. }) => self.woken_by = Some(cause),
        }
        self.waiter.complete(WakeResult::Found);
        let mut waitlist = self.registration.signal().waitlist();
        waitlist.settle(self.bookmark.base());
        let span = waitlist.span();
        drop(waitlist);
        if let Some(span) = span {
            self.look(span.after, span.to);
        }
        None
    }

    fn until(&self) -> Option<Instant> {
        self.ground.limits.max_age.map(|age| self.began + age)
    }

    fn is_silent(&self) -> bool {
        self.told.elapsed() >= self.ground.limits.heartbeat
    }

    fn ending(&self) -> Option<Ending> {
        if matches!(self.stage, Stage::Over) || self.ground.engine.is_draining() {
            Some(Ending::Drain)
        } else if self.registration.signal().is_overrun() {
            Some(Ending::Overrun)
        } else if self.until().is_some_and(|end| Instant::now() >= end) {
            Some(Ending::Age)
        } else {
            None
        }
    }

    fn end(&mut self, ending: Ending) -> Option<Event> {
        self.stage = Stage::Over;
        self.telemetry.ending = Some(ending);
        None
    }

    fn give(&mut self, event: Event) -> Event {
        self.told = Instant::now();
        self.telemetry.frames(match event {
            Event::Page {
                is_synced: true, ..
            } => 2,
            Event::Page { .. } | Event::Sync(_) | Event::Denied { .. } => 1,
            Event::Heartbeat => 0,
        });
        event
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_slow.load(Ordering::Relaxed) {
            self.telemetry.ending = Some(Ending::SlowReader);
        }
        self.telemetry.waitlist_peak = self.registration.signal().waitlist().peak();
        self.telemetry.report();
    }
}
