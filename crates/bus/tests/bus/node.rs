//! One node: an engine, a bus, and the task that rechecks.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{sleep, timeout};
use wakeline_bus::{Bus, BusMode, Intervals, Options, Recheck, watch};
use wakeline_store::postgres::{self, Connector};
use wakeline_wake::{Cause, Engine, Limits, ParkOutcome, WaitGroup, WaitKey, Waiter, Wake};

use crate::stores::topic;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(40);
const NEVER: Duration = Duration::from_secs(3_600);

/// No recheck by the clock.
pub(crate) const ONLY_ON_REQUEST: Intervals = Intervals {
    fallback: NEVER,
    degraded: NEVER,
};

/// So long that no canary is late only because the machine is busy.
pub(crate) const CANARY: Duration = Duration::from_secs(1);

pub(crate) fn options() -> Options {
    Options {
        canary: CANARY,
        ..Options::default()
    }
}

pub(crate) struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bus: Arc<Bus>,
}

impl Node {
    pub(crate) fn on_postgres(url: &str, store: impl Recheck + 'static, every: Intervals) -> Self {
        let engine = Engine::new(Limits::default());
        let bus = Bus::postgres(engine.clone(), connector(url), &options());
        Self::start(engine, bus, store, every)
    }

    pub(crate) fn on_redis(url: &str, store: impl Recheck + 'static, every: Intervals) -> Self {
        let engine = Engine::new(Limits::default());
        let bus = Bus::redis(engine.clone(), url, &options()).unwrap();
        Self::start(engine, bus, store, every)
    }

    fn start(
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        store: impl Recheck + 'static,
        every: Intervals,
    ) -> Self {
        tokio::spawn(engine.clone().run());
        let doors: Vec<Arc<dyn Recheck>> = vec![Arc::new(store)];
        tokio::spawn(watch(bus.clone(), engine.clone(), doors, every));
        Self { engine, bus }
    }

    pub(crate) async fn live(self) -> Self {
        self.until_mode(BusMode::Live).await;
        self
    }

    pub(crate) async fn until_mode(&self, mode: BusMode) {
        until(mode.name(), async || self.bus.mode() == mode).await;
    }

    pub(crate) fn waits_for(&self, name: &str) -> Waiter {
        self.waits_in_group(name, &WaitGroup::default())
    }

    pub(crate) fn waits_in_group(&self, name: &str, group: &WaitGroup) -> Waiter {
        let key = WaitKey::new(topic(name), group.clone());
        self.engine.register(&[key], NEVER).unwrap()
    }

    /// Returns when `other` has received all that this node sent before.
    pub(crate) async fn received_by(&self, other: &Self) {
        let mut fence = other.waits_for("fence");
        self.bus.wake(&[Wake::all(topic("fence"))]);
        woken(&mut fence).await;
    }
}

pub(crate) fn connector(url: &str) -> Connector {
    Connector::new(url, &postgres::Options::default()).unwrap()
}

/// The cause of the waiter's wake, which must come.
pub(crate) async fn woken(waiter: &mut Waiter) -> Cause {
    match must("a wake", waiter.park()).await {
        ParkOutcome::Woken { cause, .. } => cause,
        other => panic!("{other:?} instead of a wake"),
    }
}

/// Whether a park would return at once.
pub(crate) fn has_wake(waiter: &mut Waiter) -> bool {
    waiter.park().now_or_never().is_some()
}

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    must(what, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) async fn must<T>(what: &str, coming: impl Future<Output = T>) -> T {
    timeout(PATIENCE, coming)
        .await
        .unwrap_or_else(|_| panic!("waited in vain for: {what}"))
}
