//! A store of the test's own, the routes on it, and the steps that tests share.

use std::{sync::Arc, time::Duration};

use ::http::{Request, StatusCode, header};
use axum::{
    Router,
    body::{Body, to_bytes},
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;
use wakeline_jobs::{
    caller::Caller,
    frame::{Draft, Frame, FrameLimits, msgpack::Walk},
    frames::{Frames, Limits},
    http,
    store::{
        frames::Frames as Store,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestDatabase, local_bus};

use crate::ports::FakePorts;

pub(crate) const MSGPACK: &str = "application/x-msgpack";
const JSON: &str = "application/json";
/// Longer than any answer of a test.
const ALL: usize = 100 << 20;

pub(crate) const ME: Caller = Caller {
    id: Uuid::from_u128(1),
    is_superuser: false,
};
pub(crate) const OTHER: Caller = Caller {
    id: Uuid::from_u128(2),
    is_superuser: false,
};
pub(crate) const ADMIN: Caller = Caller {
    id: Uuid::from_u128(3),
    is_superuser: true,
};

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ports: Arc<FakePorts>,
    pub(crate) frames: Arc<Frames>,
    router: Router,
    _database: TestDatabase,
}

/// Limits so wide that a test meets only those that it sets.
fn limits() -> Limits {
    Limits {
        frame: FrameLimits::default(),
        request: 1_000,
        room: 1_000_000,
        copy: 256 << 20,
        messages: 1_000,
        asked: 1_000,
        asked_at_once: 32,
        asked_bytes: 256 << 20,
        wait: Duration::from_secs(5),
        max_wait: Duration::from_secs(30),
    }
}

impl Fixture {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await;
        let store: Arc<dyn Store> = match database.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        };
        let ports = Arc::<FakePorts>::default();
        let frames = service(&store, &ports, limits());
        Self {
            router: routes(&frames),
            store,
            ports,
            frames,
            _database: database,
        }
    }

    /// The same store with other limits of frames.
    pub(crate) fn with_limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = limits();
        change(&mut limits);
        self.frames = service(&self.store, &self.ports, limits);
        self.router = routes(&self.frames);
        self
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn ask(&self, caller: Caller, line: &str, body: Value) -> TestAnswer {
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        let request = request(Some(caller), line).header(header::CONTENT_TYPE, JSON);
        TestAnswer::of(self.send(request.body(body).unwrap()).await).await
    }

    pub(crate) async fn upload(&self, line: &str, body: impl Into<Vec<u8>>) -> TestAnswer {
        let request = request(Some(ME), line).header(header::CONTENT_TYPE, MSGPACK);
        let request = request.body(Body::from(body.into())).unwrap();
        TestAnswer::of(self.send(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestAnswer {
        self.ask(ME, &format!("GET {path}"), Value::Null).await
    }

    /// A `GET` with `Prefer: wait=…`.
    pub(crate) async fn get_within(&self, seconds: u32, path: &str) -> TestAnswer {
        let request = request(Some(ME), &format!("GET {path}"));
        let request = request.header("prefer", format!("wait={seconds}"));
        TestAnswer::of(self.send(request.body(Body::empty()).unwrap()).await).await
    }

    pub(crate) async fn make_room(&self, room: &str) {
        let body = json!({"room_id": room, "copy_from": "@none"});
        let made = self.ask(ME, "POST /v1/rooms", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }

    /// Appends a frame with each of these marks.
    pub(crate) async fn append(&self, room: &str, marks: &[&str]) {
        let frames: Vec<_> = marks.iter().map(|mark| in_json(&frame(mark))).collect();
        let line = format!("POST /v1/rooms/{room}/frames");
        let done = self.ask(ME, &line, json!({ "frames": frames })).await;
        assert_eq!(done.status, StatusCode::CREATED, "{}", done.text());
    }

    /// The marks of a room's frames.
    pub(crate) async fn marks(&self, room: &str) -> Vec<String> {
        self.get(&format!("/v1/rooms/{room}/frames")).await.marks()
    }

    /// Mounts `count` frames of a provider of [`ME`] in the room.
    pub(crate) async fn mount(&self, room: &str, frames: i64) {
        let provider = crate::ports::provider(room, "mount", ME.id);
        self.ports.register(provider);
        let line = format!("PATCH /v1/rooms/{room}");
        let done = self.ask(ME, &line, json!({ "frame_count": frames })).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    }
}

fn service(store: &Arc<dyn Store>, ports: &Arc<FakePorts>, limits: Limits) -> Arc<Frames> {
    Frames::new(
        store.clone(),
        local_bus(),
        ports.clone(),
        ports.clone(),
        ports.clone(),
        limits,
    )
}

fn routes(frames: &Arc<Frames>) -> Router {
    let routes = http::rooms::router(frames.clone());
    let (router, _) = routes
        .merge(http::frames::router(frames.clone()))
        .merge(http::chat::router(frames.clone()))
        .merge(http::progress::router(frames.clone()))
        .split_for_parts();
    router
}

pub(crate) fn request(caller: Option<Caller>, line: &str) -> ::http::request::Builder {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    if let Some(caller) = caller {
        request.extensions_mut().unwrap().insert(caller);
    }
    request
}

/// A frame with the required keys and a mark.
pub(crate) fn frame(mark: &str) -> Frame {
    let keys = [
        ("arrays.colors", "c"),
        ("arrays.radii", "r"),
        ("mark", mark),
    ];
    frame_of(&keys.map(|(key, value)| (key, value.as_bytes())))
}

pub(crate) fn frame_of(pairs: &[(&str, &[u8])]) -> Frame {
    let mut draft = Draft::new(FrameLimits::default());
    for (key, value) in pairs {
        draft.put(key.as_bytes(), value).unwrap();
    }
    draft.finish()
}

/// The frame as ZnDraw's client uploads it in JSON.
pub(crate) fn in_json(frame: &Frame) -> Value {
    let members = frame.pairs().map(|(key, value)| {
        let key = format!("b64:{}", BASE64_STANDARD.encode(key));
        (key, Value::from(BASE64_STANDARD.encode(value)))
    });
    Value::Object(members.collect())
}

pub(crate) struct TestAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: ::http::HeaderMap,
    pub(crate) body: bytes::Bytes,
}

impl TestAnswer {
    pub(crate) async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: to_bytes(body, ALL).await.unwrap(),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The frames of an answer that succeeded.
    pub(crate) fn frames(&self) -> Vec<Frame> {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        assert_eq!(self.header("content-type"), Some(MSGPACK));
        frames_in(&self.body)
    }

    pub(crate) fn marks(&self) -> Vec<String> {
        self.frames().iter().map(mark).collect()
    }
}

pub(crate) fn frames_in(body: &[u8]) -> Vec<Frame> {
    let mut walk = Walk::new(body);
    let count = walk.array().unwrap();
    let frames = (0..count).map(|_| Frame::walk(&mut walk, FrameLimits::default()).unwrap());
    let frames = frames.collect();
    walk.end().unwrap();
    frames
}

pub(crate) fn mark(frame: &Frame) -> String {
    let mut pairs = frame.pairs();
    let mark = pairs.find(|(key, _)| *key == b"mark").expect("a mark");
    String::from_utf8(mark.1.to_vec()).unwrap()
}
