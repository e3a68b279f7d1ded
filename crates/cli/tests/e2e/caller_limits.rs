//! What one caller may take: requests, and memory for the bodies that it sends. The callers are behind
//! a proxy, because the address of this machine has no limits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use wakeline_testbed::issuer::SigningKey;

use crate::{
    fixture::Fixture,
    server::{PATIENCE, Serve, Server, until},
    wire::{Answer, Line, get, post, raw, with_header},
};

const SECRET: &str = "a secret of thirty-two characters";
const ONE: &str = "203.0.113.1";
const OTHER: &str = "203.0.113.2";

/// A header that says who calls.
type CallerHeader = (&'static str, String);

fn at(address: &str) -> CallerHeader {
    ("x-forwarded-for", address.to_owned())
}

fn bearer(subject: &str, key: &SigningKey) -> CallerHeader {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let claims = json!({"sub": subject, "role": "admin", "exp": now.as_secs() + 3_600});
    ("authorization", format!("Bearer {}", key.sign(&claims)))
}

fn of((name, value): &CallerHeader, request: Request<Bytes>) -> Request<Bytes> {
    with_header(request, name, value)
}

fn behind_a_proxy(fixture: &Fixture) -> Serve {
    let flags = ["--http-trusted-proxies", "127.0.0.1"];
    fixture.serve().flags(&flags)
}

fn is_refused(answer: &Answer, kind: &str) {
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), "1");
    let problem = answer.problem();
    assert_eq!(problem["type"], format!("urn:wakeline:{kind}"));
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("nothing was done"), "{detail}");
}

#[tokio::test]
async fn a_probe_is_answered_past_the_limit_of_its_address() {
    let flags = ["--limits-requests-per-address", "1"];
    let serve = behind_a_proxy(&Fixture::sqlite()).flags(&flags);
    let server = serve.start().await;
    let mut line = Line::http1(server.address()).await;
    let pop = get("/api/v1/pop/queue/q?wait=true&timeout=80000");
    let held = tokio::spawn(line.begin(of(&at(ONE), pop)));
    server.until_waiting(1).await;

    let refused = server.call(of(&at(ONE), get("/v1/waits"))).await;
    is_refused(&refused, "too-many-requests");
    for probe in ["/livez", "/readyz"] {
        assert_eq!(server.call(of(&at(ONE), get(probe))).await.status, 200);
    }
    let other = server.call(of(&at(OTHER), get("/v1/waits"))).await;
    assert_eq!(other.status, 200);
    held.abort();
}

#[tokio::test]
async fn a_request_that_waits_for_new_keys_counts_for_its_address() {
    // An issuer that never answers.
    let issuer = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", issuer.local_addr().unwrap());
    let server = behind_a_proxy(&Fixture::sqlite())
        .flags(&["--limits-requests-per-address", "1"])
        .flags(&[
            "--auth-jwt-jwks-url",
            &url,
            "--auth-jwt-jwks-timeout",
            "60s",
        ])
        .start()
        .await;
    let token = bearer("someone", &SigningKey::eddsa("new"));
    let request = || of(&token, of(&at(ONE), get("/v1/waits")));
    let mut line = Line::http1(server.address()).await;
    let waiting = tokio::spawn(line.begin(request()));
    let asked = timeout(PATIENCE, issuer.accept()).await;
    let _connection = asked.expect("the issuer is asked").unwrap();

    let refused = timeout(PATIENCE, server.call(request())).await;
    is_refused(&refused.expect("an answer at once"), "too-many-requests");
    waiting.abort();
}

/// A push with a body of which a byte comes now and then.
async fn trickling(server: &Server, (name, value): &CallerHeader) -> JoinHandle<()> {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\n\
         content-length: 1000000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::spawn(async move {
        while stream.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    })
}

fn push(length: usize) -> Request<Bytes> {
    let items = json!({"items": [{"queue": "q", "payload": "x".repeat(length)}]});
    post("/api/v1/push", items.to_string())
}

fn with_little_memory(serve: Serve) -> Serve {
    serve
        .flags(&["--http-max-body", "1MiB", "--limits-body-memory", "4MiB"])
        .flags(&["--limits-body-memory-per-caller", "1MiB"])
        .flags(&["--http-body-timeout", "1s", "--http-body-rate", "1B"])
}

async fn bodies_of_one_caller_leave_memory_to_others(
    server: &Server,
    one: CallerHeader,
    other: CallerHeader,
) {
    let long = || push(900_000);
    let trickle = trickling(server, &one).await;
    // At first the other one may be faster.
    let refused = until("a refusal", async || {
        let answer = server.call(of(&one, long())).await;
        (answer.status != 201).then_some(answer)
    })
    .await;
    is_refused(&refused, "body-memory");
    assert_eq!(server.call(of(&other, long())).await.status, 201);
    // What is short needs no share, whether it says how long it is or not.
    assert_eq!(server.call(of(&one, push(1_000))).await.status, 201);
    let (name, value) = &one;
    let body = r#"{"items":[{"queue":"q","payload":1}]}"#;
    let chunked = format!(
        "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let pushed = raw(server.address(), chunked.as_bytes()).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    // A door with bodies of its own.
    let facts = format!("{{\"references\":[]{}}}", " ".repeat(100_000));
    let load = with_header(
        post("/jinaga/load", facts),
        "content-type",
        "application/json",
    );
    let refused = server.call(of(&one, load)).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "1");

    trickle.abort();
    until("the share is free", async || {
        (server.call(of(&one, long())).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn bodies_of_one_address_leave_memory_to_others() {
    let server = with_little_memory(behind_a_proxy(&Fixture::sqlite()))
        .start()
        .await;
    bodies_of_one_caller_leave_memory_to_others(&server, at(ONE), at(OTHER)).await;
}

#[tokio::test]
async fn bodies_of_one_identity_leave_memory_to_others() {
    let server = with_little_memory(Fixture::sqlite().serve())
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .start()
        .await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    let (one, other) = (bearer("one", &key), bearer("other", &key));
    bodies_of_one_caller_leave_memory_to_others(&server, one, other).await;
}
