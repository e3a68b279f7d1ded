//! Callers that are not logged in, and the limits on what they cost the server.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{
    fixture::Fixture,
    server::{PATIENCE, Server},
};

const EMAIL: &str = "admin@example.com";
const PASSWORD: &str = "correct horse";
const GUESS: &str = "incorrect-horse";

async fn start() -> Server {
    Fixture::sqlite()
        .serve()
        .flags(&["--jobs-admin-email", EMAIL])
        .env("WAKELINE_JOBS_ADMIN_PASSWORD", PASSWORD)
        .start()
        .await
}

fn login(length: usize, form: &str) -> String {
    format!(
        "POST /v1/auth/jwt/login HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{form}"
    )
}

/// Sends a request from `address`, and returns the beginning of its answer.
async fn answer(server: &Server, address: &str, sent: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(format!("{address}:0").parse().unwrap())
        .unwrap();
    let mut stream = socket.connect(server.address()).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let read = timeout(PATIENCE, stream.read(&mut answer)).await;
    answer.truncate(read.expect("an answer").unwrap());
    (stream, String::from_utf8(answer).unwrap())
}

async fn status(server: &Server, address: &str, password: &str) -> String {
    let password = password.replace(' ', "+");
    let form = format!("username={EMAIL}&password={password}");
    let (_, answer) = answer(server, address, &login(form.len(), &form)).await;
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn password_guesses_are_delayed_and_logged_and_the_owner_is_not_locked_out() {
    let server = start().await;
    let mut guesses = Vec::new();
    while guesses.last().is_none_or(|status| status == "400") && guesses.len() < 12 {
        guesses.push(status(&server, "127.0.0.1", GUESS).await);
    }
    assert_eq!(guesses.last().unwrap(), "429", "{guesses:?}");
    assert!(guesses.len() > 5, "{guesses:?}");
    assert_eq!(status(&server, "127.0.0.2", PASSWORD).await, "200");
    let log = server.log();
    let failed: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a login failed"))
        .collect();
    assert_eq!(failed.len(), guesses.len() - 1, "{log}");
    for line in failed {
        assert!(line.contains(EMAIL) && line.contains("127.0.0.1"), "{line}");
    }
    assert!(!log.contains(GUESS), "{log}");
}

/// Otherwise a few connections could fill the memory before any login.
#[tokio::test]
async fn login_bodies_over_the_limit_are_refused_unread() {
    let server = start().await;
    let sent = login(9_000_000, &"x".repeat(60_000));
    let mut unfinished = Vec::new();
    for _ in 0..30 {
        let (stream, answer) = answer(&server, "127.0.0.1", &sent).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        unfinished.push(stream);
    }
    assert_eq!(status(&server, "127.0.0.1", PASSWORD).await, "200");
}
