//! The HTTP side: opens sessions, answers polls, and turns connections into WebSockets.
//!
//! The upgrade is done here and not by the library, so that the connection is a [`Wire`].

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use socketioxide::socket::Sid;
use tokio::time::timeout;
use tungstenite::handshake::derive_accept_key;
use wakeline_web::Problem;

use super::{
    session::{Session, Sessions},
    wire::Wire,
};

/// From the answer to an upgrade to the WebSocket.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of what a client sends before it has connected: its token, with what is around it.
const MAX_ANONYMOUS_BODY: usize = 16 << 10;
/// Before the JSON of the packet that opens a session.
const OPEN: &[u8] = b"0";

/// To be mounted at `/socket.io` and `/socket.io/`.
#[derive(Clone)]
pub struct Service {
    sessions: Arc<Sessions>,
    patience: Duration,
}

impl Service {
    pub(super) fn new(sessions: Arc<Sessions>, patience: Duration) -> Self {
        Self { sessions, patience }
    }

    async fn answer(self, request: Request) -> Response {
        if self.sessions.is_closing() {
            return closing().into_response();
        }
        let upgrades = wants_websocket(&request);
        let Some(id) = parameter(&request, "sid") else {
            let Some(session) = self.sessions.open() else {
                return full().into_response();
            };
            return if upgrades {
                self.upgrade(session, request, false)
            } else {
                self.open(session, request).await
            };
        };
        let Some(session) = id.parse().ok().and_then(|id| self.sessions.find(id)) else {
            return unknown();
        };
        if session.is_cut() {
            return cut().into_response();
        }
        if upgrades {
            return self.upgrade(session, request, true);
        }
        if request.method() == Method::GET {
            self.poll(session, request).await
        } else {
            self.post(session, request).await
        }
    }

    async fn open(self, session: Arc<Session>, request: Request) -> Response {
        let mut bare = bare(&request, session.clone()).map(|()| Body::empty());
        *bare.method_mut() = request.method().clone();
        drop(request);
        let (parts, body) = self.sessions.ask(bare).await.into_parts();
        // The whole body was read already.
        let Ok(opened) = body.collect().await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let opened = opened.to_bytes();
        if let Some(id) = opened.strip_prefix(OPEN).and_then(opened_id) {
            session.is(id);
        }
        Response::from_parts(parts, Body::from(opened))
    }

    async fn poll(self, session: Arc<Session>, request: Request) -> Response {
        if let Some(rest) = session.take_rest() {
            return payload(rest.into());
        }
        let asked = session
            .cutting()
            .run_until_cancelled(self.sessions.ask(request));
        let Some(response) = asked.await else {
            return cut().into_response();
        };
        if response.status() != StatusCode::OK {
            return response;
        }
        match response.into_body().collect().await {
            Ok(answer) => payload(session.shorten(answer.to_bytes()).into()),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    /// The library would wait for the body for as long as the client likes.
    async fn post(self, session: Arc<Session>, mut request: Request) -> Response {
        let patience = self.patience;
        if !session.is_connected() {
            if request.body().size_hint().lower() > MAX_ANONYMOUS_BODY as u64 {
                return too_large().into_response();
            }
            request = request.map(|body| Body::new(Limited::new(body, MAX_ANONYMOUS_BODY)));
        }
        match timeout(patience, self.sessions.ask(request)).await {
            Ok(response) => response,
            Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
        }
    }

    fn upgrade(self, session: Arc<Session>, mut request: Request, polled: bool) -> Response {
        let accepted = accept(request.headers());
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        let (Some(accepted), Some(upgrade)) = (accepted, upgrade) else {
            return not_a_websocket().into_response();
        };
        let bare = bare(&request, session.clone());
        let upgrading = session.clone();
        let connect = async move {
            if polled {
                session.upgrade().await;
            }
            let Ok(stream) = upgrade.await else {
                session.stay();
                return;
            };
            let wire = Wire::new(TokioIo::new(stream), session, self.patience);
            let begun = tower::Service::call(&mut self.sessions.engine(), (wire, bare)).await;
            if let Err(error) = begun {
                tracing::debug!(%error, "a WebSocket did not speak Engine.IO");
            }
        };
        tokio::spawn(async move {
            let connected = timeout(UPGRADE_PATIENCE, connect);
            if !matches!(
                upgrading.cutting().run_until_cancelled(connected).await,
                Some(Ok(()))
            ) {
                // In the middle of an upgrade: a new session is better.
                upgrading.cut();
            }
        });
        switching(accepted)
    }
}

impl tower::Service<Request> for Service {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Service").finish_non_exhaustive()
    }
}

/// The library keeps its request for as long as the session, so this has only what it needs.
fn bare(request: &Request, session: Arc<Session>) -> http::Request<()> {
    let mut bare = http::Request::new(());
    *bare.uri_mut() = request.uri().clone();
    bare.extensions_mut().insert(session);
    bare
}

fn wants_websocket(request: &Request) -> bool {
    request.method() == Method::GET
        && parameter(request, "EIO") == Some("4")
        && parameter(request, "transport") == Some("websocket")
}

fn parameter<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut pairs = request.uri().query()?.split('&');
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn opened_id(packet: &[u8]) -> Option<Sid> {
    #[derive(Deserialize)]
    struct OpenPacket {
        sid: Sid,
    }
    Some(serde_json::from_slice::<OpenPacket>(packet).ok()?.sid)
}

/// The header that shows the client that its WebSocket was understood.
fn accept(headers: &HeaderMap) -> Option<HeaderValue> {
    let upgrade = headers.get(header::UPGRADE)?.to_str().ok()?;
    let version = headers.get(header::SEC_WEBSOCKET_VERSION)?;
    if !upgrade.eq_ignore_ascii_case("websocket") || version != "13" {
        return None;
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
    derive_accept_key(key.as_bytes()).try_into().ok()
}

fn switching(accepted: HeaderValue) -> Response {
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    response
}

fn payload(packets: Body) -> Response {
    let text = HeaderValue::from_static("text/plain; charset=UTF-8");
    ([(header::CONTENT_TYPE, text)], packets).into_response()
}

/// In Engine.IO's form, as for what the library refuses.
fn unknown() -> Response {
    let json = HeaderValue::from_static("application/json");
    let text = r#"{"code":1,"message":"Session ID unknown"}"#;
    (
        StatusCode::BAD_REQUEST,
        [(header::CONTENT_TYPE, json)],
        text,
    )
        .into_response()
}

fn closing() -> Problem {
    Problem::unavailable("draining", "this server is stopping; connect again")
}

fn cut() -> Problem {
    let detail = "the session was cut, because its client was too slow or the server is stopping; \
                  connect again";
    Problem::unavailable("session-cut", detail)
}

fn full() -> Problem {
    let detail = "as many clients are connected as this server takes (jobs.max_sockets); \
                  nothing was done, try again later";
    Problem::unavailable("too-many-sockets", detail)
}

fn too_large() -> Problem {
    let detail = format!(
        "body: longer than {MAX_ANONYMOUS_BODY} bytes, the limit for a client that has not connected"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}

fn not_a_websocket() -> Problem {
    Problem::invalid(
        "Upgrade",
        "a WebSocket of version 13, over HTTP/1.1, is expected",
    )
}
