//! One HTTP/1.1 connection that is kept: the cheapest way to ask a server again and again.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

const CONNECT_TIME: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Where a server is, its name resolved once for all lines.
#[derive(Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    host: HeaderValue,
    prefix: String,
    authorization: Option<HeaderValue>,
}

impl Target {
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
            .context("the token cannot stand in a header")?;
        Ok(Arc::new(Self {
            address,
            host: HeaderValue::from_str(authority.as_str())?,
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
}

/// A request that can be sent again and again.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    method: Method,
    path: Uri,
    extra: Option<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Ask {
    pub(crate) fn get(path: Uri) -> Self {
        Self::new(Method::GET, path, Bytes::new())
    }

    pub(crate) fn new(method: Method, path: Uri, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            path,
            extra: None,
            body: body.into(),
        }
    }

    /// With one header more.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("values of a run are plain text");
        self.extra = Some((HeaderName::from_static(name), value));
        self
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Answer {
    /// For a message to a person.
    pub(crate) fn shown(&self) -> String {
        let text: String = String::from_utf8_lossy(&self.body)
            .chars()
            .take(300)
            .collect();
        format!("{}: {text}", self.status)
    }

    /// The body of a 2xx.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> anyhow::Result<T> {
        ensure!(self.status.is_success(), "{}", self.shown());
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not what was asked for: {}", self.shown()))
    }
}

/// Why there is no answer, and what that means for the request.
#[derive(Debug)]
pub(crate) enum Lost {
    /// It never left: nothing was done.
    NotSent(String),
    /// It may have been carried out or not.
    Unknown(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "not sent: {why}"),
            Self::Unknown(why) => write!(f, "no answer: {why}"),
        }
    }
}

impl std::error::Error for Lost {}

/// Opened with the first request, and again after a failure.
#[derive(Debug)]
pub(crate) struct Line {
    target: Arc<Target>,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
}

impl Line {
    pub(crate) fn to(target: &Arc<Target>) -> Self {
        Self {
            target: Arc::clone(target),
            sender: None,
        }
    }

    pub(crate) async fn get(&mut self, path: &Uri, within: Duration) -> Result<Answer, Lost> {
        self.send(Ask::get(path.clone()), within).await
    }

    pub(crate) async fn post(
        &mut self,
        path: &Uri,
        body: Bytes,
        within: Duration,
    ) -> Result<Answer, Lost> {
        let ask = Ask::new(Method::POST, path.clone(), body);
        self.send(ask, within).await
    }

    /// Ahead of the first request, which is then on its way at once.
    pub(crate) async fn open(&mut self) -> Result<(), Lost> {
        self.sender = Some(self.sender().await?);
        Ok(())
    }

    async fn sender(&mut self) -> Result<http1::SendRequest<Full<Bytes>>, Lost> {
        match self.sender.take() {
            Some(sender) if !sender.is_closed() => Ok(sender),
            _ => open(&self.target)
                .await
                .map_err(|error| Lost::NotSent(format!("{error:#}"))),
        }
    }

    /// Dropped half way, the connection is closed: the server sees the caller hang up.
    pub(crate) async fn send(&mut self, ask: Ask, within: Duration) -> Result<Answer, Lost> {
        let mut sender = self.sender().await?;
        let not_sent = |error: hyper::Error| Lost::NotSent(error.to_string());
        sender.ready().await.map_err(not_sent)?;
        let request = self.request(ask);
        let answer = tokio::time::timeout(within, exchange(&mut sender, request)).await;
        match answer {
            Ok(Ok(answer)) => {
                self.sender = Some(sender);
                Ok(answer)
            }
            Ok(Err(error)) => Err(Lost::Unknown(format!("{error:#}"))),
            Err(_) => Err(Lost::Unknown(format!("nothing within {within:?}"))),
        }
    }

    /// An answer that goes on, with the connection that it takes up.
    pub(crate) async fn stream(mut self, ask: Ask, within: Duration) -> anyhow::Result<Incoming> {
        let mut sender = self.sender().await?;
        let request = self.request(ask);
        let response = tokio::time::timeout(within, sender.send_request(request))
            .await
            .with_context(|| format!("nothing within {within:?}"))??;
        let status = response.status();
        ensure!(status.is_success(), "{status}");
        Ok(response.into_body())
    }

    fn request(&self, ask: Ask) -> Request<Full<Bytes>> {
        let has_body = ask.method != Method::GET;
        let mut request = Request::new(Full::new(ask.body));
        *request.method_mut() = ask.method;
        *request.uri_mut() = ask.path;
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.target.host.clone());
        if let Some(authorization) = &self.target.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        if let Some((name, value)) = ask.extra {
            headers.insert(name, value);
        }
        if has_body {
            let json = HeaderValue::from_static("application/json");
            headers.entry(header::CONTENT_TYPE).or_insert(json);
        }
        request
    }
}

async fn exchange(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Answer> {
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES)
        .collect()
        .await
        .map_err(anyhow::Error::from_boxed)?
        .to_bytes();
    Ok(Answer { status, body })
}

async fn open(target: &Target) -> anyhow::Result<http1::SendRequest<Full<Bytes>>> {
    let address = target.address;
    let socket = tokio::time::timeout(CONNECT_TIME, TcpStream::connect(address))
        .await
        .with_context(|| format!("connecting to {address} took too long"))?
        .with_context(|| format!("connecting to {address}"))?;
    socket.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // Its end shows at the sender, which reports it with the request it belongs to.
    tokio::spawn(connection);
    Ok(sender)
}
