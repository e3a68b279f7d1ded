//! HTTP to a measured server over bare hyper connections: no pool, no redirects, nothing that a
//! held request would pay for.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;
/// So much of a response is shown to a person.
const MAX_SHOWN_CHARS: usize = 300;

pub(crate) type HttpRequest = http::Request<Full<Bytes>>;

/// Where a server is, its name resolved once for all connections.
#[derive(Debug)]
pub(crate) struct ServerAddress {
    address: SocketAddr,
    authority: HeaderValue,
    prefix: String,
    authorization: Option<HeaderValue>,
}

impl ServerAddress {
    pub(crate) async fn resolve(url: &str, token: Option<&str>) -> anyhow::Result<Arc<Self>> {
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{url:?} is not a URL"))?;
        let authority = uri
            .authority()
            .with_context(|| format!("{url:?} names no host"))?;
        let name = authority.host().trim_matches(['[', ']']);
        let address = tokio::net::lookup_host((name, authority.port_u16().unwrap_or(80)))
            .await
            .with_context(|| format!("resolving {url}"))?
            .next()
            .with_context(|| format!("{url} resolves to no address"))?;
        let authorization = token
            .map(|token| HeaderValue::from_str(&format!("Bearer {token}")))
            .transpose()
            .context("the token has characters that a header cannot have")?;
        Ok(Arc::new(Self {
            address,
            authority: HeaderValue::from_str(authority.as_str())?,
            prefix: uri.path().trim_end_matches('/').to_owned(),
            authorization,
        }))
    }

    /// A path of this server, parsed once for all requests.
    pub(crate) fn path(&self, path: &str) -> Uri {
        format!("{}{path}", self.prefix)
            .parse()
            .expect("names of a run need no escapes")
    }

    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    pub(crate) async fn connect(&self, timeout: Duration) -> anyhow::Result<TokioIo<TcpStream>> {
        let address = self.address;
        let socket = tokio::time::timeout(timeout, TcpStream::connect(address))
            .await
            .with_context(|| format!("connecting to {address} took too long"))?
            .with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(TokioIo::new(socket))
    }

    /// As it is sent over HTTP/1.1.
    pub(crate) fn http_request(&self, request: Request) -> HttpRequest {
        let has_body = request.method != Method::GET;
        let mut http = HttpRequest::new(Full::new(request.body));
        *http.method_mut() = request.method;
        *http.uri_mut() = request.path;
        let headers = http.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        if let Some((name, value)) = request.header {
            headers.insert(name, value);
        }
        if has_body {
            let json = HeaderValue::from_static("application/json");
            headers.entry(header::CONTENT_TYPE).or_insert(json);
        }
        http
    }
}

/// A request that can be sent again and again.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    path: Uri,
    header: Option<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Request {
    pub(crate) fn get(path: Uri) -> Self {
        Self::new(Method::GET, path, Bytes::new())
    }

    pub(crate) fn new(method: Method, path: Uri, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            path,
            header: None,
            body: body.into(),
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("values of a run are plain text");
        self.header = Some((HeaderName::from_static(name), value));
        self
    }

    /// Asks the server to hold the request for at most this time.
    pub(crate) fn held_for(self, hold: Duration) -> Self {
        self.with_header("prefer", &format!("wait={}", hold.as_secs()))
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Response {
    pub(crate) async fn receive(response: http::Response<Incoming>) -> anyhow::Result<Self> {
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await
            .map_err(anyhow::Error::from_boxed)?
            .to_bytes();
        Ok(Self { status, body })
    }

    /// For a message to a person.
    pub(crate) fn describe(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        format!("{}: {text}", self.status)
    }

    /// Fails with the server's words unless the status is a 2xx.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.status.is_success(), "{}", self.describe());
        Ok(())
    }

    /// The body of a 2xx.
    pub(crate) fn json<'a, T: Deserialize<'a>>(&'a self) -> anyhow::Result<T> {
        self.check()?;
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not the JSON that was expected: {}", self.describe()))
    }
}

/// Why there is no response, and what that means for the request.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The request never left: the server did nothing.
    NotSent(String),
    /// The server may have carried it out or not.
    Unknown(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "not sent: {why}"),
            Self::Unknown(why) => write!(f, "no answer: {why}"),
        }
    }
}

impl std::error::Error for RequestError {}

/// One HTTP/1.1 connection that is kept: the cheapest way to send requests one after another.
/// Opened with the first request, and again after a failure.
#[derive(Debug)]
pub(crate) struct Connection {
    server: Arc<ServerAddress>,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn to(server: &Arc<ServerAddress>) -> Self {
        Self {
            server: Arc::clone(server),
            sender: None,
        }
    }

    pub(crate) async fn get(
        &mut self,
        path: &Uri,
        timeout: Duration,
    ) -> Result<Response, RequestError> {
        self.send(Request::get(path.clone()), timeout).await
    }

    pub(crate) async fn post(
        &mut self,
        path: &Uri,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Response, RequestError> {
        let request = Request::new(Method::POST, path.clone(), body);
        self.send(request, timeout).await
    }

    /// Ahead of the first request, which is then on its way at once.
    pub(crate) async fn open(&mut self) -> Result<(), RequestError> {
        self.sender = Some(self.sender().await?);
        Ok(())
    }

    async fn sender(&mut self) -> Result<http1::SendRequest<Full<Bytes>>, RequestError> {
        match self.sender.take() {
            Some(sender) if !sender.is_closed() => Ok(sender),
            _ => open(&self.server)
                .await
                .map_err(|error| RequestError::NotSent(format!("{error:#}"))),
        }
    }

    /// Dropped half way, the connection is closed: the server sees its client hang up.
    pub(crate) async fn send(
        &mut self,
        request: Request,
        timeout: Duration,
    ) -> Result<Response, RequestError> {
        let mut sender = self.sender().await?;
        let not_sent = |error: hyper::Error| RequestError::NotSent(error.to_string());
        sender.ready().await.map_err(not_sent)?;
        let request = self.server.http_request(request);
        let exchange = async { Response::receive(sender.send_request(request).await?).await };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(response)) => {
                self.sender = Some(sender);
                Ok(response)
            }
            Ok(Err(error)) => Err(RequestError::Unknown(format!("{error:#}"))),
            Err(_) => Err(RequestError::Unknown(format!("nothing within {timeout:?}"))),
        }
    }

    /// Fails unless the status is a 2xx.
    pub(crate) async fn send_ok(
        &mut self,
        request: Request,
        timeout: Duration,
    ) -> anyhow::Result<Response> {
        let response = self.send(request, timeout).await?;
        response.check()?;
        Ok(response)
    }

    /// A response without an end, with the connection that it takes up.
    pub(crate) async fn stream(
        mut self,
        request: Request,
        timeout: Duration,
    ) -> anyhow::Result<Incoming> {
        let mut sender = self.sender().await?;
        let request = self.server.http_request(request);
        let response = tokio::time::timeout(timeout, sender.send_request(request))
            .await
            .with_context(|| format!("nothing within {timeout:?}"))??;
        let status = response.status();
        ensure!(status.is_success(), "{status}");
        Ok(response.into_body())
    }
}

async fn open(server: &ServerAddress) -> anyhow::Result<http1::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::handshake(server.connect(CONNECT_TIMEOUT).await?).await?;
    // The sender reports the end of the connection, with the request that it concerns.
    tokio::spawn(connection);
    Ok(sender)
}
