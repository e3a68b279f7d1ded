//! Facts as graphs, and the feed of a root's items.

use std::fmt::Write;
use std::ops::Range;

use anyhow::Context;
use http::{Method, Uri};
use serde::Deserialize;

use crate::connection::{Connection, Request};
use crate::server::{REQUEST_TIMEOUT, Server};

pub(super) const PREFIX: &str = "/jinaga";

/// A root that only this run uses. Its items are saved and streamed.
#[derive(Debug, Clone)]
pub(super) struct Root {
    identifier: String,
    saves: Uri,
    feeds: Uri,
}

#[derive(Deserialize)]
struct FeedsResponse {
    feeds: Vec<String>,
}

impl Root {
    pub(super) fn new(server: &Server, name: &str) -> Self {
        Self {
            identifier: server.unique_name(name),
            saves: server.path(&format!("{PREFIX}/save")),
            feeds: server.path(&format!("{PREFIX}/feeds")),
        }
    }

    /// Returns when these items are on disk. Their graph includes the root, as the client sends it
    /// each time.
    pub(super) async fn save(
        &self,
        connection: &mut Connection,
        items: Range<usize>,
    ) -> anyhow::Result<()> {
        let saved = connection.send_ok(self.graph(items), REQUEST_TIMEOUT).await;
        saved.map(drop)
    }

    fn graph(&self, items: Range<usize>) -> Request {
        let root = &self.identifier;
        let mut graph = format!("\"Bench.Root\"\n{{}}\n{{\"identifier\":\"{root}\"}}\n\n");
        for item in items {
            let _ = write!(
                graph,
                "\"Bench.Item\"\n{{\"root\":0}}\n{{\"n\":{item}}}\n\n"
            );
        }
        Request::new(Method::POST, self.saves.clone(), graph)
            .with_header("content-type", "application/x-jinaga-graph-v1")
    }

    /// Registers the feed of its items, and returns the hash of the feed.
    pub(super) async fn feed(&self, connection: &mut Connection) -> anyhow::Result<String> {
        let text = format!(
            "let r: Bench.Root = {{ identifier: \"{}\" }}\n\n\
             (r: Bench.Root) {{\n    i: Bench.Item [\n        i->root: Bench.Root = r\n    ]\n}}\n",
            self.identifier
        );
        let request = Request::new(Method::POST, self.feeds.clone(), text);
        let request = request.with_header("content-type", "text/plain");
        let response = connection.send(request, REQUEST_TIMEOUT).await?;
        let FeedsResponse { mut feeds } = response.json()?;
        feeds.pop().context("the specification has no feed")
    }
}
