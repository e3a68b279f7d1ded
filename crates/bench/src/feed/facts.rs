//! Facts as graphs, and the feed of a root's items.

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, ensure};
use http::{Method, Uri};
use serde::Deserialize;

use crate::contestant::{Contestant, PATIENCE};
use crate::line::{Ask, Line};

pub(super) const PREFIX: &str = "/jinaga";

/// A root that nobody else has; what is saved and streamed are its items.
#[derive(Debug, Clone)]
pub(super) struct Root {
    identifier: String,
    saves: Uri,
    feeds: Uri,
}

#[derive(Deserialize)]
struct Feeds {
    feeds: Vec<String>,
}

impl Root {
    pub(super) fn new(server: &Contestant, name: &str) -> Self {
        Self {
            identifier: server.named(name),
            saves: server.path(&format!("{PREFIX}/save")),
            feeds: server.path(&format!("{PREFIX}/feeds")),
        }
    }

    /// Returns when some of its items are on disk. The root is in their graph, as the client sends
    /// it each time.
    pub(super) async fn save(&self, line: &mut Line, items: Range<usize>) -> anyhow::Result<()> {
        let answer = line.send(self.graph(items), PATIENCE).await?;
        ensure!(answer.status.is_success(), "{}", answer.shown());
        Ok(())
    }

    fn graph(&self, items: Range<usize>) -> Ask {
        let root = &self.identifier;
        let mut graph = format!("\"Bench.Root\"\n{{}}\n{{\"identifier\":\"{root}\"}}\n\n");
        for item in items {
            let _ = write!(
                graph,
                "\"Bench.Item\"\n{{\"root\":0}}\n{{\"n\":{item}}}\n\n"
            );
        }
        Ask::new(Method::POST, self.saves.clone(), graph)
            .with("content-type", "application/x-jinaga-graph-v1")
    }

    /// Makes the feed of its items known, and gives its hash.
    pub(super) async fn feed(&self, line: &mut Line) -> anyhow::Result<String> {
        let text = format!(
            "let r: Bench.Root = {{ identifier: \"{}\" }}\n\n\
             (r: Bench.Root) {{\n    i: Bench.Item [\n        i->root: Bench.Root = r\n    ]\n}}\n",
            self.identifier
        );
        let ask = Ask::new(Method::POST, self.feeds.clone(), text);
        let answer = line
            .send(ask.with("content-type", "text/plain"), PATIENCE)
            .await?;
        let Feeds { mut feeds } = answer.read()?;
        feeds.pop().context("the specification has no feed")
    }
}
