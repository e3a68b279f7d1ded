//! A server of as much of Jinaga's protocol as the load generator speaks.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

const PAGE: usize = 100;
/// It rests all the time.
const METRICS: &str = "wakeline_statements_total 7\nprocess_cpu_seconds_total 1\n";

pub(crate) struct StandIn {
    pub(crate) url: String,
    pub(crate) state: Arc<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// By the identifier of their root.
    items: Mutex<HashMap<String, BTreeSet<String>>>,
    /// How often something was saved.
    saves: watch::Sender<u64>,
    open: AtomicUsize,
    pub(crate) most_open: AtomicUsize,
    pub(crate) refuses_saves: AtomicBool,
    pub(crate) loses_pages: AtomicBool,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl StandIn {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { url, state }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| respond(Arc::clone(&state), request));
            auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service)
                .await
        });
    }
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let parts: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    Ok(match (&head.method, &*parts) {
        (_, ["livez"]) => whole(StatusCode::OK, "ok"),
        (_, ["metrics"]) => whole(StatusCode::OK, METRICS),
        (&Method::POST, ["jinaga", "save"]) => state.save(&head, &body),
        (&Method::POST, ["jinaga", "feeds"]) => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert!(text.contains("i->root: Bench.Root = r"), "{text}");
            let root = text.split('"').nth(1).unwrap();
            whole(StatusCode::OK, json!({"feeds": [root]}).to_string())
        }
        (&Method::GET, ["jinaga", "feeds", root]) => {
            assert_eq!(header(&head, "accept"), "application/x-jinaga-feed-stream");
            Response::new(stream(state, (*root).to_owned()))
        }
        (_, path) => whole(StatusCode::NOT_FOUND, path.join("/")),
    })
}

impl State {
    /// How many the root whose name ends so has.
    pub(crate) fn items(&self, name: &str) -> usize {
        let items = self.items.lock().unwrap();
        let found = items.iter().find(|(root, _)| root.ends_with(name));
        found.map_or(0, |(_, items)| items.len())
    }

    fn save(&self, head: &Parts, body: &[u8]) -> Response<Body> {
        if self.refuses_saves.load(Ordering::SeqCst) {
            return whole(StatusCode::SERVICE_UNAVAILABLE, "not now");
        }
        assert_eq!(
            header(head, "content-type"),
            "application/x-jinaga-graph-v1"
        );
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

/// Pages until there is no more, SYNC, and again after each save that has something for it.
fn stream(state: Arc<State>, root: String) -> Body {
    let saves = state.saves.subscribe();
    let start = (Open::new(state), saves, BTreeSet::new(), false);
    let frames = futures_util::stream::unfold(start, move |(open, mut saves, mut seen, synced)| {
        let root = root.clone();
        async move {
            let loses = open.0.loses_pages.load(Ordering::SeqCst);
            let mut page = Vec::new();
            while page.is_empty() {
                saves.borrow_and_update();
                if !(loses && seen.len() >= PAGE) {
                    page = open.0.next(&root, &seen);
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
            // A blank line more, as a heartbeat is.
            let frame = json!({"references": references, "bookmark": "b"});
            let data = Frame::data(Bytes::from(format!("{frame}\n\n\n")));
            Some((Ok(data), (open, saves, seen, synced)))
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Counts a stream for as long as it is open.
struct Open(Arc<State>);

impl Open {
    fn new(state: Arc<State>) -> Self {
        let open = state.open.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_open.fetch_max(open, Ordering::SeqCst);
        Self(state)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn whole(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response
}

fn header<'a>(head: &'a Parts, name: &str) -> &'a str {
    head.headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}
