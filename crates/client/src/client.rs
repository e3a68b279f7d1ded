//! The client: one method per call of the server.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;

use crate::address::BaseUrl;
use crate::pop::PopRequest;
use crate::push::{self, PushBody};
use crate::{Ack, AckResult, Error, Outcome, PopResult, PushItem, PushResult, Readiness, Waits};

/// How long a request that is not held may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer than its hold a held request may take: the server answers at the end of the hold,
/// and the response needs some time to arrive.
const HOLD_MARGIN: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// No response of the protocol is nearly as large; that of another server may be.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// A client of one server. Clones share its connections: over HTTP/1.1 each request under way has its
/// own connection, over HTTP/2 all share one. Dropping a method's future closes its request: a held
/// pop ends at once, and a write may or may not have been made.
#[derive(Debug, Clone)]
pub struct Client {
    base: BaseUrl,
    authorization: Option<HeaderValue>,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
}

/// The options of a [`Client`]; see [`Client::builder`].
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    base_url: String,
    token: Option<String>,
    http2: bool,
}

impl ClientBuilder {
    /// The bearer token of each request. Default: none.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// Uses HTTP/2 with prior knowledge: the server must speak it on its plain port. Default:
    /// HTTP/1.1.
    #[must_use]
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Checks the address and the token. It does not connect yet.
    pub fn build(self) -> Result<Client, Error> {
        let base = BaseUrl::parse(&self.base_url)?;
        let authorization = self.token.as_deref().map(bearer).transpose()?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .http2_only(self.http2)
            .build(connector);
        Ok(Client {
            base,
            authorization,
            http,
        })
    }
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Client {
    /// A client of the server at `base_url` (such as `http://127.0.0.1:6632`) over HTTP/1.1, with or
    /// without a bearer token.
    pub fn new(base_url: impl Into<String>, token: Option<String>) -> Result<Self, Error> {
        Self::builder(base_url).token(token).build()
    }

    /// For a client with other options.
    pub fn builder(base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            base_url: base_url.into(),
            token: None,
            http2: false,
        }
    }

    /// Pushes messages. Returns one result per item, in the order of the items; an item that fails
    /// does not keep the others from being pushed.
    pub async fn push(&self, items: &[PushItem]) -> Result<Vec<PushResult>, Error> {
        let call = Call::post("/api/v1/push", &PushBody { items }, push::outcome(items));
        self.send(call).await?.accepted()?.json()
    }

    /// Pops messages; `None` if none arrived within the hold.
    pub async fn pop(&self, pop: &PopRequest) -> Result<Option<PopResult>, Error> {
        let mut call = Call::get(pop.path_and_query(), pop.outcome());
        if let Some(hold) = pop.hold() {
            call.time = hold + HOLD_MARGIN;
        }
        let response = self.send(call).await?.accepted()?;
        if response.status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let popped: PopResult = response.json()?;
        Ok((!popped.messages.is_empty()).then_some(popped))
    }

    /// Acknowledges one message. A repeat is safe: it finds the message acknowledged.
    pub async fn ack(&self, ack: &Ack) -> Result<AckResult, Error> {
        let response = self
            .send(Call::post("/api/v1/ack", ack, Outcome::Repeatable))
            .await?
            .accepted()?;
        let results: Vec<AckResult> = response.json()?;
        results
            .into_iter()
            .next()
            .ok_or_else(|| response.undecodable("the list is empty"))
    }

    /// The requests that the server holds, as `GET /v1/waits` lists them.
    pub async fn waits(&self) -> Result<Waits, Error> {
        self.read("/v1/waits").await?.json()
    }

    /// The number of requests that the server holds.
    pub async fn waiting(&self) -> Result<u64, Error> {
        let waits: Waits = self.read("/v1/waits?limit=1").await?.json()?;
        Ok(waits.total)
    }

    /// Succeeds if the server's process answers.
    pub async fn livez(&self) -> Result<(), Error> {
        self.read("/livez").await.map(drop)
    }

    /// Whether the server takes requests; `verbose` asks for the state of each part.
    pub async fn readyz(&self, verbose: bool) -> Result<Readiness, Error> {
        let path = if verbose {
            "/readyz?verbose"
        } else {
            "/readyz"
        };
        let response = self.send(Call::get(path, Outcome::Repeatable)).await?;
        let ready = response.status.is_success();
        if !ready && response.status != StatusCode::SERVICE_UNAVAILABLE {
            return Err(response.refused());
        }
        Ok(Readiness {
            ready,
            status: response.status,
            body: response.text(),
        })
    }

    /// The server's metrics in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, Error> {
        Ok(self.read("/metrics").await?.text())
    }

    async fn read(&self, path: &str) -> Result<Response, Error> {
        self.send(Call::get(path, Outcome::Repeatable))
            .await?
            .accepted()
    }

    async fn send(&self, call: Call) -> Result<Response, Error> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(self.base.uri(&call.path))
            .header(
                header::ACCEPT,
                "application/json, application/problem+json, text/plain",
            );
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if call.method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(call.body.clone()))
            .expect("every part was checked before");

        let transport = |outcome, source| Error::Transport {
            request: call.name(),
            outcome,
            source,
        };
        let exchange = async {
            let answered = self.http.request(request).await.map_err(|error| {
                let outcome = if error.is_connect() {
                    Outcome::NotSent
                } else {
                    call.outcome
                };
                transport(outcome, error.into())
            })?;
            let (head, body) = answered.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES)
                .collect()
                .await
                .map_err(|error| transport(call.outcome, error))?
                .to_bytes();
            Ok(Response {
                request: call.name(),
                status: head.status,
                headers: head.headers,
                body,
            })
        };
        match tokio::time::timeout(call.time, exchange).await {
            Ok(result) => result,
            Err(elapsed) => Err(transport(call.outcome, elapsed.into())),
        }
    }
}

struct Call {
    method: Method,
    path: String,
    body: Bytes,
    outcome: Outcome,
    time: Duration,
}

impl Call {
    fn get(path: impl Into<String>, outcome: Outcome) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: Bytes::new(),
            outcome,
            time: RESPONSE_TIMEOUT,
        }
    }

    fn post(path: &str, body: &impl serde::Serialize, outcome: Outcome) -> Self {
        let body = serde_json::to_vec(body).expect("the protocol's shapes are JSON");
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path, outcome)
        }
    }

    /// Without the query, which may contain data of users.
    fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

struct Response {
    request: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Response {
    fn accepted(self) -> Result<Self, Error> {
        if self.status.is_success() {
            Ok(self)
        } else {
            Err(self.refused())
        }
    }

    fn refused(self) -> Error {
        Error::refused(self.request, self.status, &self.headers, &self.body)
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.undecodable(&error.to_string()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn undecodable(&self, reason: &str) -> Error {
        Error::Undecodable {
            request: self.request.clone(),
            status: self.status,
            reason: reason.to_owned(),
        }
    }
}
