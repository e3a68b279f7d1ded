//! The client against a socket that answers with given bytes: the sent requests, and the texts of
//! each kind of failure.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wakeline_client::{Client, Error, Outcome, PopRequest, PushItem};

/// Answers one request with `answer` (empty: hangs up) and returns the request.
async fn server(answer: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        // The body of these tests ends with its brackets; a request without one with its head.
        while !(request.ends_with(b"]}") || request.ends_with(b"\r\n\r\n") && request[0] == b'G') {
            assert!(socket.read_buf(&mut request).await.unwrap() > 0);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (url, asked)
}

#[tokio::test]
async fn a_push_sends_the_token_and_reads_one_result_per_item() {
    let (url, asked) = server(
        "HTTP/1.1 201 Created\r\ncontent-length: 72\r\n\r\n\
         [{\"index\":0,\"status\":\"queued\",\"message_id\":\"m\",\"transaction_id\":\"t-1\"}]\n",
    )
    .await;
    let client = Client::new(url, Some("secret".to_owned())).unwrap();
    let item = PushItem::new("orders", &[1, 2])
        .unwrap()
        .transaction_id("t-1");
    let pushed = client.push(&[item]).await.unwrap();
    assert_eq!(pushed[0].transaction_id, "t-1");
    let asked = asked.await.unwrap();
    assert!(
        asked.starts_with("POST /api/v1/push HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains("authorization: Bearer secret\r\n"),
        "{asked}"
    );
    assert!(
        asked.ends_with(r#"{"items":[{"queue":"orders","payload":[1,2],"transactionId":"t-1"}]}"#)
    );
    assert!(!format!("{client:?}").contains("secret"));
}

#[tokio::test]
async fn an_empty_pop_is_none() {
    let (url, asked) = server("HTTP/1.1 204 No Content\r\n\r\n").await;
    let pop = PopRequest {
        wait: true,
        timeout: Some(Duration::from_secs(1)),
        ..PopRequest::new("orders")
    };
    assert!(
        Client::new(url, None)
            .unwrap()
            .pop(&pop)
            .await
            .unwrap()
            .is_none()
    );
    let asked = asked.await.unwrap();
    assert!(
        asked.starts_with("GET /api/v1/pop/queue/orders?wait=true&timeout=1000 HTTP/1.1\r\n"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_ready_is_an_answer() {
    let (url, _) =
        server("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 8\r\n\r\ndraining").await;
    let readiness = Client::new(url, None).unwrap().readyz(true).await.unwrap();
    assert!(!readiness.ready);
    assert_eq!(readiness.body, "draining");
}

#[tokio::test]
async fn a_push_without_an_answer_says_whether_a_repeat_is_safe() {
    for (named, safe) in [(true, true), (false, false)] {
        let (url, _) = server("").await;
        let mut item = PushItem::new("orders", &[1]).unwrap();
        item.transaction_id = named.then(|| "t-1".to_owned());
        let error = Client::new(url, None)
            .unwrap()
            .push(&[item])
            .await
            .unwrap_err();
        let Error::Transport { outcome, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(outcome.retry_is_safe(), safe);
        assert!(
            error.to_string().contains("the outcome is unknown"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_refused_connection_means_that_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let item = PushItem::new("orders", &1).unwrap();
    let error = Client::new(url, None)
        .unwrap()
        .push(&[item])
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Transport {
                outcome: Outcome::NotSent,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_answer_of_another_protocol_is_undecodable() {
    let (url, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").await;
    let error = Client::new(url, None).unwrap().waiting().await.unwrap_err();
    assert!(matches!(error, Error::Undecodable { .. }), "{error:?}");
}
