//! What all providers of a process share that use one database: the wake engine, the bus with its
//! one listening connection, and the fallback.
//!
//! They run on a thread of their own. A process may have several async runtimes, each with its
//! providers, and the connection must outlive each runtime.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio_postgres::Config;
use wakeline_bus::{Bus, Intervals, Wakes, watch};
use wakeline_store::{
    migrate::OpenError,
    postgres::{Connector, Session},
};
use wakeline_wake::{Engine, Limits, Wake};

use super::{
    options::LongPollConfig,
    topics::{ActivityKind, Topics},
};
use crate::{bus::BusThread, store::due::Fallback};

/// The interval of the fallback while the bus is down.
const DEGRADED: Duration = Duration::from_secs(1);

static BUSES: Mutex<BTreeMap<String, Weak<SharedBus>>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
pub(crate) struct SharedBus {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bus: Arc<Bus>,
    /// Later timers are left to the fallback, which finds them in time.
    horizon: Duration,
    /// By tag: when the next worker is woken because the session of another may have ended.
    session_ends: Mutex<HashMap<String, Instant>>,
    _thread: BusThread,
}

impl SharedBus {
    /// The shared bus of this database, created if there is none.
    pub(crate) fn join(
        url: &str,
        connector: &Connector,
        config: &LongPollConfig,
    ) -> Result<Arc<Self>, OpenError> {
        let open = |error: &dyn std::error::Error| OpenError::Open(error.to_string());
        let parsed: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| open(&error))?;
        let database = parsed.get_dbname().or(parsed.get_user());
        let key = format!(
            "{:?} {:?} {database:?}",
            parsed.get_hosts(),
            parsed.get_ports()
        );
        let mut buses = BUSES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = buses.get(&key).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        let shared = Arc::new(Self::start(connector, config).map_err(|error| open(&error))?);
        buses.retain(|_, shared| shared.strong_count() > 0);
        buses.insert(key, Arc::downgrade(&shared));
        Ok(shared)
    }

    fn start(connector: &Connector, config: &LongPollConfig) -> std::io::Result<Self> {
        let engine = Engine::new(Limits::default());
        let horizon = config.fallback_interval * 2;
        let fallback = Arc::new(Fallback {
            session: Session::new(connector.clone()),
            engine: engine.clone(),
            horizon,
        });
        let intervals = Intervals {
            fallback: config.fallback_interval,
            degraded: DEGRADED.min(config.fallback_interval),
        };
        let (bus, thread) = BusThread::start(connector, &engine, |bus| {
            watch(bus, engine.clone(), vec![fallback], intervals)
        })?;
        Ok(Self {
            engine,
            bus,
            horizon,
            session_ends: Mutex::default(),
            _thread: thread,
        })
    }

    /// The wakes for an item that is due when `after` has passed.
    pub(crate) fn wakes_after(&self, wake: Wake, after: Duration) -> Wakes {
        if after <= self.horizon {
            Wakes::later(wake, after)
        } else {
            Wakes::none()
        }
    }

    /// The wakes for an activity of a session that its owner has for `ends_us` microseconds: if the
    /// session is not renewed, another worker may fetch the activity then. One wake per tag: the
    /// worker's fetch says when the next session ends.
    pub(crate) fn wakes_at_session_end(
        &self,
        topics: &Topics,
        kind: &ActivityKind,
        ends_us: Option<i64>,
    ) -> Wakes {
        let Some(ends_us) = ends_us.filter(|_| kind.owner.is_some()) else {
            return Wakes::none();
        };
        let after = Duration::from_micros(u64::try_from(ends_us).unwrap_or(0));
        let now = Instant::now();
        let mut next_wakes = self
            .session_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        next_wakes.retain(|_, at| *at > now);
        let name = topics.session_takeover(kind);
        if next_wakes.get(&name).is_some_and(|at| *at <= now + after) {
            return Wakes::none();
        }
        next_wakes.insert(name, now + after);
        self.wakes_after(topics.wake_session_takeover(kind), after)
    }
}
