//! File descriptors: a server that is short of them serves its open connections and answers probes.

use std::fs;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    fixture::Fixture,
    server::{PATIENCE, until},
    wire::{Line, get, post},
};

#[tokio::test]
async fn probes_are_answered_when_there_are_more_connections_than_descriptors() {
    let serve = Fixture::sqlite().serve().limited_by("ulimit -n 200");
    let server = serve.start().await;
    let log = server.log();
    assert!(log.contains("this process may open 200 files"), "{log}");
    let mut open = Line::http1(server.address()).await;
    assert_eq!(open.call(get("/v1/waits")).await.unwrap().status, 200);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }

    for probe in ["/livez", "/readyz"] {
        // Far sooner than silent clients are given up.
        let answer = timeout(PATIENCE, server.get(probe)).await;
        assert_eq!(answer.expect("an answer in time").status, 200, "{probe}");
    }
    let items = json!({"items": [{"queue": "q", "payload": 1}]});
    let pushed = open.call(post("/api/v1/push", items.to_string())).await;
    assert_eq!(pushed.unwrap().status, 201);
    let popped = open.call(get("/api/v1/pop/queue/q?autoAck=true")).await;
    assert_eq!(popped.unwrap().payloads(), [json!(1)]);
    let log = server.log();
    assert!(!log.contains("could not be accepted"), "{log}");
}

#[tokio::test]
async fn a_lower_limit_of_files_is_raised_as_far_as_it_may() {
    let serve = Fixture::sqlite().serve();
    let server = serve
        .limited_by("ulimit -S -n 150; ulimit -H -n 500")
        .start()
        .await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[3..5], ["500", "500"], "{words:?}");
    let log = server.log();
    assert!(log.contains("this process may open 500 files"), "{log}");
}

/// It has a descriptor as long as it is open.
#[tokio::test]
async fn a_websocket_counts_as_a_connection() {
    let flags = ["--http-max-connections", "1"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    let handshake = "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nhost: localhost\r\n\
                     connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(handshake.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    // The head's task has ended by then.
    tokio::task::yield_now().await;
    for _ in 0..3 {
        assert_eq!(server.get("/v1/waits").await.status, 503);
    }
    drop(socket);
    until("room again", async || {
        (server.get("/v1/waits").await.status == 200).then_some(())
    })
    .await;
}
