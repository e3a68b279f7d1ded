//! HTTP for tests: one connection that the test controls, and the whole answer.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::AbortHandle,
    time::timeout,
};

/// Longer than any hold of a test: an answer that does not come in this time never comes.
const NO_ANSWER: Duration = Duration::from_secs(90);

pub(crate) fn get(path: &str) -> Request<Bytes> {
    request("GET", path, Bytes::new())
}

pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    request("POST", path, body.into())
}

pub(crate) fn request(method: &str, path: &str, body: Bytes) -> Request<Bytes> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .expect("a request")
}

pub(crate) fn with_header(
    mut request: Request<Bytes>,
    name: &'static str,
    value: &str,
) -> Request<Bytes> {
    let value = value.parse().expect("a header's value");
    request.headers_mut().insert(name, value);
    request
}

/// One connection. Dropping it hangs up.
pub(crate) struct Line {
    address: SocketAddr,
    sender: Sender,
    connection: AbortHandle,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A body that comes after its head must not wait until the head is acknowledged.
async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("an option of a socket");
    stream
}

impl Line {
    pub(crate) async fn http1(address: SocketAddr) -> Self {
        let stream = connect(address).await;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .expect("HTTP/1.1");
        Self {
            address,
            sender: Sender::Http1(sender),
            connection: tokio::spawn(connection).abort_handle(),
        }
    }

    /// HTTP/2 with prior knowledge: no upgrade is negotiated.
    pub(crate) async fn http2(address: SocketAddr) -> Self {
        let stream = connect(address).await;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2");
        Self {
            address,
            sender: Sender::Http2(sender),
            connection: tokio::spawn(connection).abort_handle(),
        }
    }

    pub(crate) async fn call(&mut self, request: Request<Bytes>) -> hyper::Result<Answer> {
        self.begin(request).await
    }

    /// The answer to come. Over HTTP/2 many can be under way; dropping one resets its stream.
    pub(crate) fn begin(
        &mut self,
        request: Request<Bytes>,
    ) -> impl Future<Output = hyper::Result<Answer>> + Send + 'static {
        let mut request = request.map(Full::new);
        let host = self.address.to_string();
        let sending: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = match &mut self.sender {
            Sender::Http1(sender) => {
                let host = host.parse().expect("a host");
                request.headers_mut().entry("host").or_insert(host);
                Box::pin(sender.send_request(request))
            }
            Sender::Http2(sender) => {
                let absolute = format!("http://{host}{}", request.uri());
                *request.uri_mut() = absolute.parse().expect("a URL");
                Box::pin(sender.send_request(request))
            }
        };
        async move {
            let exchange = async {
                let (head, body) = sending.await?.into_parts();
                Ok(Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body: body.collect().await?.to_bytes(),
                })
            };
            match timeout(NO_ANSWER, exchange).await {
                Ok(answer) => answer,
                Err(_) => panic!("no answer: it hangs"),
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(json) => json,
            Err(error) => panic!("{error} in {}: {}", self.status, self.text()),
        }
    }

    /// The header's value, empty if the answer has no such header.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("a text"))
    }

    /// The body as a problem; fails if it is no valid problem document.
    pub(crate) fn problem(&self) -> Value {
        let about = format!("{} {}", self.status, self.text());
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{about}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{about}");
        for member in ["type", "title", "detail", "error"] {
            let text = problem[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "no {member}: {about}");
        }
        problem
    }

    /// The payloads of a pop's answer.
    pub(crate) fn payloads(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text());
        let json = self.json();
        let messages = json["messages"].as_array().expect("messages").iter();
        messages.map(|message| message["data"].clone()).collect()
    }
}

/// Sends `bytes` unchanged and reads one answer, or until the server closes. For requests that no
/// HTTP library sends.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> Answer {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut reading, mut writing) = stream.into_split();
    // The server may have answered and closed before it has read everything.
    let write = async {
        let _ = writing.write_all(bytes).await;
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    let read = async {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = reading.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..length]);
            if is_whole(&answer) {
                break;
            }
        }
    };
    let exchange = async {
        tokio::select! { () = write => {}, () = read => {} }
    };
    if timeout(NO_ANSWER, exchange).await.is_err() {
        panic!("no answer: it hangs");
    }
    parse(&answer)
}

fn is_whole(bytes: &[u8]) -> bool {
    if !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        return false;
    }
    let answer = parse(bytes);
    let length = answer.header("content-length").parse();
    length.is_ok_and(|length: usize| answer.body.len() >= length)
}

/// Like [`raw`], but everything is sent before the answer is read, as most clients do.
pub(crate) async fn raw_sent_first(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let exchange = async {
        stream.write_all(bytes).await.expect("everything is taken");
        // The connection may stay open: one buffer holds a problem.
        let mut buffer = vec![0; 4096];
        let length = stream.read(&mut buffer).await.expect("an answer");
        buffer.truncate(length);
        buffer
    };
    match timeout(NO_ANSWER, exchange).await {
        Ok(answer) => parse(&answer),
        Err(_) => panic!("no answer: it hangs"),
    }
}

/// The first answer in `bytes`, as sent with a length or until the close.
fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        panic!("no answer but {text:?}");
    };
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        Some((name.parse::<http::HeaderName>().ok()?, value.parse().ok()?))
    });
    Answer {
        status: status.and_then(|code| code.parse().ok()).expect("a status"),
        headers: headers.collect(),
        body: body.to_owned().into(),
    }
}
