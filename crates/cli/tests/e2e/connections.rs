//! Connections: the protocols of the one port, and the timeouts of idle and slow connections.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{
    fixture::Fixture,
    server::{PATIENCE, Server},
    wire::{Line, get, post, raw, with_header},
};

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    let server = Fixture::sqlite().serve().start().await;
    let mut line = Line::http2(server.address()).await;
    let held = line.begin(get("/api/v1/pop/queue/q?wait=true&timeout=60000"));
    let held = tokio::spawn(held);
    server.until_waiting(1).await;
    // A push on the same connection as the held pop.
    let items = json!({"items": [{"queue": "q", "payload": 2}]});
    let pushed = line.call(post("/api/v1/push", items.to_string())).await;
    assert_eq!(pushed.unwrap().status, 201);
    assert_eq!(held.await.unwrap().unwrap().payloads(), [json!(2)]);
}

#[tokio::test]
async fn an_offer_to_upgrade_to_http2_is_ignored() {
    let server = Fixture::sqlite().serve().start().await;
    let mut offer = with_header(get("/livez"), "upgrade", "h2c");
    offer = with_header(offer, "http2-settings", "AAMAAABkAAQAAP__");
    offer = with_header(offer, "connection", "Upgrade, HTTP2-Settings");
    let answer = server.call(offer).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "live\n"));
}

#[tokio::test]
async fn a_connection_with_an_unfinished_request_head_is_closed() {
    let flags = ["--http-header-timeout", "300ms"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let beginnings: [&[u8]; 7] = [
        b"",
        b"G",
        b"GET /livez HTTP/1.1\r\nhost: x\r\n",
        b"GET /livez HT",
        b"P",
        b"PRI * ",
        b"PRI * HTTP/2.0\r\n\r\nSM",
    ];
    for beginning in beginnings {
        until_closed(&server, beginning).await;
    }
    // A connection with a request under way is not closed.
    assert_eq!(
        server
            .get("/api/v1/pop/queue/q?wait=true&timeout=900")
            .await
            .status,
        204
    );
}

async fn until_closed(server: &Server, beginning: &[u8]) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(beginning).await.unwrap();
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    let what = String::from_utf8_lossy(beginning);
    // Closed or reset; at most the client gets an answer that it was too slow.
    assert!(read.is_ok(), "still open after {what:?}");
    let rest = String::from_utf8_lossy(&rest);
    assert!(
        rest.is_empty() || rest.starts_with("HTTP/1.1 408 "),
        "{rest}"
    );
}

#[tokio::test]
async fn a_request_whose_body_stalls_gets_408() {
    let flags = ["--http-body-timeout", "300ms"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    for head in [
        "content-length: 100\r\n\r\n{",
        "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    ] {
        let text = format!("POST /api/v1/push HTTP/1.1\r\nhost: x\r\n{head}");
        let answer = raw(server.address(), text.as_bytes()).await;
        assert_eq!(answer.status, 408);
        assert_eq!(answer.problem()["type"], "urn:wakeline:body-too-slow");
    }
}

/// The client sends requests and reads no answer. A pop held meanwhile has no answer to read yet,
/// and is not closed.
#[tokio::test]
async fn a_connection_whose_client_reads_no_answers_is_closed() {
    let flags = ["--http-write-timeout", "300ms"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(server.address()).await.unwrap();
    let asking = async {
        let ask = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
        while stream.write_all(ask).await.is_ok() {}
    };
    let held = server.get("/api/v1/pop/queue/q?wait=true&timeout=2000");
    let (given_up, held) = tokio::join!(timeout(PATIENCE, asking), held);
    assert!(given_up.is_ok(), "it is still open");
    assert_eq!(held.status, 204);
}
