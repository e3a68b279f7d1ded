//! A server of as much of Jinaga's protocol as the load generator speaks.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::watch;

use super::fake_server::{Body, FakeServer, Gauge, Protocol, header, json as json_response, whole};

const PAGE: usize = 100;
/// It rests all the time.
const METRICS: &str = "wakeline_statements_total 7\nprocess_cpu_seconds_total 1\n";

pub(crate) type FakeFeedServer = FakeServer<FeedState>;

#[derive(Default)]
pub(crate) struct FeedState {
    /// By the identifier of their root.
    items: Mutex<HashMap<String, BTreeSet<String>>>,
    /// How often something was saved.
    saves: watch::Sender<u64>,
    pub(crate) open: Gauge,
    pub(crate) refuses_saves: AtomicBool,
    pub(crate) loses_pages: AtomicBool,
}

impl Protocol for FeedState {
    async fn respond(self: Arc<Self>, head: Parts, body: Bytes) -> Response<Body> {
        let parts: Vec<&str> = head.uri.path().split('/').skip(1).collect();
        match (&head.method, &*parts) {
            (_, ["livez"]) => whole(StatusCode::OK, "ok"),
            (_, ["metrics"]) => whole(StatusCode::OK, METRICS),
            (&Method::POST, ["jinaga", "save"]) => self.save(&head, &body),
            (&Method::POST, ["jinaga", "feeds"]) => {
                let text = String::from_utf8(body.to_vec()).unwrap();
                assert!(text.contains("i->root: Bench.Root = r"), "{text}");
                let root = text.split('"').nth(1).unwrap();
                json_response(StatusCode::OK, &json!({"feeds": [root]}))
            }
            (&Method::GET, ["jinaga", "feeds", root]) => {
                let accepts = header(&head, "accept");
                assert_eq!(accepts, Some("application/x-jinaga-feed-stream"));
                Response::new(stream(self, (*root).to_owned()))
            }
            (_, path) => whole(StatusCode::NOT_FOUND, path.join("/")),
        }
    }
}

impl FeedState {
    /// How many items the root has whose name ends so.
    pub(crate) fn items(&self, name: &str) -> usize {
        let items = self.items.lock().unwrap();
        let found = items.iter().find(|(root, _)| root.ends_with(name));
        found.map_or(0, |(_, items)| items.len())
    }

    fn save(&self, head: &Parts, body: &[u8]) -> Response<Body> {
        if self.refuses_saves.load(Ordering::SeqCst) {
            return whole(StatusCode::SERVICE_UNAVAILABLE, "not now");
        }
        let content_type = header(head, "content-type");
        assert_eq!(content_type, Some("application/x-jinaga-graph-v1"));
        let text = std::str::from_utf8(body).unwrap();
        let mut blocks = text.strip_suffix("\n\n").unwrap().split("\n\n");
        let root = blocks.next().unwrap().split('"').nth(5).unwrap();
        let new = blocks.map(|block| {
            let lines: Vec<&str> = block.lines().collect();
            assert_eq!(lines[..2], ["\"Bench.Item\"", "{\"root\":0}"]);
            lines[2].to_owned()
        });
        let mut items = self.items.lock().unwrap();
        items.entry(root.to_owned()).or_default().extend(new);
        drop(items);
        self.saves.send_modify(|count| *count += 1);
        whole(StatusCode::CREATED, "Created")
    }

    fn next(&self, root: &str, seen: &BTreeSet<String>) -> Vec<String> {
        let items = self.items.lock().unwrap();
        let items = items.get(root).into_iter().flatten();
        let new = items.filter(|item| !seen.contains(*item)).cloned();
        new.take(PAGE).collect()
    }
}

/// Pages until there is no more, SYNC, and again after each save that has items for the stream.
fn stream(state: Arc<FeedState>, root: String) -> Body {
    let saves = state.saves.subscribe();
    let open = state.open.enter();
    let start = (open, saves, BTreeSet::new(), false);
    let frames = futures_util::stream::unfold(start, move |(open, mut saves, mut seen, synced)| {
        let (state, root) = (Arc::clone(&state), root.clone());
        async move {
            let loses = state.loses_pages.load(Ordering::SeqCst);
            let mut page = Vec::new();
            while page.is_empty() {
                saves.borrow_and_update();
                if !(loses && seen.len() >= PAGE) {
                    page = state.next(&root, &seen);
                }
                if page.is_empty() && !synced {
                    break;
                }
                if page.is_empty() {
                    saves.changed().await.ok()?;
                }
            }
            let synced = page.is_empty();
            let references: Vec<_> = page
                .iter()
                .map(|item| json!({"type": "Bench.Item", "hash": item}))
                .collect();
            seen.extend(page);
            // One more blank line, as a heartbeat is.
            let frame = json!({"references": references, "bookmark": "b"});
            let data = Frame::data(Bytes::from(format!("{frame}\n\n\n")));
            Some((Ok(data), (open, saves, seen, synced)))
        }
    });
    StreamBody::new(frames).boxed_unsync()
}
