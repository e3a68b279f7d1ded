//! A stream: sends the existing tuples of its feed, marks with SYNC that the client has caught up,
//! and then sends new tuples as they come.
//!
//! A stream is one loop, so only one query cycle runs at a time. The connection asks it for the
//! next event when it can take one. So a slow reader holds up only itself: its facts wait on the
//! waitlist.

mod opening;
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
    store::{Seq, Store},
    topic,
};
pub use telemetry::{EndReason, Telemetry};

/// The waits between attempts while the database is away.
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Clone, Debug)]
pub struct Limits {
    /// Pages of one cycle; then others have a turn.
    pub max_initial_pages: usize,
    /// Facts that may wait for a stream; with more the stream is closed.
    pub waitlist_cap: usize,
    /// After so many pages a stream lets others go first, for `page_delay`. 0: never.
    pub page_delay_every: usize,
    pub page_delay: Duration,
    /// How long after the last live page SYNC is sent. When SYNC comes, Jinaga's client gives up a
    /// page whose facts it could not load. So a server that dies just after a page must not have
    /// sent it yet.
    pub sync_delay: Duration,
    /// How often a blank line is sent while nothing else is.
    pub heartbeat: Duration,
    /// How long a reader may leave a frame unread; then its stream ends.
    pub slow_reader: Duration,
    /// How long a stream lives at most.
    pub max_age: Option<Duration>,
}

/// Whether the caller may have the feed now.
#[derive(Clone, Debug)]
pub enum Decision {
    Allowed,
    Denied(Denial),
}

#[derive(Clone, Debug)]
pub struct Denial {
    pub code: &'static str,
    pub reason: String,
    /// A new tuple of one of these queries may change it.
    pub watched: Vec<(Arc<Query>, Vec<Reference>)>,
}

/// Checks the rules again.
pub type DecideAccess = Arc<dyn Fn() -> BoxFuture<'static, Result<Decision, Error>> + Send + Sync>;

/// The services that all streams of a node share.
#[derive(Clone, Debug)]
pub struct StreamServices {
    pub store: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub hub: Arc<Hub>,
    pub follower: Arc<Follower>,
    pub pages: Arc<Pages>,
    pub limits: Arc<Limits>,
}

#[derive(Debug)]
pub enum StreamEvent {
    /// `is_synced`: a SYNC follows at once.
    Page { page: Arc<Page>, is_synced: bool },
    /// The client has caught up.
    Sync(String),
    /// The caller may not have the feed; that may change.
    Denied { denial: Denial, bookmark: String },
    /// Nothing has happened.
    Heartbeat,
}

/// See the module.
pub struct FeedStream {
    services: StreamServices,
    feed: Arc<Feed>,
    decide: DecideAccess,
    registration: Registration,
    waiter: Waiter,
    stage: Stage,
    /// The seqs of the givens, once all are stored.
    given: Option<Vec<Seq>>,
    /// The givens are stored, and the caller may have the feed. Else every wake is a reason to
    /// check that again, and no page is sent.
    is_open: bool,
    /// Up to where the feed was read.
    bookmark: Bookmark,
    /// The last bookmark that the client got: an empty feed is announced with the client's own one.
    client_bookmark: String,
    pages_of_cycle: usize,
    /// When SYNC is due after the last live page.
    sync: Option<Instant>,
    began: Instant,
    /// The connection has asked for the first event.
    has_begun: bool,
    /// When the last event was sent.
    last_event_at: Instant,
    is_slow: Arc<AtomicBool>,
    store_time: Duration,
    woken_by: Option<Cause>,
    telemetry: Telemetry,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Whether the givens are stored and the caller is admitted is not known, or not any more.
    Opening,
    /// Up to a settled seq.
    Cycle(Seq),
    Live,
    Over,
}

impl fmt::Debug for FeedStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FeedStream")
            .field("feed", &self.feed.hash)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl FeedStream {
    /// Registers first, so that no fact is missed that is saved from here on. Refused if the engine
    /// takes no more waiters.
    pub fn open(
        services: StreamServices,
        feed: Arc<Feed>,
        decide: DecideAccess,
        bookmark: Bookmark,
    ) -> Result<Self, HoldRefusal> {
        let topic = topic::stream(&feed.hash);
        let key = topic::key(topic.clone());
        let waiter = services.engine.register(&[key], FOREVER)?;
        let registration = services.hub.register(topic, services.limits.waitlist_cap);
        let now = Instant::now();
        Ok(Self {
            telemetry: Telemetry::new(feed.hash.clone()),
            client_bookmark: bookmark.to_string(),
            services,
            feed,
            decide,
            registration,
            waiter,
            stage: Stage::Opening,
            given: None,
            is_open: false,
            bookmark,
            pages_of_cycle: 0,
            sync: None,
            began: now,
            has_begun: false,
            last_event_at: now,
            is_slow: Arc::default(),
            store_time: Duration::ZERO,
            woken_by: None,
        })
    }

    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    pub(crate) fn slow_reader(&self) -> Duration {
        self.services.limits.slow_reader
    }

    /// Set by the sender if it drops the stream because its reader has stopped reading.
    pub(crate) fn is_slow(&self) -> Arc<AtomicBool> {
        self.is_slow.clone()
    }

    /// The next frame to send; `None` when the stream ends.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        // The first call comes at once, every other one when the last event was read.
        if std::mem::replace(&mut self.has_begun, true)
            && self.last_event_at.elapsed() > self.services.limits.slow_reader
        {
            return self.end(EndReason::SlowReader);
        }
        self.last_event_at = Instant::now();
        let mut pause = OUTAGE.0;
        let mut is_outage = false;
        loop {
            if let Some(ending) = self.ending() {
                return self.end(ending);
            }
            if self.is_silent() {
                return Some(self.emit(StreamEvent::Heartbeat));
            }
            match self.step().await {
                Ok(Some(event)) => return Some(self.emit(event)),
                Ok(None) => (pause, is_outage) = (OUTAGE.0, false),
                Err(error) => {
                    // Logged once per outage: many streams try again and again.
                    if !std::mem::replace(&mut is_outage, true) {
                        tracing::warn!(%error, feed = %self.feed.hash, "a stream waits for the database");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(OUTAGE.1);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<StreamEvent>, Error> {
        let began = Instant::now();
        let event = match self.stage {
            Stage::Opening => self.open_feed().await,
            Stage::Cycle(to) => self.page(to).await,
            Stage::Live => return Ok(self.wait().await),
            Stage::Over => return Ok(None),
        };
        self.store_time += began.elapsed();
        event
    }

    /// How long it has waited for the store.
    #[must_use]
    pub fn store_time(&self) -> Duration {
        self.store_time
    }

    /// The cause of the last wake.
    #[must_use]
    pub fn woken_by(&self) -> Option<Cause> {
        self.woken_by
    }

    async fn page(&mut self, to: Seq) -> Result<Option<StreamEvent>, Error> {
        let Some(given) = &self.given else {
            let says_so = self.is_caught_up(to) && self.sync.is_none();
            return Ok(says_so.then(|| self.sync()));
        };
        let pages = &self.services.pages;
        let known = self
            .registration
            .inbox()
            .waitlist()
            .ready_page(&self.bookmark, to)
            .filter(|page| page.tuples <= pages.size());
        let page = async {
            match known {
                Some(page) => Ok(page),
                None => pages.page(&self.feed, given, &self.bookmark, to).await,
            }
        };
        // Both are read when `to` is settled, so a fact that has taken the feed away by then
        // counts.
        let (decision, page) = tokio::try_join!((self.decide)(), page)?;
        if let Decision::Denied(_) = decision {
            self.is_open = false;
            self.stage = Stage::Opening;
            return Ok(None);
        }
        self.bookmark = page.reached.clone();
        let is_caught_up = page.is_last && self.is_caught_up(to);
        if page.references.is_empty() {
            if !is_caught_up {
                // A shared page is there at once: a stream that goes round without an event must
                // let the rest of the node run.
                yield_now().await;
            }
            let says_so = is_caught_up && self.sync.is_none();
            return Ok(says_so.then(|| self.sync()));
        }
        let is_synced = is_caught_up && self.telemetry.syncs == 0;
        if self.telemetry.syncs > 0 {
            // However long pages have been coming: SYNC names the last one, which may still be
            // loading.
            self.sync = Some(Instant::now() + self.services.limits.sync_delay);
        }
        self.telemetry.page(&page);
        self.client_bookmark = page.reached.to_string();
        self.pages_of_cycle += 1;
        let limits = self.services.limits.clone();
        if self.pages_of_cycle >= limits.max_initial_pages {
            // Enough for one cycle: the next one begins here, after other streams had a turn.
            self.pages_of_cycle = 0;
            self.telemetry.cycle();
            sleep(limits.page_delay).await;
        } else if limits.page_delay_every > 0
            && self.pages_of_cycle.is_multiple_of(limits.page_delay_every)
            && !is_synced
            && self.services.pages.is_busy()
        {
            sleep(limits.page_delay).await;
        }
        if is_synced {
            self.telemetry.synced();
            self.client_bookmark = self.bookmark.to_string();
        }
        Ok(Some(StreamEvent::Page { page, is_synced }))
    }

    /// The cycle up to `to` has ended. If facts came meanwhile, another cycle follows.
    fn is_caught_up(&mut self, to: Seq) -> bool {
        let mut waitlist = self.registration.inbox().waitlist();
        waitlist.remove_through(to);
        let span = waitlist.span();
        drop(waitlist);
        // This node may be behind the one that the client was connected to before: a bookmark never
        // goes back.
        self.bookmark = Bookmark::Finished(to.max(self.bookmark.base()));
        match span {
            None => {
                self.stage = Stage::Live;
                true
            }
            Some(span) => {
                self.telemetry.restart();
                self.start_cycle(span.after, span.to);
                false
            }
        }
    }

    /// Starts a cycle over a span of the waitlist.
    fn start_cycle(&mut self, after: Seq, to: Seq) {
        self.pages_of_cycle = 0;
        self.telemetry.cycle();
        // No fact before the span concerns this feed, so all its streams read the same page.
        let done = self.bookmark.base();
        if after == 0 || !self.is_open {
            self.bookmark = Bookmark::Start;
            self.stage = Stage::Opening;
        } else {
            self.bookmark = Bookmark::Finished(after.max(done));
            self.stage = Stage::Cycle(to);
        }
    }

    fn sync(&mut self) -> StreamEvent {
        self.sync = None;
        self.telemetry.synced();
        if !self.client_bookmark.is_empty() {
            self.client_bookmark = self.bookmark.to_string();
        }
        StreamEvent::Sync(self.client_bookmark.clone())
    }

    /// Waits until new facts may concern the stream, or a heartbeat or SYNC is due.
    async fn wait(&mut self) -> Option<StreamEvent> {
        let silent = self.last_event_at + self.services.limits.heartbeat;
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
        let mut waitlist = self.registration.inbox().waitlist();
        waitlist.remove_through(self.bookmark.base());
        let span = waitlist.span();
        drop(waitlist);
        if let Some(span) = span {
            self.start_cycle(span.after, span.to);
        }
        None
    }

    fn until(&self) -> Option<Instant> {
        self.services.limits.max_age.map(|age| self.began + age)
    }

    fn is_silent(&self) -> bool {
        self.last_event_at.elapsed() >= self.services.limits.heartbeat
    }

    fn ending(&self) -> Option<EndReason> {
        if matches!(self.stage, Stage::Over) || self.services.engine.is_draining() {
            Some(EndReason::Drain)
        } else if self.registration.inbox().is_overrun() {
            Some(EndReason::Overrun)
        } else if self.until().is_some_and(|end| Instant::now() >= end) {
            Some(EndReason::Age)
        } else {
            None
        }
    }

    fn end(&mut self, ending: EndReason) -> Option<StreamEvent> {
        self.stage = Stage::Over;
        self.telemetry.ending = Some(ending);
        None
    }

    fn emit(&mut self, event: StreamEvent) -> StreamEvent {
        self.last_event_at = Instant::now();
        self.telemetry.frames(match event {
            StreamEvent::Page {
                is_synced: true, ..
            } => 2,
            StreamEvent::Page { .. } | StreamEvent::Sync(_) | StreamEvent::Denied { .. } => 1,
            StreamEvent::Heartbeat => 0,
        });
        event
    }
}

impl Drop for FeedStream {
    fn drop(&mut self) {
        if self.is_slow.load(Ordering::Relaxed) {
            self.telemetry.ending = Some(EndReason::SlowReader);
        }
        self.telemetry.waitlist_peak = self.registration.inbox().waitlist().peak();
        self.telemetry.report();
    }
}
