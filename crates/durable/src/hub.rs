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

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::oneshot;
use tokio_postgres::{Config, types::Type};
use wakeline_bus::{Bus, Due, Intervals, Options as BusOptions, Recheck, watch};
use wakeline_store::{
    Error,
    migrate::OpenError,
    postgres::{Connector, Session, explain, quoted},
};
use wakeline_wake::{Engine, Limits, Place, Waiting, Wake};

use crate::{
    options::LongPollConfig,
    store::Parameter,
    topic::{DOOR, INSTANCE, ORCHESTRATION, OWNER, SESSION_TASK, TASK, TaskKind, Topics},
};

const CHANNEL: &str = "wakeline_durable";
/// How often the line is measured. Seldom: an idle process should cost next to nothing.
const CANARY: Duration = Duration::from_secs(30);
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

    /// Wakes here and elsewhere when `after` has passed.
    pub(crate) fn publish_after(&self, wake: Wake, after: Duration) {
        if after.is_zero() {
            self.bus.publish(&[wake]);
        } else if after <= self.horizon {
            self.bus.publish_after(wake, after);
        }
    }

    /// There is something in a session that another holds for `ends` microseconds: should it not be
    /// prolonged, somebody else looks then. Once for many: whoever looks learns when the next ends.
    pub(crate) fn publish_session_end(&self, topics: &Topics, kind: &TaskKind, ends: Option<i64>) {
        let Some(ends) = ends.filter(|_| kind.owner.is_some()) else {
            return;
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
            return;
        }
        known.insert(name, now + after);
        self.publish_after(topics.wake_successor(kind), after);
    }
}

/// Asks, in one statement for all schemas, what has become ready.
struct Fallback {
    session: Session,
    engine: Arc<Engine>,
    horizon: Duration,
}

/// What is waited for in one schema.
#[derive(Default)]
struct Waited {
    /// By kind and name of their topics.
    places: HashMap<(String, String), Vec<Place>>,
    instances: Vec<String>,
}

impl Waited {
    fn places(&self, kind: &str, name: &str) -> impl Iterator<Item = &Place> {
        let key = (kind.to_owned(), name.to_owned());
        self.places.get(&key).into_iter().flatten()
    }
}

fn by_schema(waiting: Vec<Waiting>) -> BTreeMap<String, Waited> {
    let mut schemas: BTreeMap<String, Waited> = BTreeMap::new();
    for place in waiting {
        let parts: Vec<String> = place.topic.parts().map(str::to_owned).collect();
        let Ok([schema, kind, name]) = <[String; 3]>::try_from(parts) else {
            continue;
        };
        let waited = schemas.entry(schema).or_default();
        if kind == INSTANCE {
            waited.instances.push(name.clone());
        }
        let place = Place::new(place.topic, place.lane);
        waited.places.entry((kind, name)).or_default().push(place);
    }
    schemas
}

impl Fallback {
    async fn ask(&self, waiting: Vec<Waiting>) -> Result<Vec<Due>, Error> {
        let schemas = by_schema(waiting);
        let names: Vec<&String> = schemas.keys().collect();
        let asked: Vec<String> = (0_i32..)
            .zip(&schemas)
            .map(|(number, (name, waited))| {
                let schema = quoted(name);
                let mut asked = format!("SELECT {number} AS schema, d.* FROM {schema}.due() d");
                if !waited.instances.is_empty() {
                    asked.push_str(&format!(
                        " UNION ALL SELECT {number}, 3, i.id, NULL, 0 FROM {schema}.instance i
                         JOIN {schema}.execution x ON x.instance = i.id AND x.number = i.execution
                         WHERE i.id = ANY ($1) AND x.status IN ('Completed', 'Failed')"
                    ));
                }
                asked
            })
            .collect();
        let instances: Vec<&String> = schemas.values().flat_map(|w| &w.instances).collect();
        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        if !instances.is_empty() {
            parameters.push((&instances, Type::TEXT_ARRAY));
        }
        let client = self.session.client().await?;
        let rows = client
            .query_typed(&asked.join(" UNION ALL "), &parameters)
            .await
            .map_err(|error| explain(&error))?;
        let mut dues = Vec::new();
        for row in &rows {
            let schema: i32 = row.get(0);
            let waited = &schemas[names[usize::try_from(schema).unwrap_or(0)]];
            let (kind, name): (i32, Option<String>) = (row.get(1), row.get(2));
            let owner: Option<String> = row.get(3);
            let micros: Option<i64> = row.get(4);
            let name = name.unwrap_or_default();
            let after = Duration::from_micros(u64::try_from(micros.unwrap_or(0)).unwrap_or(0));
            let places: Vec<&Place> = match (kind, &owner) {
                (0, _) => waited.places(ORCHESTRATION, "").collect(),
                (1, _) => waited
                    .places(TASK, &name)
                    .chain(waited.places(TASK, "*"))
                    .collect(),
                (2, Some(owner)) => waited.places(OWNER, owner).collect(),
                (2, None) => waited
                    .places(SESSION_TASK, &name)
                    .chain(waited.places(SESSION_TASK, "*"))
                    .collect(),
                _ => waited.places(INSTANCE, &name).collect(),
            };
            for place in places.into_iter().cloned() {
                if after.is_zero() {
                    dues.push(Due { place, after });
                } else if after <= self.horizon {
                    // A timer and not an alarm, which would go with those who wait now: they come
                    // back and, having been told of nothing, do not ask.
                    let wake = Wake::chain(place.topic).in_lane(place.lane);
                    self.engine.wake_after(wake, after);
                }
            }
        }
        Ok(dues)
    }
}

impl Recheck for Fallback {
    fn door(&self) -> &'static str {
        DOOR
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        self.ask(waiting).boxed()
    }
}
