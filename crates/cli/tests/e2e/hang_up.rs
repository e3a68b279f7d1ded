//! A client that hung up costs nothing from then on, and keeps no message.

mod commits;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::AbortHandle,
    time::timeout,
};
use tokio_postgres::NoTls;

use crate::{
    fixture::{Fixture, on_both_stores},
    server::{PATIENCE, Server, until},
    wire::{Line, get},
};

on_both_stores! {
    a_hang_up_removes_its_waiter_and_the_next_pop_is_served,
    a_reset_http2_stream_removes_its_own_waiter_only,
    messages_of_an_unsent_answer_are_released_when_the_client_hangs_up,
}

const POP: &str = "/api/v1/pop/queue/q?wait=true&timeout=80000&batch=1";

async fn a_hang_up_removes_its_waiter_and_the_next_pop_is_served(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let gone: Vec<_> = (0..3).map(|_| server.hold(POP)).collect();
    server.until_waiting(3).await;
    for held in &gone {
        held.abort();
    }
    server.until_waiting(0).await;
    server.push("q", json!("for the next")).await;
    // A pop that waits: a check for a pop that hung up may just be releasing the message.
    let next = server.get(POP).await;
    assert_eq!(next.payloads(), [json!("for the next")]);
}

async fn a_reset_http2_stream_removes_its_own_waiter_only(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let mut line = Line::http2(server.address()).await;
    let mut held: Vec<_> = (0..3).map(|_| tokio::spawn(line.begin(get(POP)))).collect();
    server.until_waiting(3).await;
    // Reset the pop that has waited longest, which would have been the next to be served.
    held.remove(0).abort();
    server.until_waiting(2).await;
    for n in 1..=2 {
        let item = json!({"queue": "q", "partition": n.to_string(), "payload": n});
        server.post("/api/v1/push", &json!({"items": [item]})).await;
    }
    let mut found = Vec::new();
    for held in held {
        found.extend(held.await.unwrap().expect("an answer").payloads());
    }
    found.sort_by_key(serde_json::Value::as_u64);
    assert_eq!(found, [json!(1), json!(2)]);
    server.until_waiting(0).await;
    drop(line);
}

/// The client does not read, so most of the answer is still unsent when it hangs up. The lease
/// would last for five minutes.
async fn messages_of_an_unsent_answer_are_released_when_the_client_hangs_up(fixture: Fixture) {
    let server = fixture.serve().start().await;
    // More than the buffers of a socket and the windows of a stream hold.
    let long = "x".repeat(9 << 20);
    for is_http2 in [false, true] {
        assert_eq!(server.push("q", json!(long)).await.status, 201);
        let unread = if is_http2 {
            unread_http2(&server).await
        } else {
            unread_http1(&server).await
        };
        // Its claim is what the next pop has to wait for.
        let leased = server.get("/api/v1/pop/queue/q").await;
        assert_eq!(leased.status, 204);
        drop(unread);
        let next = server.get("/api/v1/pop/queue/q?wait=true&timeout=60000&autoAck=true");
        let next = timeout(PATIENCE, next).await;
        let next = next.unwrap_or_else(|_| panic!("not released; HTTP/2: {is_http2}"));
        assert_eq!(next.payloads(), [json!(long)], "HTTP/2: {is_http2}");
    }
}

/// A pop whose answer has begun and is not read. Dropping it hangs up.
async fn unread_http1(server: &Server) -> Box<dyn Send> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(server.address()).await.unwrap();
    let pop = b"GET /api/v1/pop/queue/q HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(pop).await.unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK\r");
    Box::new(stream)
}

async fn unread_http2(server: &Server) -> Box<dyn Send> {
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut sender, connection) =
        http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let connection = AbortOnDrop(tokio::spawn(connection).abort_handle());
    let url = format!("{}/api/v1/pop/queue/q", server.url());
    let pop = http::Request::get(url).body(Full::default()).unwrap();
    let answer = sender.send_request(pop).await.unwrap();
    assert_eq!(answer.status(), 200);
    Box::new((answer, sender, connection))
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The claim is on its way in the database when the client hangs up: it must not keep the message
/// until its lease of an hour ends.
#[tokio::test]
async fn a_message_claimed_for_a_client_that_hung_up_goes_to_the_next_pop() {
    let fixture = Fixture::postgres().await;
    let server = fixture
        .serve()
        .flags(&["--queue-lease", "1h"])
        .start()
        .await;
    server.push("q", json!("precious")).await;

    let (client, connection) = tokio_postgres::connect(fixture.postgres_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("BEGIN; LOCK TABLE wakeline.queue_cursor IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let gone = server.hold(POP);
    let blocked = "SELECT 1 FROM pg_locks WHERE NOT granted AND \
                   relation = 'wakeline.queue_cursor'::regclass AND \
                   database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    until("the claim to stand in the lock's line", async || {
        let rows = client.query(blocked, &[]).await.unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    gone.abort();
    server.until_waiting(0).await;
    client.batch_execute("ROLLBACK").await.unwrap();

    let next = server.get(POP).await;
    assert_eq!(next.payloads(), [json!("precious")]);
}
