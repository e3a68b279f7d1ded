//! The client: one method per thing the server does.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;

use crate::address::Base;
use crate::pop::PopRequest;
use crate::push::{self, PushBody};
use crate::{Ack, AckResult, Error, Outcome, Popped, PushItem, Pushed, Readiness, Waits};

/// What a request that is not held may take.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// What a held request may take beyond its hold: the server answers at the deadline, and the
/// answer still has to travel.
const HOLD_MARGIN: Duration = Duration::from_secs(10);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// No answer of the protocol comes near this; a wrong address might.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A handle on one server. Clones share its connections; each request under way has its own
/// connection over HTTP/1.1, and all share one over HTTP/2. Dropping a method's future drops the
/// request: a held pop leaves the server at once.
#[derive(Debug, Clone)]
pub struct Client {
    base: Base,
    authorization: Option<HeaderValue>,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
}

#[derive(Debug, Clone)]
pub struct Builder {
    base_url: String,
    token: Option<String>,
    http2: bool,
}

impl Builder {
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// HTTP/2 without asking first: the server must speak it on its plain port.
    #[must_use]
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    pub fn build(self) -> Result<Client, Error> {
        let base = Base::parse(&self.base_url)?;
        let authorization = self.token.as_deref().map(bearer).transpose()?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIME));
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
    pub fn new(base_url: impl Into<String>, token: Option<String>) -> Result<Self, Error> {
        Self::builder(base_url).token(token).build()
    }

    pub fn builder(base_url: impl Into<String>) -> Builder {
        Builder {
            base_url: base_url.into(),
            token: None,
            http2: false,
        }
    }

    /// One result per item, in the order of the items. An item that failed is in its result:
    /// the others are pushed all the same.
    pub async fn push(&self, items: &[PushItem]) -> Result<Vec<Pushed>, Error> {
        let call = Call::post("/api/v1/push", &PushBody { items }, push::outcome(items));
        self.send(call).await?.accepted()?.json()
    }

    /// `None` when there was nothing to take within the hold.
    pub async fn pop(&self, pop: &PopRequest) -> Result<Option<Popped>, Error> {
        let mut call = Call::get(pop.path_and_query(), pop.outcome());
        if let Some(hold) = pop.hold() {
            call.time = hold + HOLD_MARGIN;
        }
        let answer = self.send(call).await?.accepted()?;
        if answer.status == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let popped: Popped = answer.json()?;
        Ok((!popped.messages.is_empty()).then_some(popped))
    }

    /// Repeating an ack is safe: the second one finds the message acknowledged.
    pub async fn ack(&self, ack: &Ack) -> Result<AckResult, Error> {
        let answer = self
            .send(Call::post("/api/v1/ack", ack, Outcome::Repeatable))
            .await?
            .accepted()?;
        let results: Vec<AckResult> = answer.json()?;
        results
            .into_iter()
            .next()
            .ok_or_else(|| answer.undecodable("the list is empty"))
    }

    pub async fn waits(&self) -> Result<Waits, Error> {
        self.read("/v1/waits").await?.json()
    }

    /// How many requests the server holds, without their list.
    pub async fn waiting(&self) -> Result<u64, Error> {
        let waits: Waits = self.read("/v1/waits?limit=1").await?.json()?;
        Ok(waits.total)
    }

    pub async fn livez(&self) -> Result<(), Error> {
        self.read("/livez").await.map(drop)
    }

    pub async fn readyz(&self, verbose: bool) -> Result<Readiness, Error> {
        let path = if verbose {
            "/readyz?verbose"
        } else {
            "/readyz"
        };
        let answer = self.send(Call::get(path, Outcome::Repeatable)).await?;
        let ready = answer.status.is_success();
        if !ready && answer.status != StatusCode::SERVICE_UNAVAILABLE {
            return Err(answer.refused());
        }
        Ok(Readiness {
            ready,
            status: answer.status,
            body: answer.text(),
        })
    }

    /// In the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, Error> {
        Ok(self.read("/metrics").await?.text())
    }

    async fn read(&self, path: &str) -> Result<Answer, Error> {
        self.send(Call::get(path, Outcome::Repeatable))
            .await?
            .accepted()
    }

    async fn send(&self, call: Call) -> Result<Answer, Error> {
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
            let response = self.http.request(request).await.map_err(|error| {
                let outcome = if error.is_connect() {
                    Outcome::NotSent
                } else {
                    call.outcome
                };
                transport(outcome, error.into())
            })?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES)
                .collect()
                .await
                .map_err(|error| transport(call.outcome, error))?
                .to_bytes();
            Ok(Answer {
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
            time: ANSWER_TIME,
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

    /// Without the query: it belongs in a log no more than a payload does.
    fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

struct Answer {
    request: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
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
