//! A stream's services, without HTTP.

use std::{sync::Arc, time::Duration};

use wakeline_bus::Bus;
use wakeline_feed::{
    bookmark::Bookmark,
    fact::{Fact, Reference},
    feed::Feed,
    frame::StreamFormat,
    hub::{Follower, Hub},
    pages::Pages,
    store::{Seq, Store},
    stream::{DecideAccess, Decision, FeedStream, Limits, StreamEvent, StreamServices},
};
use wakeline_testkit::{eventually, soon};
use wakeline_wake::Engine;

use crate::{blog::saved, client::Frame, counting_store::CountingStore, database::Database};

/// So wide that a test meets only the limits that it narrows.
pub(crate) fn long_limits() -> Limits {
    Limits {
        max_initial_pages: 1_000,
        waitlist_cap: 50_000,
        page_delay_every: 10,
        page_delay: Duration::from_millis(1),
        sync_delay: Duration::ZERO,
        heartbeat: Duration::from_secs(3_600),
        slow_reader: Duration::from_secs(3_600),
        max_age: None,
    }
}

pub(crate) struct StreamFixture {
    pub(crate) store: Arc<CountingStore>,
    pub(crate) services: StreamServices,
    bus: Arc<Bus>,
    _database: Database,
}

impl StreamFixture {
    pub(crate) async fn new(database: Database, page_size: usize) -> Self {
        Self::with(database, page_size, long_limits()).await
    }

    pub(crate) async fn with(database: Database, page_size: usize, limits: Limits) -> Self {
        let store = CountingStore::new(database.store().await);
        let engine = Engine::new(wakeline_wake::Limits::default());
        tokio::spawn(engine.clone().run());
        let shared: Arc<dyn Store> = store.clone();
        let hub = Hub::new(shared.clone(), engine.clone());
        let services = StreamServices {
            follower: Follower::new(hub.clone(), shared.clone(), engine.clone()),
            pages: Arc::new(Pages::new(shared.clone(), page_size)),
            store: shared,
            engine,
            hub,
            limits: Arc::new(limits),
        };
        Self {
            store,
            bus: Bus::local(services.engine.clone()),
            services,
            _database: database,
        }
    }

    pub(crate) fn stream(&self, feed: &Arc<Feed>) -> FeedStream {
        let allowed: DecideAccess = Arc::new(|| Box::pin(async { Ok(Decision::Allowed) }));
        let services = self.services.clone();
        FeedStream::open(services, feed.clone(), allowed, Bookmark::Start).unwrap()
    }

    pub(crate) async fn save(&self, facts: &[Fact]) -> Seq {
        saved(&*self.store, &self.bus, facts).await
    }

    /// Returns when the follower has read the facts.
    pub(crate) async fn save_and_follow(&self, facts: &[Fact]) {
        let last = self.save(facts).await;
        let follower = &self.services.follower;
        eventually("the follower", async || {
            follower.at().is_some_and(|at| at >= last)
        })
        .await;
    }
}

/// Every event until the stream is live, as the frames that a client would get.
pub(crate) async fn until_sync(stream: &mut FeedStream) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        let event = soon("a frame", stream.next()).await.expect("it goes on");
        let is_synced = match &event {
            StreamEvent::Page { is_synced, .. } => *is_synced,
            StreamEvent::Sync(_) => true,
            StreamEvent::Denied { .. } | StreamEvent::Heartbeat => false,
        };
        let bytes = StreamFormat::Jinaga.encode(&event);
        let text = std::str::from_utf8(&bytes).unwrap();
        frames.extend(text.lines().filter_map(Frame::read));
        if is_synced {
            assert!(frames.last().unwrap().is_sync());
            return frames;
        }
    }
}

pub(crate) fn received(frames: &[Frame]) -> Vec<Reference> {
    let all = frames.iter().flat_map(|frame| frame.references.clone());
    all.collect()
}
