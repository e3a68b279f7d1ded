//! A client of its own, which sees the bytes: where a line ends, and how a body does.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
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

/// What came on a connection so far.
struct Wire {
    socket: TcpStream,
    raw: Vec<u8>,
    is_closed: bool,
}

impl Wire {
    /// More, or `false` when the other side has closed.
    async fn more(&mut self) -> bool {
        let mut chunk = [0; 16_384];
        match self.socket.read(&mut chunk).await {
            Ok(0) | Err(_) => self.is_closed = true,
            Ok(read) => self.raw.extend_from_slice(&chunk[..read]),
        }
        !self.is_closed
    }

    /// Up to a mark, which is left out.
    fn take_until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let at = self
            .raw
            .windows(mark.len())
            .position(|window| window == mark)?;
        let taken = self.raw.drain(..at + mark.len()).take(at).collect();
        Some(taken)
    }
}

/// The beginning of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers = lines.filter_map(|line| line.split_once(':'));
        Self {
            status: status.parse().unwrap(),
            headers: headers
                .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
                .collect(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }
}

async fn send(socket: TcpStream, what: &str, headers: &[(&str, &str)], body: &str) -> (Head, Wire) {
    let mut text = format!("{what} HTTP/1.1\r\nHost: test\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    let mut wire = Wire {
        socket,
        raw: Vec::new(),
        is_closed: false,
    };
    wire.socket.write_all(text.as_bytes()).await.unwrap();
    wire.socket.write_all(body.as_bytes()).await.unwrap();
    loop {
        if let Some(head) = wire.take_until(b"\r\n\r\n") {
            return (Head::read(&head), wire);
        }
        assert!(wire.more().await, "the answer has no head");
    }
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
    let mut headers = headers.to_vec();
    headers.push(("Connection", "close"));
    let socket = TcpStream::connect(address).await.unwrap();
    let (head, mut wire) = soon("an answer", send(socket, what, &headers, body)).await;
    soon("a body", async { while wire.more().await {} }).await;
    let body = match head.header("transfer-encoding") {
        None => wire.raw,
        Some(_) => unchunked(&wire.raw),
    };
    Answer {
        head,
        body: String::from_utf8(body).unwrap(),
    }
}

/// What the chunks of a whole body have in them. It ends as it has to.
fn unchunked(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let at = raw.windows(2).position(|end| end == b"\r\n").unwrap();
        let size = std::str::from_utf8(&raw[..at]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        body.extend_from_slice(&raw[at + 2..at + 2 + size]);
        raw = &raw[at + 2 + size + 2..];
        if size == 0 {
            assert!(raw.is_empty(), "something comes after the last chunk");
            return body;
        }
    }
}

/// A body that goes on.
pub(crate) struct Stream {
    pub(crate) head: Head,
    wire: Wire,
    /// What the chunks had in them and nobody has read.
    text: Vec<u8>,
    /// The last chunk has come.
    is_complete: bool,
    /// Blank lines that end no frame.
    pub(crate) heartbeats: usize,
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
        let (head, wire) = soon("a stream", send(socket, &what, headers, "")).await;
        Self {
            head,
            wire,
            text: Vec::new(),
            is_complete: false,
            heartbeats: 0,
        }
    }

    /// A line without its end; `None` at the end of the body.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.iter().position(|byte| *byte == b'\n') {
                let line = self.text.drain(..=at).take(at).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if self.is_complete || !self.chunk().await {
                assert!(self.text.is_empty(), "it breaks off in a line");
                return None;
            }
        }
    }

    /// One more chunk, or `false` without any.
    async fn chunk(&mut self) -> bool {
        loop {
            let size = self.wire.raw.windows(2).position(|end| end == b"\r\n");
            if let Some(at) = size {
                let size = std::str::from_utf8(&self.wire.raw[..at]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let end = at + 2 + size + 2;
                if self.wire.raw.len() >= end {
                    let chunk: Vec<u8> = self.wire.raw.drain(..end).collect();
                    self.text.extend_from_slice(&chunk[at + 2..end - 2]);
                    self.is_complete = size == 0;
                    return !self.is_complete;
                }
            }
            if !self.wire.more().await {
                return false;
            }
        }
    }

    /// The next frame; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let frame = loop {
            let line = soon("a frame", self.line()).await?;
            if let Some(frame) = Frame::read(&line) {
                break frame;
            }
            self.heartbeats += 1;
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

    /// The rest. It ends as a chunked body has to.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        assert!(self.is_complete, "it ends without its last chunk");
        frames
    }
}
