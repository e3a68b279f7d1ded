//! What all providers of a process share that use one database: the engine, the bus with its one
//! listening connection, and the fallback.
//!
//! They run on a thread of their own. A provider belongs to the runtime that made it; a process may
//! have several of these, and the line must outlive each.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;
use tokio_postgres::Config;
use wakeline_bus::{Bus, Intervals, Options as BusOptions, Wakes, watch};
use wakeline_store::{
    migrate::OpenError,
    postgres::{Connector, Session},
};
use wakeline_wake::{Engine, Limits, Wake};

use crate::{
    options::LongPollConfig,
    store::due::Fallback,
    topic::{TaskKind, Topics},
};

const CHANNEL: &str = "wakeline_durable";
/// How often the line is measured. Seldom: an idle process should cost next to nothing, and what a
/// dead line kept back is found by the fallback.
const CANARY: Duration = Duration::from_secs(60);
/// While the line is down.
const DEGRADED: Duration = Duration::from_secs(1);

static HUBS: Mutex<BTreeMap<String, Weak<Hub>>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bus: Arc<Bus>,
    /// Timers further away than this are left to the fallback, which finds them in time.
    horizon: Duration,
    /// By tag: when those who may have a session are woken next because another's may have ended.
    session_ends: Mutex<HashMap<String, Instant>>,
    /// Dropped with the hub: the thread ends.
    _running: oneshot::Sender<()>,
}

impl Hub {
    /// The hub of this database, made if there is none.
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
        let mut hubs = HUBS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hub) = hubs.get(&key).and_then(Weak::upgrade) {
            return Ok(hub);
        }
        let hub = Arc::new(Self::start(connector, config).map_err(|error| open(&error))?);
        hubs.retain(|_, hub| hub.strong_count() > 0);
        hubs.insert(key, Arc::downgrade(&hub));
        Ok(hub)
    }

    fn start(connector: &Connector, config: &LongPollConfig) -> std::io::Result<Self> {
        let engine = Engine::new(Limits::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let bus = {
            let _entered = runtime.enter();
            let options = BusOptions {
                channel: CHANNEL.into(),
                canary: CANARY,
            };
            Bus::postgres(engine.clone(), connector.clone(), &options)
        };
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
        let (running, ended) = oneshot::channel::<()>();
        let (thread_engine, thread_bus) = (engine.clone(), bus.clone());
        std::thread::Builder::new()
            .name("wakeline-durable".into())
            .spawn(move || {
                runtime.spawn(thread_engine.clone().run());
                runtime.spawn(watch(thread_bus, thread_engine, vec![fallback], intervals));
                // Never sent: the sender is dropped with the hub.
                let _ = runtime.block_on(ended);
            })?;
        Ok(Self {
            engine,
            bus,
            horizon,
            session_ends: Mutex::default(),
            _running: running,
        })
    }

    /// For what falls due when `after` has passed.
    pub(crate) fn wakes_after(&self, wake: Wake, after: Duration) -> Wakes {
        if after <= self.horizon {
            Wakes::later(wake, after)
        } else {
            Wakes::none()
        }
    }

    /// There is something in a session that another holds for `ends` microseconds: should it not be
    /// prolonged, somebody else looks then. Once for many: whoever looks learns when the next ends.
    pub(crate) fn wakes_at_session_end(
        &self,
        topics: &Topics,
        kind: &TaskKind,
        ends: Option<i64>,
    ) -> Wakes {
        let Some(ends) = ends.filter(|_| kind.owner.is_some()) else {
            return Wakes::none();
        };
        let after = Duration::from_micros(u64::try_from(ends).unwrap_or(0));
        let now = Instant::now();
        let mut known = self
            .session_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, at| *at > now);
        let name = topics.successors(kind);
        if known.get(&name).is_some_and(|at| *at <= now + after) {
            return Wakes::none();
        }
        known.insert(name, now + after);
        self.wakes_after(topics.wake_successor(kind), after)
    }
}
