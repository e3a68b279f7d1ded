//! One open stream of a feed, read frame by frame.

use anyhow::Context;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;

use super::facts::PREFIX;
use crate::connection::Request;
use crate::server::Server;

/// A page has a hundred tuples.
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct FeedStream {
    body: Incoming,
    rest: BytesMut,
    /// When the last bytes of `rest` came.
    at: Instant,
}

pub(super) struct FeedFrame {
    pub(super) at: Instant,
    /// A frame without any is the SYNC.
    pub(super) hashes: Vec<String>,
}

#[derive(Deserialize)]
struct PageFrame {
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    hash: String,
}

impl FeedStream {
    pub(super) fn request(server: &Server, feed: &str) -> Request {
        let path = server.path(&format!("{PREFIX}/feeds/{feed}?b="));
        Request::get(path).with_header("accept", "application/x-jinaga-feed-stream")
    }

    pub(super) fn of(body: Incoming) -> Self {
        Self {
            body,
            rest: BytesMut::new(),
            at: Instant::now(),
        }
    }

    pub(super) async fn frame(&mut self) -> anyhow::Result<FeedFrame> {
        loop {
            while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let connection = self.rest.split_to(end + 1);
                // A blank line ends a frame, or is a heartbeat.
                if connection.trim_ascii().is_empty() {
                    continue;
                }
                let page: PageFrame =
                    serde_json::from_slice(&connection).context("the line is not a frame")?;
                return Ok(FeedFrame {
                    at: self.at,
                    hashes: page.references.into_iter().map(|one| one.hash).collect(),
                });
            }
            anyhow::ensure!(self.rest.len() < MAX_FRAME_BYTES, "a frame has no end");
            let frame = self.body.frame().await.context("the stream has ended")??;
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
                self.at = Instant::now();
            }
        }
    }
}
