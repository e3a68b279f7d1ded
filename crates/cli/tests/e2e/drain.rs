//! SIGTERM: every request under way is answered, and the process ends with success.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    fixture::{Fixture, on_both_stores},
    server::{Server, until},
    wire::{Line, get},
};

on_both_stores! {
    every_held_request_is_answered_on_sigterm,
    a_push_under_way_is_finished_on_sigterm,
}

const POP: &str = "/api/v1/pop/queue/q?wait=true&timeout=60000&batch=1";

async fn every_held_request_is_answered_on_sigterm(fixture: Fixture) {
    let mut server = fixture.serve().start().await;
    let mut held: Vec<_> = (0..10).map(|_| server.hold(POP)).collect();
    let mut http2 = Line::http2(server.address()).await;
    for _ in 0..10 {
        let answer = http2.begin(get(POP));
        held.push(tokio::spawn(async { answer.await.expect("a held answer") }));
    }
    server.until_waiting(20).await;
    server.signal("TERM");
    for held in held {
        let answer = held.await.unwrap();
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.problem()["type"], "urn:wakeline:draining");
    }
    assert_eq!(server.exit().await.code(), Some(0));
}

async fn a_push_under_way_is_finished_on_sigterm(fixture: Fixture) {
    let mut server = fixture
        .serve()
        .flags(&["--http-drain", "60s"])
        .start()
        .await;
    let mut push = HalfSent::push(&server).await;
    server.signal("TERM");
    until("readyz to say 503", async || {
        let answer = server.get("/readyz").await;
        (answer.status == 503).then(|| answer.problem())
    })
    .await;
    let verbose = server.get("/readyz?verbose").await;
    assert_eq!(
        (verbose.status, &verbose.json()["status"]),
        (503, &json!("draining"))
    );
    assert_eq!(server.get("/livez").await.status, 200);
    for _ in 0..20 {
        let mut http2 = Line::http2(server.address()).await;
        let answer = http2.call(get("/readyz")).await.expect("an answer");
        assert_eq!(answer.status, 503);
    }
    let late = server.get(POP).await;
    assert_eq!(late.problem()["type"], "urn:wakeline:draining");
    assert_eq!(late.header("retry-after"), "1");

    let answer = push.finish().await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(server.exit().await.code(), Some(0));

    let server = fixture.serve().start().await;
    let found = server.get("/api/v1/pop/queue/q").await;
    assert_eq!(found.payloads(), [json!("half")]);
}

#[tokio::test]
async fn a_second_sigterm_ends_the_server_at_once() {
    let fixture = Fixture::sqlite();
    let mut server = fixture
        .serve()
        .flags(&["--http-drain", "10m"])
        .start()
        .await;
    let _push = HalfSent::push(&server).await;
    server.signal("TERM");
    until("the log to say so", async || {
        server.log().contains("stopping").then_some(())
    })
    .await;
    server.signal("TERM");
    assert_eq!(server.exit().await.code(), Some(130));
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off_at_the_end_of_the_drain() {
    let fixture = Fixture::sqlite();
    let mut server = fixture
        .serve()
        .flags(&["--http-drain", "300ms"])
        .start()
        .await;
    let _push = HalfSent::push(&server).await;
    server.signal("TERM");
    assert_eq!(server.exit().await.code(), Some(0));
    assert!(server.log().contains("http.drain"), "{}", server.log());
}

#[tokio::test]
async fn an_idle_connection_does_not_delay_the_shutdown() {
    let fixture = Fixture::sqlite();
    let flags = ["--http-drain", "10m", "--http-header-timeout", "5m"];
    let mut server = fixture.serve().flags(&flags).start().await;
    // A connection without a request yet, and two whose requests were answered.
    let _silent = TcpStream::connect(server.address()).await.unwrap();
    let mut http1 = Line::http1(server.address()).await;
    let mut http2 = Line::http2(server.address()).await;
    for line in [&mut http1, &mut http2] {
        assert_eq!(line.call(get("/livez")).await.unwrap().status, 200);
    }
    server.signal("INT");
    assert_eq!(server.exit().await.code(), Some(0));
}

/// A push of which the server has the head and the first byte of the body.
struct HalfSent {
    stream: TcpStream,
    rest: &'static str,
}

impl HalfSent {
    async fn push(server: &Server) -> Self {
        let (first, rest) = r#"{"items":[{"queue":"q","payload":"half"}]}"#.split_at(1);
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let length = first.len() + rest.len();
        let head = format!(
            "POST /api/v1/push HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // `100 Continue`: the route reads the body, so the request is under way.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).await.unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(first.as_bytes()).await.unwrap();
        Self { stream, rest }
    }

    async fn finish(&mut self) -> String {
        self.stream.write_all(self.rest.as_bytes()).await.unwrap();
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}
