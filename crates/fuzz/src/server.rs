//! A whole server on SQLite, without a socket and in one thread.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt;
use serde::de::IgnoredAny;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use wakeline_server::{
    config::{self, Config},
    fuzzing::InMemoryServer,
};

/// Inputs after which it begins with an empty store again.
const INPUTS: u32 = 2_000;
/// Of every request that could be held.
const HOLD: Duration = Duration::from_millis(1);
/// For the next part of a stream, which has no end.
const STREAMED: Duration = Duration::from_millis(2);
/// Nothing takes as long; what does hangs.
const HANGS: Duration = Duration::from_secs(20);
/// Requests of one input.
const MOST_REQUESTS: usize = 12;
/// Bytes of an answer that are looked at.
const MOST_ANSWER: usize = 4 << 20;
/// Characters of a refusal, which may show what was sent but not repeat it.
const MOST_REFUSAL: usize = 1_500;
/// What an input has between two requests.
const SEPARATOR: &str = "%%";

struct RunningServer {
    // Dropped first, while its runtime is there.
    server: InMemoryServer,
    runtime: Runtime,
    _data: TempDir,
    inputs_left: u32,
}

static RUNNING: Mutex<Option<RunningServer>> = Mutex::new(None);

/// After a panic the next input begins with a new server.
fn with_server<T>(run: impl FnOnce(&RunningServer) -> T) -> T {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let known = running.take().filter(|running| running.inputs_left > 0);
    let mut server = known.unwrap_or_else(RunningServer::start);
    server.inputs_left -= 1;
    let result = run(&server);
    *running = Some(server);
    result
}

impl RunningServer {
    fn start() -> Self {
        // In memory where there is such a directory, because each write would wait for the disk.
        let memory = Path::new("/dev/shm");
        let data = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let data = data.expect("a directory");
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let server = runtime.block_on(InMemoryServer::open(&configuration(data.path())));
        Self {
            server: server.expect("a server"),
            runtime,
            _data: data,
            inputs_left: INPUTS,
        }
    }
}

fn configuration(data: &Path) -> Config {
    let data = data.to_str().expect("a path in UTF-8");
    let key = "0f".repeat(32);
    let settings = [
        ("data", data),
        ("http.default_hold", "0s"),
        ("http.trusted_proxies", "127.0.0.1,10.0.0.0/8"),
        ("http.allowed_hosts", "wakeline.example.com"),
        ("http.allowed_origins", "https://app.example.com"),
        ("queue.encryption_key", key.as_str()),
        ("jobs.guests", "true"),
        ("jobs.filesystem_roots", data),
        ("jobs.read_hold", "0s"),
        ("feeds.max_facts", "100"),
    ];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let loaded = config::load(None, [], settings.to_vec());
    let mut config = loaded.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    // Below what may be configured.
    config.http.max_hold = HOLD;
    config.jobs.max_task_hold = HOLD;
    config.jobs.max_read_hold = HOLD;
    config
}

/// What a connection is answered that sends these bytes and then ends.
pub(crate) fn connection(sent: &[u8]) -> Vec<u8> {
    with_server(|running| {
        let answered = running.server.connection(sent, MOST_ANSWER);
        let answered = running.runtime.block_on(timeout_in(HANGS, answered));
        answered.expect("a connection that has ended is answered")
    })
}

/// `timeout` needs the runtime when it is made, not only when it is polled.
async fn timeout_in<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    timeout(limit, future).await.ok()
}

/// Requests with a line `%%` between them: a line `POST /path`, headers, an empty line, and the body
/// as it is. `{{0}}` stands for the first UUID of the answers before, so that an input can go on
/// with what it was given.
pub(crate) fn requests(input: &[u8]) {
    with_server(|running| {
        let mut ids = Vec::new();
        for text in split(input).into_iter().take(MOST_REQUESTS) {
            let text = filled(text, &ids);
            let Some(request) = request(&text) else {
                continue;
            };
            let asked = format!("{} {}", request.method(), request.uri());
            let answering = async {
                let answer = running.server.answer(request).await;
                let (parts, body) = answer.into_parts();
                let limit = if is_endless(&parts.headers) {
                    STREAMED
                } else {
                    HANGS
                };
                (parts, collected(body, limit).await)
            };
            let answered = running.runtime.block_on(timeout_in(HANGS, answering));
            let (parts, body) = answered.unwrap_or_else(|| panic!("{asked} hangs"));
            check(&asked, &Response::from_parts(parts, ()), &body);
            ids.extend(uuids(&body));
        }
    });
}

fn split(input: &[u8]) -> Vec<&[u8]> {
    let mut requests = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii_end() == SEPARATOR.as_bytes() {
            requests.push(&input[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    requests.push(&input[start..]);
    requests
}

fn filled(text: &[u8], ids: &[String]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match rest {
            [b'{', b'{', digit @ b'0'..=b'9', b'}', b'}', tail @ ..] => {
                let id = ids.get(usize::from(digit - b'0'));
                filled.extend(id.map_or("", String::as_str).bytes());
                rest = tail;
            }
            _ => {
                filled.push(*first);
                rest = tail;
            }
        }
    }
    filled
}

/// `None` for what hyper would refuse.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let mut lines = text.splitn(2, |byte| *byte == b'\n');
    let line = str::from_utf8(lines.next()?).ok()?;
    let mut rest = lines.next().unwrap_or_default();
    let (method, path) = line.trim_end().split_once(' ')?;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = path
        .parse::<Uri>()
        .ok()
        .filter(|uri| uri.path().starts_with('/'))?;
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1"));
    while !rest.is_empty() {
        let mut lines = rest.splitn(2, |byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default().trim_ascii_end();
        rest = lines.next().unwrap_or_default();
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        headers.append(
            HeaderName::from_bytes(name).ok()?,
            HeaderValue::from_bytes(value[1..].trim_ascii()).ok()?,
        );
    }
    *request.body_mut() = Body::from(rest.to_vec());
    Some(request)
}

fn is_endless(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().ends_with(b"stream"))
}

/// The beginning of a body, as far as it comes.
async fn collected(mut body: Body, limit: Duration) -> Bytes {
    let mut read = Vec::new();
    while read.len() < MOST_ANSWER {
        let Ok(Some(Ok(frame))) = timeout(limit, body.frame()).await else {
            break;
        };
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
    }
    read.into()
}

fn check(asked: &str, answer: &Response<()>, body: &[u8]) {
    // A provider's answer is passed on as it is: status, content type and bytes.
    if asked.starts_with("GET ") && asked.contains("/providers/") {
        return;
    }
    let status = answer.status();
    let shown = String::from_utf8_lossy(&body[..body.len().min(1_000)]);
    let is_ours = [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY];
    assert!(!is_ours.contains(&status), "{asked}: {status} {shown}");
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let kind = kind.map_or(&b""[..], HeaderValue::as_bytes);
    // A client refuses an answer that is not what it says.
    if kind.ends_with(b"json") && !body.is_empty() && !asked.starts_with("HEAD ") {
        let read: Result<IgnoredAny, _> = serde_json::from_slice(body);
        assert!(read.is_ok(), "{asked}: {read:?} {shown}");
    }
    if kind.starts_with(b"application/problem+json") {
        let problem: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(problem["status"], status.as_u16(), "{asked}: {shown}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(!detail.is_empty(), "{asked}: {shown}");
        // The path of a request may be shown, and has a limit of its own.
        let most = MOST_REFUSAL + asked.len();
        assert!(detail.chars().count() <= most, "{asked}: {detail}");
    }
}

fn uuids(body: &[u8]) -> Vec<String> {
    const LENGTH: usize = 36;
    let texts = body.split(|byte| !(byte.is_ascii_hexdigit() || *byte == b'-'));
    let texts = texts.filter(|text| text.len() == LENGTH);
    let texts = texts.filter_map(|text| str::from_utf8(text).ok());
    texts.map(str::to_owned).take(16).collect()
}
