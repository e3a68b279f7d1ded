//! Oversized requests and malformed HTTP. Sent as bytes: no library would send them.

use crate::{
    server::Server,
    wire::{Line, post, raw, raw_sent_first},
};

const HUGE: usize = 100 << 20;

/// A body of 100 MB at every route, with a content length and in chunks. With a content length the
/// body is not even sent.
pub(super) async fn bodies(server: &Server) {
    for path in ["/api/v1/push", "/api/v1/ack"] {
        let start = format!("POST {path} HTTP/1.1\r\nhost: x\r\n");
        let mut counted = format!("{start}content-length: {HUGE}\r\n\r\n").into_bytes();
        counted.resize(counted.len() + HUGE, b' ');
        let mut chunked = format!("{start}transfer-encoding: chunked\r\n\r\n").into_bytes();
        for _ in 0..HUGE >> 20 {
            chunked.extend_from_slice(b"100000\r\n");
            chunked.resize(chunked.len() + (1 << 20), b' ');
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        for bytes in [&counted, &chunked] {
            let answer = raw_sent_first(server.address(), bytes).await;
            assert_eq!(answer.problem()["type"], "urn:wakeline:body-too-large");
        }
        let asking = format!("{start}expect: 100-continue\r\ncontent-length: {HUGE}\r\n\r\n");
        for bytes in [counted, chunked, asking.into_bytes()] {
            let answer = raw(server.address(), &bytes).await;
            assert_eq!(answer.status, 413);
            assert_eq!(answer.problem()["type"], "urn:wakeline:body-too-large");
        }
        let mut http2 = Line::http2(server.address()).await;
        let answer = http2
            .call(post(path, vec![b' '; HUGE]))
            .await
            .expect("an answer");
        assert_eq!(answer.status, 413);
        assert_eq!(answer.problem()["type"], "urn:wakeline:body-too-large");
    }
}

/// hyper answers these by itself, with a status and no body.
pub(super) async fn malformed_http(server: &Server) {
    let wide = "x".repeat(70_000);
    let many = "a: b\r\n".repeat(2_000);
    let requests = [
        format!("GET /{wide} HTTP/1.1\r\nhost: x\r\n\r\n"),
        format!("GET /livez HTTP/1.1\r\nhost: x\r\nwide: {wide}\r\n\r\n"),
        format!("GET /livez HTTP/1.1\r\nhost: x\r\n{many}\r\n"),
        "GET /livez HTTP/9.9\r\nhost: x\r\n\r\n".to_owned(),
        "GET /li\u{1}vez HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "GET /li vez HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "GET /ü HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
        "G\0T /livez HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\r\nna me: y\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\r\nname: y\0z\r\n\r\n".to_owned(),
        "POST /api/v1/push HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n".to_owned(),
        "POST /api/v1/push HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{"
            .to_owned(),
        "POST /api/v1/push HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n{".to_owned(),
        "POST /api/v1/push HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{"
            .to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3} this is TLS".to_owned(),
        "\r\n\r\nnonsense\r\n\r\n".to_owned(),
    ];
    for request in requests {
        let answer = raw(server.address(), request.as_bytes()).await;
        let what: String = request.chars().take(80).collect();
        assert!(
            (400..500).contains(&answer.status),
            "{what:?}: {}",
            answer.status
        );
    }
}
