//! One node: the jobs door as `crates/server` wires it, on a listener of its own.

use std::{net::SocketAddr, ops::Deref, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt;
use uuid::Uuid;
use wakeline_bus::{Bus, Options, Recheck};
use wakeline_jobs::{
    frame::FrameLimits,
    frames::{self, Frames},
    internal::Registry,
    results::{ResultBackend, by_category::ResultsByCategory, files::Files},
    service::{Dependencies, Jobs, Settings},
    socket::{Limits, Sockets},
    store::Store,
    topic::{DOOR, Wait},
    users::{self, UserChanges, Users},
};
use wakeline_testkit::{DatabaseKind, Fixture, eventually, listen, soon};
use wakeline_wake::{Cause, Engine, Wake};
use wakeline_web::Identity;

use crate::{
    database::{Database, Stores},
    gated_store::GatedStore,
    provider::Provider,
};

pub(crate) struct Node {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) results: Arc<GatedStore>,
    pub(crate) address: SocketAddr,
    pub(crate) bus: Arc<Bus>,
    router: Router,
    /// Tokens of two users.
    pub(crate) anna: String,
    pub(crate) ben: String,
}

/// A node on a database of its own.
pub(crate) struct OneNode {
    node: Node,
    pub(crate) database: Database,
}

impl Deref for OneNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Fixture for OneNode {
    async fn open(kind: DatabaseKind) -> Self {
        let database = Database::open(kind).await;
        let node = Node::new(&database).await;
        Self { node, database }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Fails unless the answer is 200 with this body.
    pub(crate) fn is_ok(&self, body: &str) {
        assert_eq!(
            (self.status, &*self.body),
            (StatusCode::OK, body.as_bytes())
        );
    }

    pub(crate) fn id(&self) -> Uuid {
        self.json()["id"].as_str().unwrap().parse().unwrap()
    }
}

/// The parts of a node that a test may replace.
pub(crate) struct Wiring {
    pub(crate) settings: Settings,
    pub(crate) internal: Registry,
    /// The directory of the files backend, and its limit in bytes.
    pub(crate) files: Option<(PathBuf, u64)>,
}

impl Default for Wiring {
    fn default() -> Self {
        Self {
            settings: patient(),
            internal: Registry::new(),
            files: None,
        }
    }
}

/// Timeouts so long that a test meets only those that it sets.
pub(crate) fn patient() -> Settings {
    let seconds = Duration::from_secs;
    Settings {
        categories: vec!["modifiers".to_owned()],
        provider_categories: Vec::new(),
        worker_timeout: seconds(60),
        internal_timeout: seconds(3_600),
        internal_tasks: 4,
        keep_tasks: seconds(3_600),
        result_ttl: seconds(300),
        error_ttl: seconds(5),
        inflight_ttl: seconds(30),
        read_hold: seconds(30),
        max_read_hold: seconds(30),
        max_task_hold: seconds(60),
        timeout_is_not_found: false,
        require_workers: false,
        max_result: 64 << 20,
        upload_memory: 256 << 20,
        upload_patience: seconds(30),
        max_schema: 256 << 10,
        max_retries: 100,
    }
}

fn frame_limits() -> frames::Limits {
    frames::Limits {
        frame: FrameLimits::default(),
        request: 1_000,
        room: 1_000,
        copy: 1 << 20,
        messages: 1_000,
        asked: 1_000,
        asked_at_once: 32,
        asked_bytes: 1 << 20,
        wait: Duration::from_secs(5),
        max_wait: Duration::from_secs(30),
    }
}

impl Node {
    pub(crate) async fn new(database: &Database) -> Self {
        Self::with(database, patient()).await
    }

    pub(crate) async fn with(database: &Database, settings: Settings) -> Self {
        let wiring = Wiring {
            settings,
            ..Wiring::default()
        };
        Self::wired(database, wiring).await
    }

    pub(crate) async fn wired(database: &Database, wiring: Wiring) -> Self {
        let engine = Engine::new(wakeline_wake::Limits::default());
        let bus = Bus::local(engine.clone());
        Self::on(database.stores().await, engine, bus, wiring).await
    }

    /// Two nodes on one database, connected by the bus. `None` on SQLite.
    pub(crate) async fn pair(database: &Database) -> Option<[Self; 2]> {
        let mut nodes = Vec::new();
        for _ in 0..2 {
            let stores = database.stores().await;
            let engine = Engine::new(wakeline_wake::Limits::default());
            let connector = database.connector()?;
            let bus = Bus::postgres(engine.clone(), connector, &Options::default());
            nodes.push(Self::on(stores, engine, bus, Wiring::default()).await);
        }
        let nodes: [Self; 2] = nodes.try_into().ok()?;
        for node in &nodes {
            eventually("the nodes to know one another", async || {
                !node.bus.is_alone()
            })
            .await;
        }
        Some(nodes)
    }

    async fn on(stores: Stores, engine: Arc<Engine>, bus: Arc<Bus>, wiring: Wiring) -> Self {
        tokio::spawn(engine.clone().run());
        let allowed = users::Settings {
            min_password: 8,
            secret: None,
            token_lifetime: Duration::from_secs(3_600),
            is_dev: false,
            admin: None,
            guests: true,
            registration: false,
            keep_guests: Duration::from_secs(3_600),
            open_lists: true,
        };
        let users = Arc::new(
            Users::open(stores.users, bus.clone(), allowed)
                .await
                .unwrap(),
        );
        let (sockets, socket_io) = Sockets::new(&Limits {
            connections: 100,
            max_payload: 1_000_000,
            buffer: 1_000,
            ping_interval: Duration::from_secs(25),
            ping_timeout: Duration::from_secs(20),
        });
        let place: Arc<dyn ResultBackend> = match wiring.files {
            Some((directory, cap)) => {
                let files = Files::open(&directory, cap, stores.results, bus.clone());
                Arc::new(files.unwrap())
            }
            None => stores.results,
        };
        let results = Arc::new(GatedStore::new(stores.store.clone(), place, bus.clone()));
        let dependencies = Dependencies {
            store: results.clone(),
            engine: engine.clone(),
            bus: bus.clone(),
            sockets: sockets.clone(),
            results: ResultsByCategory {
                default: results.clone(),
                by_category: Vec::new(),
            },
            users: users.clone(),
            internal: wiring.internal,
        };
        let jobs = Jobs::new(dependencies, wiring.settings);
        let neighbour = Arc::new(jobs.clone());
        let frames = Frames::new(
            stores.frames,
            bus.clone(),
            neighbour.clone(),
            neighbour.clone(),
            neighbour.clone(),
            frame_limits(),
        );
        jobs.has_frames(frames.clone());
        users.set_worker_remover(neighbour.clone());
        sockets.serve(neighbour);
        let (routes, _) = wakeline_jobs::http::router(jobs.clone(), frames).split_for_parts();
        let router = routes
            .route_service("/socket.io", socket_io.clone())
            .route_service("/socket.io/", socket_io);
        let address = listen(router.clone()).await;
        let mut node = Self {
            jobs,
            engine,
            sockets,
            store: stores.store,
            results,
            address,
            bus,
            router,
            anna: String::new(),
            ben: String::new(),
        };
        (node.anna, node.ben) = (node.guest().await, node.guest().await);
        node
    }

    /// Registers the node's internal jobs and providers and works on them, as the server's own
    /// user.
    pub(crate) async fn run_internals(&self) {
        let users = self.jobs.users();
        let headers = HeaderMap::new();
        let server = users.identify(&headers, Some(&Identity::ANONYMOUS)).await;
        tokio::spawn(self.jobs.clone().run_internals(server.unwrap()));
    }

    /// The token of another user, a superuser.
    pub(crate) async fn superuser(&self) -> String {
        let token = self.guest().await;
        let me = self.send("GET /v1/auth/users/me", &token, &[], "").await;
        let changes = UserChanges {
            is_superuser: Some(true),
            ..UserChanges::default()
        };
        self.jobs.users().change(me.id(), changes).await.unwrap();
        token
    }

    async fn guest(&self) -> String {
        let answer = self.send("POST /v1/auth/guest", "", &[], "").await;
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// `POST /path` with this token, in a task of its own.
    pub(crate) fn begin(
        &self,
        what: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> JoinHandle<Answer> {
        let responding = self.respond(what, token, headers, body);
        tokio::spawn(async move {
            let (parts, body) = responding.await.into_parts();
            Answer {
                status: parts.status,
                headers: parts.headers,
                body: axum::body::to_bytes(body, 2 << 20).await.unwrap(),
            }
        })
    }

    /// A response whose body has not been read yet.
    pub(crate) fn respond(
        &self,
        what: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> BoxFuture<'static, Response> {
        let (method, path) = what.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let router = self.router.clone();
        async move { router.oneshot(request).await.unwrap() }.boxed()
    }

    pub(crate) async fn send(
        &self,
        what: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        answered(self.begin(what, token, headers, body)).await
    }

    /// Sends a request with a JSON body as Anna.
    pub(crate) async fn tell(&self, what: &str, body: Value) -> Answer {
        self.send(what, &self.anna, &[], body.to_string()).await
    }

    /// Registers Anna's provider of the room "r" and the category "fs".
    pub(crate) async fn register(&self, name: &str) -> Answer {
        self.register_with(name, json!({})).await
    }

    pub(crate) async fn register_with(&self, name: &str, more: Value) -> Answer {
        let mut body = json!({ "category": "fs", "name": name });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.tell("PUT /v1/joblib/rooms/r/providers", body).await
    }

    /// A provider that is registered and has joined on this node.
    pub(crate) async fn provider(&self, name: &str) -> Provider {
        let registered = self.register(name).await;
        assert_eq!(registered.status, StatusCode::CREATED, "{registered:?}");
        Provider::join(self, name, registered.id()).await
    }

    /// A read by Ben: `name?query`.
    pub(crate) fn read(&self, what: &str) -> JoinHandle<Answer> {
        self.read_with(what, &[])
    }

    pub(crate) fn read_with(&self, what: &str, headers: &[(&str, &str)]) -> JoinHandle<Answer> {
        let what = format!("GET /v1/joblib/rooms/r/providers/r:fs:{what}");
        self.begin(&what, &self.ben, headers, "")
    }

    /// The free memory for uploads.
    pub(crate) fn free_memory(&self) -> u64 {
        self.jobs.memory().free()
    }

    /// The number of waiters whose wait is accepted by `fits`.
    pub(crate) fn waiting(&self, fits: impl Fn(&Wait) -> bool) -> usize {
        let waiting = self.engine.waiting(DOOR);
        let those = waiting
            .iter()
            .filter(|waiting| Wait::read(&waiting.topic).is_some_and(|wait| fits(&wait)));
        those.map(|waiting| waiting.waiters).sum()
    }

    pub(crate) async fn readers_are(&self, count: usize) {
        eventually(&format!("{count} readers"), async || {
            self.waiting(|wait| matches!(wait, Wait::Result(..))) == count
        })
        .await;
    }

    /// One recheck, as the fallback does it.
    pub(crate) async fn recheck(&self) -> usize {
        let waiting = self.engine.waiting(DOOR);
        let due = self.jobs.recheck(waiting).await.unwrap();
        for due in &due {
            let wake = Wake::all(due.key.topic.clone());
            self.engine.wake(&wake, Cause::Fallback);
        }
        due.len()
    }

    pub(crate) async fn in_flight(&self, name: &str) -> usize {
        let name = wakeline_jobs::name::FullName::new("r", "fs", name);
        let found = self.store.find_providers(vec![name]).await.unwrap();
        let provider = found[0].as_ref().unwrap();
        let open = self.results.in_flight(provider.id, provider.version).await;
        open.unwrap().len()
    }
}

pub(crate) async fn answered(asked: JoinHandle<Answer>) -> Answer {
    soon("an answer", asked).await.unwrap()
}
