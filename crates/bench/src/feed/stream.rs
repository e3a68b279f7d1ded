//! One open stream of a feed, as its frames come.

use anyhow::Context;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;

use super::facts::PREFIX;
use crate::contestant::Contestant;
use crate::line::Ask;

/// Of one frame; a page has a hundred tuples.
const MOST_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct Stream {
    body: Incoming,
    rest: BytesMut,
    /// When the last of `rest` came.
    at: Instant,
}

pub(super) struct Frame {
    pub(super) at: Instant,
    /// None at all is SYNC.
    pub(super) hashes: Vec<String>,
}

#[derive(Deserialize)]
struct Page {
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    hash: String,
}

impl Stream {
    pub(super) fn request(server: &Contestant, feed: &str) -> Ask {
        let path = server.path(&format!("{PREFIX}/feeds/{feed}?b="));
        Ask::get(path).with("accept", "application/x-jinaga-feed-stream")
    }

    pub(super) fn of(body: Incoming) -> Self {
        Self {
            body,
            rest: BytesMut::new(),
            at: Instant::now(),
        }
    }

    pub(super) async fn frame(&mut self) -> anyhow::Result<Frame> {
        loop {
            while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line = self.rest.split_to(end + 1);
                // A blank one ends a frame, or says that the server is there.
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let page: Page = serde_json::from_slice(&line).context("no frame")?;
                return Ok(Frame {
                    at: self.at,
                    hashes: page.references.into_iter().map(|one| one.hash).collect(),
                });
            }
            anyhow::ensure!(self.rest.len() < MOST_BYTES, "a frame has no end");
            let frame = self.body.frame().await.context("the stream has ended")??;
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
                self.at = Instant::now();
            }
        }
    }
}
