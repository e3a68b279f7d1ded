//! The connections of the held pops: one each over HTTP/1.1, a share of one of a few over HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Uri, header};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::{Mutex, Semaphore};

use crate::connection::{HttpRequest, Request, Response, ServerAddress};

/// So many connections are opened at a time: more would overrun the server's accept queue.
const OPENING_AT_ONCE: usize = 256;
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The smallest that hyper takes; a response here is one short message.
const HTTP1_BUFFER: usize = 8192;
/// A stalled connection must not be what a wake of all pops measures.
const HTTP2_WINDOW: u32 = 4 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ConnectionPool {
    nodes: Vec<Arc<ServerAddress>>,
    /// Empty over HTTP/1.1.
    shared: Vec<Mutex<Option<http2::SendRequest<Full<Bytes>>>>>,
    opening: Semaphore,
}

impl ConnectionPool {
    pub(super) fn http1(nodes: Vec<Arc<ServerAddress>>) -> Self {
        Self {
            nodes,
            shared: Vec::new(),
            opening: Semaphore::new(OPENING_AT_ONCE),
        }
    }

    pub(super) fn http2(nodes: Vec<Arc<ServerAddress>>, connections: usize) -> Self {
        // Every node has at least one, or its share of the waiters would go elsewhere.
        let connections = connections.max(nodes.len());
        Self {
            shared: (0..connections).map(|_| Mutex::default()).collect(),
            ..Self::http1(nodes)
        }
    }

    pub(super) fn node(&self, waiter: usize) -> &ServerAddress {
        let connection = match self.shared.len() {
            0 => waiter,
            shared => waiter % shared,
        };
        &self.nodes[connection % self.nodes.len()]
    }

    pub(super) async fn connection(&self, waiter: usize) -> anyhow::Result<PopConnection> {
        let node = self.node(waiter);
        if self.shared.is_empty() {
            let _permit = self.opening.acquire().await?;
            return Ok(PopConnection::Http1(open_http1(node).await?));
        }
        let mut shared = self.shared[waiter % self.shared.len()].lock().await;
        let sender = match shared.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => open_http2(node).await?,
        };
        *shared = Some(sender.clone());
        Ok(PopConnection::Http2(sender))
    }
}

async fn open_http1(node: &ServerAddress) -> anyhow::Result<http1::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HTTP1_BUFFER)
        .handshake(node.connect(CONNECT_TIMEOUT).await?)
        .await?;
    // The sender reports the end of the connection, with the request that it concerns.
    tokio::spawn(connection);
    Ok(sender)
}

async fn open_http2(node: &ServerAddress) -> anyhow::Result<http2::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_connection_window_size(HTTP2_WINDOW)
        .handshake(node.connect(CONNECT_TIMEOUT).await?)
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// The way of one waiter to its server.
#[derive(Debug)]
pub(super) enum PopConnection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl PopConnection {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    /// Fails with the server's words unless the status is a 2xx.
    pub(super) async fn send(
        &mut self,
        node: &ServerAddress,
        request: Request,
    ) -> anyhow::Result<Response> {
        let request = node.http_request(request);
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(as_http2(request, node)?).await?
            }
        };
        let response = Response::receive(response).await?;
        response.check()?;
        Ok(response)
    }
}

/// HTTP/2 has the authority in the URL, where HTTP/1.1 would take it for a proxy's request.
fn as_http2(mut request: HttpRequest, node: &ServerAddress) -> anyhow::Result<HttpRequest> {
    let path = std::mem::take(request.uri_mut());
    *request.uri_mut() = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(node.authority().as_bytes())
        .path_and_query(path.to_string())
        .build()?;
    request.headers_mut().remove(header::HOST);
    Ok(request)
}
