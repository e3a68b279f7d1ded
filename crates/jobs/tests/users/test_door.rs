//! The routes of users, called without a network.

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request, response::Response, routing::get};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tower::ServiceExt;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;
use wakeline_jobs::{
    caller::{Caller, ListCaller, ProviderCaller},
    http::users::router,
    users::{Settings, Users, refreshing},
};
use wakeline_testkit::{DatabaseKind, Fixture, local_bus};
use wakeline_web::Identity;

use crate::{database::Database, tokens::known_secret};

pub(crate) const PASSWORD: &str = "correct horse";

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct TestDoor {
    pub(crate) users: Arc<Users>,
    router: Router,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// Neither guests nor registration.
pub(crate) fn closed() -> Settings {
    Settings {
        secret: None,
        token_lifetime: Duration::from_secs(3_600),
        is_dev: false,
        admin: None,
        guests: false,
        registration: false,
        min_password: 8,
        keep_guests: Duration::from_secs(30 * 86_400),
        open_lists: false,
    }
}

/// Guests and registration, but not dev mode.
pub(crate) fn open() -> Settings {
    Settings {
        guests: true,
        registration: true,
        ..closed()
    }
}

pub(crate) fn dev() -> Settings {
    Settings {
        is_dev: true,
        ..closed()
    }
}

/// Settings with the superuser `admin@example.com`.
pub(crate) fn guarded() -> Settings {
    Settings {
        admin: Some(("admin@example.com".to_owned(), PASSWORD.to_owned())),
        ..open()
    }
}

impl TestDoor {
    pub(crate) async fn new(database: &Database, settings: Settings) -> Self {
        let users = Users::open(database.store().await, local_bus(), settings).await;
        Self::of(Arc::new(users.unwrap()))
    }

    pub(crate) fn of(users: Arc<Users>) -> Self {
        // Routes that identify their caller as the other routes of the door do.
        let others = OpenApiRouter::new()
            .route("/caller", get(|caller: Caller| shown(Some(caller))))
            .route(
                "/reader",
                get(|ProviderCaller(caller): ProviderCaller| shown(Some(caller))),
            )
            .route(
                "/visitor",
                get(|ListCaller(caller): ListCaller| shown(caller)),
            )
            .route("/open", get(|| shown(None)))
            .with_state(users.clone());
        let others = refreshing(others, users.clone());
        // The routes of users, as the server has them.
        let (router, _) = router(users.clone()).merge(others).split_for_parts();
        Self { users, router }
    }

    /// `POST /path` with a token or without.
    pub(crate) async fn ask(&self, what: &str, token: Option<&str>) -> Answer {
        self.send(what, token, Body::empty()).await
    }

    pub(crate) async fn tell(&self, what: &str, token: Option<&str>, body: Value) -> Answer {
        self.send(what, token, Body::from(body.to_string())).await
    }

    pub(crate) async fn send(&self, what: &str, token: Option<&str>, body: Body) -> Answer {
        let mut request = begin(what);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.request(request.body(body).unwrap()).await
    }

    /// Calls a route as a subject that the server's own login has accepted.
    pub(crate) async fn ask_as(&self, what: &str, identity: Identity, body: Value) -> Answer {
        let request = begin(what).extension(identity);
        let body = Body::from(body.to_string());
        self.request(request.body(body).unwrap()).await
    }

    pub(crate) async fn request(&self, request: Request) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        read(response).await
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Answer {
        let form = format!("username={}&password={password}", email.replace('@', "%40"));
        self.send("POST /v1/auth/jwt/login", None, Body::from(form))
            .await
    }

    /// A token of a user whose password is [`PASSWORD`].
    pub(crate) async fn token(&self, email: &str) -> String {
        let answer = self.login(email, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.text("access_token").to_owned()
    }

    pub(crate) async fn register(&self, email: &str) -> Uuid {
        let body = json!({ "email": email, "password": PASSWORD });
        let answer = self.tell("POST /v1/auth/register", None, body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.id()
    }

    pub(crate) async fn guest(&self) -> String {
        let answer = self.ask("POST /v1/auth/guest", None).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.text("access_token").to_owned()
    }
}

macro_rules! doors {
    ($( $door:ident: $settings:path; )+) => { $(
        /// A node with these settings on a database of its own.
        pub(crate) struct $door {
            door: TestDoor,
            pub(crate) database: Database,
        }

        impl Deref for $door {
            type Target = TestDoor;

            fn deref(&self) -> &TestDoor {
                &self.door
            }
        }

        impl Fixture for $door {
            async fn open(kind: DatabaseKind) -> Self {
                let database = Database::open(kind).await;
                let door = TestDoor::new(&database, $settings()).await;
                Self { door, database }
            }
        }
    )+ };
}

doors! {
    OpenDoor: open;
    GuardedDoor: guarded;
    DevDoor: dev;
    SecretDoor: known_secret;
}

impl Answer {
    pub(crate) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> Uuid {
        self.text("id").parse().unwrap()
    }

    /// The status and the body, for snapshots of refusals.
    pub(crate) fn refusal(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.body)
    }
}

fn begin(what: &str) -> http::request::Builder {
    let (method, path) = what.split_once(' ').unwrap();
    Request::builder().method(method).uri(path)
}

async fn read(response: Response) -> Answer {
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap()
    };
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

fn shown(caller: Option<Caller>) -> std::future::Ready<axum::Json<Value>> {
    let shown = caller.map(|caller| json!({ "id": caller.id, "superuser": caller.is_superuser }));
    std::future::ready(axum::Json(shown.unwrap_or_default()))
}
