//! Callers who are nobody's: pages of other sites, half connections, bodies that never end.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    fixture::Fixture,
    metrics::Metrics,
    server::{PATIENCE, Server, until},
    wire::{Answer, get, post, request, with_header},
};

const PUSH: &str = r#"{"items":[{"queue":"q","payload":1}]}"#;
const POP: &str = "/api/v1/pop/queue/q?autoAck=true";
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

/// What a page of another site makes its visitor's browser send.
fn of_another_site() -> Vec<(&'static str, Request<Bytes>)> {
    let evil = |request, name, value| with_header(request, name, value);
    let text = |path: &str| with_header(post(path, PUSH), "content-type", "text/plain");
    let origin = |request| evil(request, "origin", "http://evil.example");
    vec![
        ("a push by fetch", origin(text("/api/v1/push"))),
        (
            "a push by a form in a frame",
            evil(text("/api/v1/push"), "origin", "null"),
        ),
        (
            "a push by a page on another port",
            evil(text("/api/v1/push"), "origin", "http://127.0.0.1:1"),
        ),
        (
            "maintenance",
            origin(post("/api/v1/system/maintenance", r#"{"enabled":true}"#)),
        ),
        (
            "a user",
            origin(post(
                "/v1/auth/register",
                r#"{"email":"a@b.example","password":"12345678"}"#,
            )),
        ),
        ("a fact", origin(text("/jinaga/write"))),
        (
            "Socket.IO",
            origin(get("/socket.io/?EIO=4&transport=polling")),
        ),
        (
            "an image that pops",
            evil(get(POP), "sec-fetch-site", "cross-site"),
        ),
        (
            "an image of a page on another port",
            evil(get(POP), "sec-fetch-site", "same-site"),
        ),
        (
            "an image in a browser that does not say whose it is",
            evil(get(POP), "user-agent", BROWSER),
        ),
        (
            "a name that the page's owner gave to this address",
            evil(get(POP), "host", "evil.example:6632"),
        ),
    ]
}

async fn count(server: &Server) -> usize {
    let answer = server.get("/api/v1/messages?queue=q").await;
    answer.json()["messages"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_page_of_another_site_can_do_nothing() {
    let server = Fixture::sqlite().serve().start().await;
    assert_eq!(server.call(post("/api/v1/push", PUSH)).await.status, 201);
    for (what, request) in of_another_site() {
        let refused = server.call(request).await;
        assert_eq!(refused.status, 403, "{what}: {}", refused.text());
        let kind = refused.problem()["type"].as_str().unwrap().to_owned();
        let kinds = ["foreign-origin", "cross-site", "foreign-host"];
        let is_known = kinds.iter().any(|known| kind.ends_with(known));
        assert!(is_known, "{what}: {kind}");
        assert_eq!(refused.header("access-control-allow-origin"), "", "{what}");
    }
    assert_eq!(count(&server).await, 1, "nothing was pushed or popped");
    let log = server.log();
    assert!(log.contains("http.allowed_origins"), "{log}");
    assert!(log.contains("http.allowed_hosts"), "{log}");
    // For supervisors, by whatever name they know it.
    for path in ["/livez", "/readyz"] {
        let probe = with_header(get(path), "host", "wakeline.example.com");
        assert_eq!(server.call(probe).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn pages_and_names_that_are_configured_are_served() {
    let origin = "https://app.example.com";
    let server = Fixture::sqlite()
        .serve()
        .flags(&["--http-allowed-origins", origin])
        .flags(&["--http-allowed-hosts", "wakeline.example.com"])
        .start()
        .await;
    let of_page = |request| with_header(request, "origin", origin);
    let asked = request("OPTIONS", "/api/v1/push", Bytes::new());
    let asked = with_header(of_page(asked), "access-control-request-method", "POST");
    let asked = with_header(asked, "access-control-request-headers", "content-type");
    let allowed = server.call(asked).await;
    assert_eq!(allowed.status, 204, "{}", allowed.text());
    assert_eq!(allowed.header("access-control-allow-origin"), origin);
    assert_eq!(allowed.header("access-control-allow-methods"), "POST");
    assert_eq!(
        allowed.header("access-control-allow-headers"),
        "content-type"
    );

    let pushed = server.call(of_page(post("/api/v1/push", PUSH))).await;
    assert_eq!(pushed.status, 201);
    assert_eq!(pushed.header("access-control-allow-origin"), origin);
    assert_eq!(
        pushed.header("cross-origin-resource-policy"),
        "cross-origin"
    );
    assert!(pushed.header("vary").contains("Origin"));
    // A refusal can be read by the page too.
    let refused = server.call(of_page(post("/api/v1/push", "{}"))).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.header("access-control-allow-origin"), origin);

    let named = with_header(get(POP), "host", "wakeline.example.com:80");
    assert_eq!(server.call(named).await.payloads(), [json!(1)]);
    let own = format!("http://{}", server.address());
    let own = with_header(get("/v1/waits"), "origin", &own);
    assert_eq!(server.call(own).await.status, 200);
}

/// With a login a page has no token, and a name of the page's own is no way around it.
#[tokio::test]
async fn with_a_login_any_name_is_served_and_a_preflight_needs_none() {
    let origin = "https://app.example.com";
    let server = Fixture::sqlite()
        .serve()
        .env("WAKELINE_AUTH_TOKENS", "correct-horse-battery")
        .flags(&["--http-allowed-origins", origin])
        .start()
        .await;
    let named = with_header(get("/v1/waits"), "host", "wakeline.example.com");
    let named = with_header(named, "authorization", "Bearer correct-horse-battery");
    assert_eq!(server.call(named).await.status, 200);
    let asked = with_header(
        request("OPTIONS", "/v1/waits", Bytes::new()),
        "origin",
        origin,
    );
    let asked = with_header(asked, "access-control-request-method", "GET");
    assert_eq!(server.call(asked).await.status, 204);
    let without = with_header(get("/v1/waits"), "origin", origin);
    let without = server.call(without).await;
    assert_eq!(without.status, 401);
    assert_eq!(without.header("access-control-allow-origin"), origin);
}

#[tokio::test]
async fn every_answer_says_what_browsers_may_do_with_it() {
    let server = Fixture::sqlite().serve().start().await;
    let protected = |answer: &Answer| {
        [
            "x-content-type-options",
            "referrer-policy",
            "cache-control",
            "cross-origin-resource-policy",
        ]
        .map(|name| answer.header(name).to_owned())
    };
    for path in [
        "/v1/waits",
        "/livez",
        "/nowhere",
        "/api/v1/pop/queue/q?batch=x",
        "/metrics",
    ] {
        let answer = server.get(path).await;
        let expected = ["nosniff", "no-referrer", "no-store", "same-origin"];
        assert_eq!(protected(&answer), expected, "{path}");
    }
}

/// The descriptors that the server has open.
fn descriptors(server: &Server) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id()));
    open.expect("its descriptors").count()
}

#[tokio::test]
async fn half_a_preface_costs_nothing_once_its_client_has_gone() {
    let server = Fixture::sqlite().serve().start().await;
    server.get("/livez").await;
    let before = descriptors(&server);
    let mut half = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
        half.push(stream);
    }
    until("the server has them", async || {
        (descriptors(&server) >= before + 190).then_some(())
    })
    .await;
    drop(half);
    // Far sooner than the time limit of a head.
    let gone = until("the server has let them go", async || {
        (descriptors(&server) <= before + 5).then_some(())
    });
    let limit = Duration::from_secs(20);
    assert!(
        timeout(limit, gone).await.is_ok(),
        "{}",
        descriptors(&server)
    );
}

#[tokio::test]
async fn a_body_that_trickles_is_given_up() {
    let flags = ["--http-body-timeout", "300ms", "--http-body-rate", "1KiB"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = b"POST /api/v1/push HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{";
    stream.write_all(head).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    // A byte each time that is well within the longest pause.
    let trickling = async {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut answer = vec![0; 4_096];
    let reading = async { reading.read(&mut answer).await };
    let read = timeout(PATIENCE, async {
        tokio::select! { read = reading => read, () = trickling => Ok(0) }
    });
    let length = read.await.expect("it is answered").unwrap();
    let text = String::from_utf8_lossy(&answer[..length]);
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!(text.contains("http.body_rate"), "{text}");
}

#[tokio::test]
async fn long_bodies_share_a_memory() {
    let flags = ["--http-max-body", "1MiB", "--limits-body-memory", "2MiB"];
    let server = Fixture::sqlite()
        .serve()
        .flags(&flags)
        .flags(&["--http-body-timeout", "2s"])
        .start()
        .await;
    let head = "POST /api/v1/push HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n{";
    let mut unfinished = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        unfinished.push(stream);
    }
    // The third waits until those are given up, and then has its share. A short one needs none.
    let third = server.call(post("/api/v1/push", " ".repeat(1 << 20)));
    let short = async {
        let pushed = server.call(post("/api/v1/push", PUSH)).await;
        assert_eq!(pushed.status, 201);
    };
    let (third, ()) = tokio::join!(third, short);
    assert!([400, 503].contains(&third.status), "{}", third.text());
}

#[tokio::test]
async fn a_field_or_parameter_that_no_route_knows_is_refused_with_the_nearest_one() {
    let server = Fixture::sqlite().serve().start().await;
    let mistyped = r#"{"items":[{"queue":"q","paylod":{"n":1}}]}"#;
    let refused = server.call(post("/api/v1/push", mistyped)).await;
    assert_eq!(refused.status, 400);
    let problem = refused.problem();
    assert_eq!(problem["field"], "items[0].paylod");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `payload`?"), "{detail}");

    let refused = server.get("/api/v1/pop/queue/q?autoack=true").await;
    assert_eq!(refused.status, 400);
    let problem = refused.problem();
    assert_eq!(problem["field"], "autoack");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `autoAck`?"), "{detail}");
    assert_eq!(count(&server).await, 0);
}

#[tokio::test]
async fn unknown_fields_can_be_let_through_and_are_logged_once() {
    let flags = ["--http-unknown-fields", "warn"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    for _ in 0..3 {
        let body = r#"{"items":[{"queue":"q","payload":1,"colour":"red"}]}"#;
        let pushed = server.call(post("/api/v1/push", body)).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text());
    }
    assert_eq!(
        server.get("/api/v1/pop/queue/q?shade=dark").await.status,
        200
    );
    let log = server.log();
    assert_eq!(log.matches("`colour` was ignored").count(), 1, "{log}");
    assert_eq!(log.matches("`shade` was ignored").count(), 1, "{log}");
    let metrics = Metrics::parse(&server.get("/metrics").await.text());
    assert_eq!(
        metrics.value("wakeline_unknown_fields_total", &[]),
        Some(4.0)
    );
}

#[tokio::test]
async fn json_that_is_nested_too_deep_is_refused() {
    let server = Fixture::sqlite().serve().start().await;
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"items":[{{"queue":"q","payload":{open}{close}}}]}}"#)
    };
    assert_eq!(
        server.call(post("/api/v1/push", nested(120))).await.status,
        201
    );
    let refused = server.call(post("/api/v1/push", nested(100_000))).await;
    assert_eq!(refused.status, 400);
    let problem = refused.problem();
    let field = problem["field"].as_str().unwrap();
    assert!(field.starts_with("items[0].payload[0]"), "{field}");
    assert!(field.chars().count() <= 201, "{field}");
    assert_eq!(count(&server).await, 1);
}
