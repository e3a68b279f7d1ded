//! Bare hyper connections: no pool, no redirects, nothing that a held request would pay for.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};

/// So many connections are opened at a time: more would overrun the server's accept queue.
const OPENING_AT_ONCE: usize = 256;
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The smallest that hyper takes; an answer here is one short message.
const HTTP1_BUFFER: usize = 8192;
/// A stalled connection must not be what a wake of everybody measures.
const HTTP2_WINDOW: u32 = 4 * 1024 * 1024;
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// One server, its name resolved once for all connections.
#[derive(Debug)]
pub(super) struct Node {
    authority: String,
    prefix: String,
    address: SocketAddr,
    authorization: Option<HeaderValue>,
}

impl Node {
    /// Fails at once when nobody listens there.
    pub(super) async fn reach(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{url:?} is not a URL"))?;
        let authority = uri
            .authority()
            .with_context(|| format!("{url:?} names no host"))?;
        let target = (
            authority.host().trim_matches(['[', ']']),
            authority.port_u16().unwrap_or(80),
        );
        let address = tokio::net::lookup_host(target)
            .await
            .with_context(|| format!("resolving {url}"))?
            .next()
            .with_context(|| format!("{url} resolves to no address"))?;
        let authorization = token
            .map(|token| HeaderValue::from_str(&format!("Bearer {token}")))
            .transpose()
            .context("the token cannot stand in a header")?;
        let node = Self {
            authority: authority.to_string(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            address,
            authorization,
        };
        connect(&node).await?;
        Ok(node)
    }
}

/// Gives each waiter its way to the server: a connection of its own over HTTP/1.1, a share of
/// one of a few over HTTP/2.
#[derive(Debug)]
pub(super) struct Links {
    nodes: Vec<Node>,
    shared: Vec<Mutex<Option<Link>>>,
    opening: Semaphore,
}

impl Links {
    pub(super) fn http1(nodes: Vec<Node>) -> Self {
        Self {
            nodes,
            shared: Vec::new(),
            opening: Semaphore::new(OPENING_AT_ONCE),
        }
    }

    pub(super) fn http2(nodes: Vec<Node>, connections: usize) -> Self {
        // Every node has at least one, or its share of the waiters would go elsewhere.
        let connections = connections.max(nodes.len());
        Self {
            shared: (0..connections).map(|_| Mutex::default()).collect(),
            ..Self::http1(nodes)
        }
    }

    pub(super) fn node(&self, waiter: usize) -> &Node {
        let place = if self.shared.is_empty() {
            waiter
        } else {
            waiter % self.shared.len()
        };
        &self.nodes[place % self.nodes.len()]
    }

    pub(super) async fn take(&self, waiter: usize) -> anyhow::Result<Link> {
        let node = self.node(waiter);
        if self.shared.is_empty() {
            let _permit = self.opening.acquire().await?;
            return Ok(Link::Http1(open_http1(node).await?));
        }
        let mut slot = self.shared[waiter % self.shared.len()].lock().await;
        if let Some(Link::Http2(link)) = &*slot
            && !link.is_closed()
        {
            return Ok(Link::Http2(link.clone()));
        }
        let link = open_http2(node).await?;
        *slot = Some(Link::Http2(link.clone()));
        Ok(Link::Http2(link))
    }
}

async fn open_http1(node: &Node) -> anyhow::Result<http1::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HTTP1_BUFFER)
        .handshake(connect(node).await?)
        .await?;
    // Its end shows at the sender, which reports it with the request it belongs to.
    tokio::spawn(connection);
    Ok(sender)
}

async fn open_http2(node: &Node) -> anyhow::Result<http2::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_connection_window_size(HTTP2_WINDOW)
        .handshake(connect(node).await?)
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn connect(node: &Node) -> anyhow::Result<TokioIo<TcpStream>> {
    let socket = tokio::time::timeout(CONNECT_TIME, TcpStream::connect(node.address))
        .await
        .with_context(|| format!("connecting to {} took too long", node.address))?
        .with_context(|| format!("connecting to {}", node.address))?;
    socket.set_nodelay(true)?;
    Ok(TokioIo::new(socket))
}

#[derive(Debug)]
pub(super) enum Link {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Link {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    /// The body of a 2xx; empty for a 204. Anything else is an error with the server's words.
    pub(super) async fn send(
        &mut self,
        node: &Node,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Bytes> {
        let request = self.request(node, method, path, body)?;
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES)
            .collect()
            .await
            .map_err(anyhow::Error::from_boxed)?
            .to_bytes();
        if status.is_success() {
            Ok(if status == StatusCode::NO_CONTENT {
                Bytes::new()
            } else {
                body
            })
        } else {
            let shown: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            bail!("{status}: {shown}")
        }
    }

    fn request(
        &self,
        node: &Node,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> http::Result<Request<Full<Bytes>>> {
        let path = format!("{}{path}", node.prefix);
        let mut request = Request::builder();
        request = match self {
            // An HTTP/1.1 server takes an absolute form for a proxy's request.
            Self::Http1(_) => request.uri(path).header(header::HOST, &node.authority),
            Self::Http2(_) => request.uri(
                Uri::builder()
                    .scheme(Scheme::HTTP)
                    .authority(node.authority.as_str())
                    .path_and_query(path)
                    .build()?,
            ),
        };
        if let Some(authorization) = &node.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.method(method).body(Full::new(body))
    }
}
