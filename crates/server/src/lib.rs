//! The server: configuration, wiring, login, connections, health, metrics and drain.
//!
//! [`serve`] is the start and the end of the process, in their order. The doors bring their routes,
//! their stores and their rechecks.

mod auth;
mod browsers;
mod callers;
pub mod config;
mod descriptors;
mod document;
mod durable;
mod feeds;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod jobs;
mod listen;
pub mod logs;
mod metering;
mod parameters;
mod process;
mod requests;
mod stopping;
mod stores;
mod waits;

use std::{fmt, io::Write, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use axum::Router;
use futures_util::{FutureExt, future::BoxFuture};
use utoipa_axum::router::OpenApiRouter;
use wakeline_bus::{Bus, Intervals, Recheck};
use wakeline_durable::View;
use wakeline_jobs::socket::Sockets;
use wakeline_queue::{Queue, claim::Start, node::Node};
use wakeline_wake::{Engine, Limits};
use wakeline_web::{Problem, RouteCheck};

use auth::Auth;
use config::{Config, Subscription, UnknownFields};
use listen::{ListenSockets, Listener};
use parameters::KnownParameters;
use requests::Gate;
use stopping::StopSignal;
use stores::Stores;

/// How long a stopping server tries to send its last wakes.
const LAST_WAKES: Duration = Duration::from_secs(1);
/// How often the dashboard's counters are written, if they have changed.
const WRITE_COUNTERS_EVERY: Duration = Duration::from_secs(10);

/// The state of this crate's routes.
#[derive(Clone, Debug)]
pub(crate) struct ServerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) stores: Stores,
    pub(crate) stopping: StopSignal,
}

/// Serves until a signal to stop, and then until every held request has its answer. Boxed: an
/// `async fn` would be compiled in the binary's crate, alone at the end of a build.
#[must_use]
pub fn serve(config: Config) -> BoxFuture<'static, Result<()>> {
    run(config).boxed()
}

async fn run(mut config: Config) -> Result<()> {
    config.resolve().await?;
    // First, because an error here is a mistake in the configuration.
    let auth = Auth::new(&config)?;
    let metering = metering::install()?;
    let stopping = StopSignal::on_signals()?;
    let Assembly {
        shared,
        queue,
        sockets,
        router,
    } = Assembly::open(&config, metering, &auth, &stopping).await?;
    let (engine, bus) = (shared.engine.clone(), shared.bus.clone());
    let listening = ListenSockets::bind(config.listen.addresses()).await?;
    let addresses = listening.addresses().to_vec();
    queue.set_node(Node {
        hostname: process::hostname(),
        port: addresses[0].port(),
        process: process::usage,
    });
    tokio::spawn(queue.clone().run_counters(WRITE_COUNTERS_EVERY));
    let listener = Listener::new(listening, router, Gate::new(auth, &config), &config);
    announce(&Announcement {
        addresses: &addresses,
        shared: &shared,
        config: &config,
    });
    // Outside systemd it does nothing.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);

    let connections = listener.accept_until(stopping.clone()).await;
    tracing::info!(
        held = engine.held(),
        "stopping: every held request is answered"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    engine.drain();
    sockets.close().await;
    connections.finish(config.http.drain).await;
    // Writes whose callers have hung up, or were cut: another node may wait for what they commit.
    bus.finish_writes(stores::longest_write(&config)).await;
    bus.flush(LAST_WAKES).await;
    queue.write_counts().await;
    tracing::info!("stopped");
    Ok(())
}

/// The doors on their stores, and all routes.
pub(crate) struct Assembly {
    shared: ServerState,
    queue: Arc<Queue>,
    sockets: Arc<Sockets>,
    pub(crate) router: Router,
}

impl Assembly {
    pub(crate) async fn open(
        config: &Config,
        metering: metering::Metering,
        auth: &Auth,
        stopping: &StopSignal,
    ) -> Result<Self> {
        wakeline_web::set_max_depth(config.http.max_depth);
        wakeline_web::set_body_memory(
            config.limits.body_memory,
            config.limits.body_memory_per_caller,
        );
        if config.http.unknown_fields == UnknownFields::Warn {
            wakeline_web::unknown::only_warn_of_unknown_names();
        }
        let engine = Engine::new(Limits {
            waiters: config.wake.max_waiters,
            waiters_per_topic: config.wake.max_waiters_per_topic,
            timers: config.wake.max_timers,
        });
        tokio::spawn(engine.clone().run());
        let stores = Stores::open(config).await?;
        let bus = open_bus(config, &stores, engine.clone())?;

        let (sealer, key_file) = stores.encryption(config)?;
        let queue = Queue::new(
            stores.queue(),
            engine.clone(),
            bus.clone(),
            queue_limits(config),
            sealer,
        );
        if let Some(file) = key_file {
            queue.set_key_file(file);
        }
        // Other queues work without it.
        if let Err(error) = queue.check_key().await {
            tracing::warn!(%error, "encrypted queues cannot be used (queue.encryption_key)");
        }
        tokio::spawn(queue.clone().sweep(config.queue.sweep_interval));
        let jobs = jobs::Door::open(config, stores.jobs(), engine.clone(), bus.clone()).await?;
        let feeds = feeds::open(config, stores.feeds(), engine.clone(), bus.clone())?;
        let doors: Vec<Arc<dyn Recheck>> =
            vec![queue.clone(), jobs.jobs.clone(), feeds.feeds.clone()];
        let intervals = Intervals {
            fallback: config.wake.fallback,
            degraded: config.wake.fallback_degraded,
        };
        tokio::spawn(wakeline_bus::watch(
            bus.clone(),
            engine.clone(),
            doors,
            intervals,
        ));

        let shared = ServerState {
            engine: engine.clone(),
            bus: bus.clone(),
            stores,
            stopping: stopping.clone(),
        };
        let sockets = jobs.sockets.clone();
        let doors = Doors {
            queue: queue.clone(),
            jobs,
            feeds,
            durable: durable::view(config),
        };
        let router = router(&shared, doors, metering, auth);
        Ok(Self {
            shared,
            queue,
            sockets,
            router,
        })
    }
}

fn open_bus(config: &Config, stores: &Stores, engine: Arc<Engine>) -> Result<Arc<Bus>> {
    let options = wakeline_bus::Options {
        channel: config.bus.channel.clone(),
        canary: config.bus.canary,
    };
    match (&config.bus.url, stores.postgres()) {
        (Some(url), postgres) => {
            let bus = Bus::redis(engine, url.expose(), &options)
                .map_err(|error| anyhow::anyhow!("bus.url: {error}"))?;
            if let Some(postgres) = postgres {
                // `wakeline.push` notifies over PostgreSQL.
                tokio::spawn(
                    bus.clone()
                        .listen_for_sql(postgres.connector().clone(), options),
                );
            }
            Ok(bus)
        }
        (None, Some(postgres)) => Ok(Bus::postgres(
            engine,
            postgres.connector().clone(),
            &options,
        )),
        (None, None) => Ok(Bus::local(engine)),
    }
}

fn queue_limits(config: &Config) -> wakeline_queue::Limits {
    wakeline_queue::Limits {
        max_items: config.queue.max_items,
        max_batch: u32::try_from(config.queue.max_batch).unwrap_or(u32::MAX),
        max_name: config.queue.max_name,
        max_transaction_id: config.queue.max_transaction_id,
        default_batch: u32::try_from(config.queue.default_batch).unwrap_or(u32::MAX),
        max_partitions: u32::try_from(config.queue.max_partitions).unwrap_or(u32::MAX),
        default_start: match config.queue.default_subscription {
            Subscription::All => Start::All,
            Subscription::New => Start::New,
        },
        lease: config.queue.lease,
        max_lease: config.queue.max_lease,
        default_hold: config.http.default_hold,
        max_hold: config.http.max_hold,
    }
}

struct Doors {
    queue: Arc<Queue>,
    jobs: jobs::Door,
    feeds: wakeline_feed::http::Door,
    durable: Option<Arc<View>>,
}

/// All routes, and the document that describes them.
fn router(shared: &ServerState, doors: Doors, metering: metering::Metering, auth: &Auth) -> Router {
    let jobs = doors.jobs;
    let (router, document) = OpenApiRouter::with_openapi(document::empty())
        .merge(wakeline_queue::http::router(doors.queue))
        .merge(wakeline_jobs::http::router(jobs.jobs, jobs.frames))
        .merge(wakeline_feed::http::router(doors.feeds))
        .merge(durable::router(doors.durable))
        .merge(health::router(shared.clone()))
        .merge(waits::router(shared.clone()))
        .merge(metering::router(shared.clone(), metering))
        .split_for_parts();
    let router = router.route_layer(RouteCheck(KnownParameters::of(&document)));
    let document = document::with_security(document, auth)
        .to_pretty_json()
        .expect("the document is plain data");
    router
        .route_service("/socket.io", jobs.socket_io.clone())
        .route_service("/socket.io/", jobs.socket_io)
        .route(
            "/openapi.json",
            axum::routing::get(move || async move {
                ([(http::header::CONTENT_TYPE, "application/json")], document)
            }),
        )
        .fallback(|| async { Problem::not_found("there is no such route; see /openapi.json") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                http::StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "this route does not take this method; see /openapi.json",
            )
        })
}

/// The message at the start.
struct Announcement<'a> {
    /// One at least.
    addresses: &'a [SocketAddr],
    shared: &'a ServerState,
    config: &'a Config,
}

impl fmt::Display for Announcement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = format!("http://{}", self.addresses[0]);
        writeln!(out, "wakeline {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "  listening on  {url}")?;
        for address in &self.addresses[1..] {
            writeln!(out, "                http://{address}")?;
        }
        writeln!(out, "  store         {}", self.shared.stores)?;
        let bus = match self.shared.bus.status().kind {
            "memory" => "in this process; one node".to_owned(),
            "postgres" => "PostgreSQL NOTIFY".to_owned(),
            kind => format!("{kind}, channel {}", self.config.bus.channel),
        };
        writeln!(out, "  bus           {bus}")?;
        if !self.config.asks_for_login() {
            if !self.config.listen.is_loopback() {
                writeln!(
                    out,
                    "  WARNING       every caller that reaches this address has all rights (--insecure)"
                )?;
            }
        } else {
            writeln!(
                out,
                "  calls need    Authorization: Bearer <{}>",
                match (
                    self.config.auth.tokens.is_empty(),
                    self.config.jwt.has_key()
                ) {
                    (false, false) => "one of auth.tokens",
                    (false, true) => "one of auth.tokens, or a signed token (auth.jwt)",
                    (true, _) => "a signed token (auth.jwt)",
                }
            )?;
        }
        writeln!(
            out,
            "  web pages     {}",
            match self.config.http.allowed_origins.as_slice() {
                [] => "of this address only (http.allowed_origins)".to_owned(),
                origins => format!("of {}", origins.join(", ")),
            }
        )?;
        writeln!(
            out,
            "  try           curl '{url}/api/v1/pop/queue/hello?wait=true&autoAck=true' &"
        )?;
        write!(
            out,
            "                curl {url}/api/v1/push -d '{{\"items\":[{{\"queue\":\"hello\",\"payload\":\"world\"}}]}}'"
        )
    }
}

/// Errors are ignored: the server runs without a standard output too.
fn announce(announcement: &Announcement<'_>) {
    let _ = writeln!(std::io::stdout(), "{announcement}");
    let _ = std::io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_settings_are_those_of_the_queue_door() {
        let limits = queue_limits(&Config::default());
        assert_eq!(limits, wakeline_queue::Limits::default());
    }
}
