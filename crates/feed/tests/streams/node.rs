//! One node: the door as `crates/server` wires it, on a listener of its own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{extract::Request, middleware::map_request};
use serde_json::json;
use wakeline_bus::{Bus, Intervals, Options};
use wakeline_feed::{
    fact::Fact,
    http::{self, Door, Limits},
    policy::Policies,
    service::{Feeds, Settings},
    store::Store,
};
use wakeline_testkit::{eventually, listen};
use wakeline_wake::Engine;
use wakeline_web::{Identity, Role};

use crate::{
    blog::{POSTS, as_graph, as_json, posts, reference_json, request_text, site},
    client::{Answer, JINAGA, Stream, request},
    counting_store::CountingStore,
    database::Database,
    stream_fixture::long_limits,
};

/// The header that names the user, in place of the server's own login.
pub(crate) const USER: &str = "x-user";

pub(crate) const GRAPH: &str = "application/x-jinaga-graph-v1";
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain";

/// A site, its posts, and the path of the feed of its posts.
pub(crate) struct Blog {
    pub(crate) home: Fact,
    pub(crate) posts: Vec<Fact>,
    pub(crate) path: String,
}

pub(crate) struct Node {
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<CountingStore>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) address: SocketAddr,
}

pub(crate) fn settings() -> Settings {
    Settings {
        stream: long_limits(),
        page_size: 100,
        max_facts: 250_000,
        max_references: 100_000,
        max_hold: Duration::from_secs(60),
        keep_definitions: Duration::from_secs(3_600),
    }
}

impl Node {
    pub(crate) async fn new(database: &Database) -> Self {
        Self::with(database, settings()).await
    }

    pub(crate) async fn with(database: &Database, settings: Settings) -> Self {
        Self::ruled(database, settings, None).await
    }

    pub(crate) async fn ruled(
        database: &Database,
        settings: Settings,
        policies: Option<Policies>,
    ) -> Self {
        let engine = Engine::new(wakeline_wake::Limits::default());
        let bus = Bus::local(engine.clone());
        Self::on(database, engine, bus, settings, policies).await
    }

    /// Where only so many may wait.
    pub(crate) async fn crowded(database: &Database, waiters: usize) -> Self {
        let engine = Engine::new(wakeline_wake::Limits {
            waiters,
            ..wakeline_wake::Limits::default()
        });
        let bus = Bus::local(engine.clone());
        Self::on(database, engine, bus, settings(), None).await
    }

    /// Nodes that hear one another: as many as asked for on PostgreSQL, one on SQLite.
    pub(crate) async fn several(database: &Database, count: usize) -> Vec<Self> {
        let Some(connector) = database.connector() else {
            return vec![Self::new(database).await];
        };
        let buses = |engine| Bus::postgres(engine, connector.clone(), &Options::default());
        Self::over(database, count, buses).await
    }

    /// The same over a bus of the test's choice.
    pub(crate) async fn over(
        database: &Database,
        count: usize,
        bus: impl Fn(Arc<Engine>) -> Arc<Bus>,
    ) -> Vec<Self> {
        let mut nodes = Vec::new();
        for _ in 0..count {
            let engine = Engine::new(wakeline_wake::Limits::default());
            let bus = bus(engine.clone());
            nodes.push(Self::on(database, engine, bus, settings(), None).await);
        }
        for node in &nodes {
            eventually("the nodes to know one another", async || {
                !node.bus.is_alone()
            })
            .await;
        }
        nodes
    }

    async fn on(
        database: &Database,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        settings: Settings,
        policies: Option<Policies>,
    ) -> Self {
        tokio::spawn(engine.clone().run());
        let store = CountingStore::new(database.store().await);
        let shared: Arc<dyn Store> = store.clone();
        let feeds = Feeds::new(shared, engine.clone(), bus.clone(), policies, settings);
        let intervals = Intervals {
            fallback: Duration::from_secs(3_600),
            degraded: Duration::from_millis(200),
        };
        tokio::spawn(wakeline_bus::watch(
            bus.clone(),
            engine.clone(),
            vec![feeds.clone()],
            intervals,
        ));
        let door = Door {
            feeds: feeds.clone(),
            login: None,
            limits: Limits {
                max_body: 10_000_000,
                max_graph: 100_000_000,
                body_timeout: Duration::from_secs(30),
            },
        };
        let (router, _) = http::router(door).split_for_parts();
        let address = listen(router.layer(map_request(identify))).await;
        Self {
            feeds,
            engine,
            store,
            bus,
            address,
        }
    }

    pub(crate) async fn post(&self, user: &str, path: &str, kind: &str, body: &str) -> Answer {
        let headers = [("Content-Type", kind), (USER, user)];
        request(self.address, &format!("POST {path}"), &headers, body).await
    }

    /// As a graph.
    pub(crate) async fn save(&self, facts: &[Fact]) {
        let body = as_graph(facts);
        let answer = self.post("", "/jinaga/save", GRAPH, &body).await;
        assert_eq!(answer.head.status, 201, "{answer:?}");
    }

    /// A fact whose predecessors are stored: as JSON, which names them by hash.
    pub(crate) async fn add(&self, fact: &Fact) {
        self.add_all(&[fact]).await;
    }

    pub(crate) async fn add_all(&self, facts: &[&Fact]) {
        let facts: Vec<_> = facts.iter().map(|fact| as_json(fact)).collect();
        let body = json!({ "facts": facts }).to_string();
        let answer = self.post("", "/jinaga/save", JSON, &body).await;
        assert_eq!(answer.head.status, 201, "{answer:?}");
    }

    pub(crate) async fn load_as(&self, user: &str, facts: &[&Fact]) -> Answer {
        let headers = [("Content-Type", JSON), ("Accept", JSON), (USER, user)];
        let body = references(facts);
        request(self.address, "POST /jinaga/load", &headers, &body).await
    }

    /// As a graph, which is the answer to a client that names no other form.
    pub(crate) async fn load_graph_as(&self, user: &str, facts: &[&Fact]) -> Answer {
        let body = references(facts);
        self.post(user, "/jinaga/load", JSON, &body).await
    }

    /// Saves a site with so many posts, and declares their feed.
    pub(crate) async fn blog(&self, count: usize) -> Blog {
        let home = site("home");
        let posts = posts(&home, "post", count);
        self.save(&[vec![home.clone()], posts.clone()].concat())
            .await;
        let path = self.declare(POSTS, &[&home]).await;
        Blog { home, posts, path }
    }

    /// The path of the last feed of a specification.
    pub(crate) async fn declare(&self, text: &str, given: &[&Fact]) -> String {
        self.declare_as("", text, given).await
    }

    pub(crate) async fn declare_as(&self, user: &str, text: &str, given: &[&Fact]) -> String {
        let mut paths = self.declare_all_as(user, text, given).await;
        paths.pop().unwrap()
    }

    /// The paths of all its feeds.
    pub(crate) async fn declare_all_as(
        &self,
        user: &str,
        text: &str,
        given: &[&Fact],
    ) -> Vec<String> {
        let text = request_text(text, given);
        let answer = self.post(user, "/jinaga/feeds", TEXT, &text).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        let json = answer.json();
        let hashes = json["feeds"].as_array().unwrap().iter();
        hashes
            .map(|hash| format!("/jinaga/feeds/{}", hash.as_str().unwrap()))
            .collect()
    }

    /// A stream that has sent all that is stored.
    pub(crate) async fn live(&self, path: &str) -> Stream {
        let mut stream = self.stream(path).await;
        stream.until_sync().await;
        stream
    }

    pub(crate) async fn stream(&self, path: &str) -> Stream {
        self.stream_as("", path).await
    }

    pub(crate) async fn stream_as(&self, user: &str, path: &str) -> Stream {
        let headers = [("Accept", JINAGA), (USER, user)];
        let stream = Stream::open(self.address, path, &headers).await;
        assert_eq!(stream.head.status, 200, "{:?}", stream.head);
        stream
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        request(self.address, &format!("GET {path}"), headers, "").await
    }

    pub(crate) async fn get_as(&self, user: &str, path: &str) -> Answer {
        self.get(path, &[(USER, user)]).await
    }

    /// Nothing is left of any stream.
    pub(crate) async fn no_streams_left(&self) {
        eventually("all streams to end", async || {
            self.feeds.streams() == 0 && self.engine.held() == 0
        })
        .await;
        assert_eq!(self.engine.topic_count(), 0);
    }
}

/// As the server's own login would.
async fn identify(mut request: Request) -> Request {
    let user = request.headers().get(USER);
    let user = user.map(|user| user.to_str().unwrap().to_owned());
    request.extensions_mut().insert(Identity {
        subject: user.filter(|user| !user.is_empty()),
        role: Role::Admin,
    });
    request
}

fn references(facts: &[&Fact]) -> String {
    let references = facts.iter().map(|fact| reference_json(&fact.reference));
    json!({ "references": references.collect::<Vec<_>>() }).to_string()
}
