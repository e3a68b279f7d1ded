//! An HTTP client that shows a stream line by line, and whether its body has ended properly.

use std::net::SocketAddr;

use http::response::Parts;
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use wakeline_feed::{
    bookmark::Bookmark,
    fact::{Hash, Reference},
};
use wakeline_testkit::soon;

pub(crate) const JINAGA: &str = "application/x-jinaga-feed-stream";
pub(crate) const EVENTS: &str = "text/event-stream";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) references: Vec<Reference>,
    pub(crate) bookmark: String,
    /// All of it.
    pub(crate) json: Value,
}

impl Frame {
    /// `None` for a blank line.
    pub(crate) fn read(line: &str) -> Option<Self> {
        if line.is_empty() {
            return None;
        }
        let json: Value = serde_json::from_str(line).expect("a line is JSON");
        let references = json["references"].as_array().expect("references");
        let reference = |value: &Value| Reference {
            kind: value["type"].as_str().unwrap().into(),
            hash: Hash::read(value["hash"].as_str().unwrap()).unwrap(),
        };
        Some(Self {
            references: references.iter().map(reference).collect(),
            bookmark: json["bookmark"].as_str().expect("a bookmark").to_owned(),
            json,
        })
    }

    pub(crate) fn is_sync(&self) -> bool {
        self.references.is_empty() && !self.is_denied()
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.json.get("decision").is_some()
    }

    pub(crate) fn place(&self) -> Bookmark {
        self.bookmark.parse().unwrap()
    }
}

/// The beginning of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    parts: Parts,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.parts.headers.get(name)?;
        Some(value.to_str().unwrap())
    }
}

/// `what` is a method and a path.
async fn send(
    socket: TcpStream,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (Head, Incoming) {
    let (method, path) = what.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers.iter().chain([&("Host", "test")]) {
        request = request.header(*name, *value);
    }
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    let request = request.body(body.to_owned()).unwrap();
    let answer: Response<Incoming> = sender.send_request(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let status = parts.status.as_u16();
    (Head { status, parts }, body)
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn page(&self) -> Frame {
        assert_eq!(self.head.status, 200, "{self:?}");
        Frame::read(&self.body).unwrap()
    }
}

/// `POST /path`, on a connection of its own.
pub(crate) async fn request(
    address: SocketAddr,
    what: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let socket = TcpStream::connect(address).await.unwrap();
    let (head, body) = soon("an answer", send(socket, what, headers, body)).await;
    let body = soon("a body", body.collect()).await.unwrap().to_bytes();
    Answer {
        head,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// A body that goes on.
pub(crate) struct Stream {
    pub(crate) head: Head,
    body: Incoming,
    /// The bytes that were received and not parsed yet.
    text: Vec<u8>,
}

impl Stream {
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        Self::on(socket, path, headers).await
    }

    /// With little room for what is not read yet.
    pub(crate) async fn narrow(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let socket = socket.connect(address).await.unwrap();
        Self::on(socket, path, headers).await
    }

    async fn on(socket: TcpStream, path: &str, headers: &[(&str, &str)]) -> Self {
        let what = format!("GET {path}");
        let (head, body) = soon("a stream", send(socket, &what, headers, "")).await;
        Self {
            head,
            body,
            text: Vec::new(),
        }
    }

    /// A line without its end; `None` at the end of the body.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.iter().position(|byte| *byte == b'\n') {
                let line = self.text.drain(..=at).take(at).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            let Some(chunk) = self.body.frame().await else {
                assert!(self.text.is_empty(), "it breaks off in a line");
                return None;
            };
            let chunk = chunk.expect("the body ends with its last chunk");
            self.text.extend_from_slice(&chunk.into_data().unwrap());
        }
    }

    /// The next frame; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let frame = loop {
            let line = soon("a frame", self.line()).await?;
            if let Some(frame) = Frame::read(&line) {
                break frame;
            }
        };
        let after = soon("the end of a frame", self.line()).await;
        assert_eq!(after.as_deref(), Some(""), "a blank line ends a frame");
        Some(frame)
    }

    /// A blank line that ends no frame.
    pub(crate) async fn heartbeat(&mut self) {
        let line = soon("a sign of life", self.line()).await;
        assert_eq!(line.as_deref(), Some(""));
    }

    /// All frames up to the next SYNC, that one too.
    pub(crate) async fn until_sync(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.expect("SYNC comes before the end");
            frames.push(frame);
            if frames.last().unwrap().is_sync() {
                return frames;
            }
        }
    }

    /// Frames until so many references have come.
    pub(crate) async fn until(&mut self, count: usize) -> Vec<Frame> {
        let (mut frames, mut received) = (Vec::new(), 0);
        while received < count {
            let frame = self.next().await.expect("it goes on");
            received += frame.references.len();
            frames.push(frame);
        }
        frames
    }

    /// The rest.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}
