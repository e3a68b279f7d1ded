//! A read of a new key: the server dispatches it over Socket.IO to a provider in Python, with
//! zndraw-joblib's own client, which uploads the result.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::provider::read;
use super::server::HOLD;
use crate::connection::Connection;
use crate::figure::Figure;
use crate::server::{REQUEST_TIMEOUT, RETRY_PAUSE, Server};
use crate::server_process::ServerProcess;

const NAME: &str = "python";
/// The server does not tell a provider that it has joined its room; it has after this.
const JOINED_WITHIN: Duration = Duration::from_secs(30);
/// Not counted: both sides open connections and load code.
const WARM_UP_READS: usize = 10;

pub(super) async fn measure(server: &Server, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    let room = server.unique_name("cold");
    let provider = start_provider(args, server, &room)?;
    let mut reads = ColdReads {
        server,
        connection: server.connection(),
        room,
        next: 0,
    };
    reads.until_answered().await?;
    for _ in 0..WARM_UP_READS {
        reads.read(HOLD).await?;
    }
    let mut times = Vec::new();
    for _ in 0..args.cold {
        let sent = Instant::now();
        match reads.read(HOLD).await {
            Ok(()) => times.push(sent.elapsed()),
            Err(error) => server.failures.add_error("cold read", &error),
        }
    }
    drop(provider);
    Ok(Figure::times("cold read", times))
}

/// Answers reads in `room` until it is dropped.
fn start_provider(args: &JobsArgs, server: &Server, room: &str) -> anyhow::Result<ServerProcess> {
    let peer = args.peer();
    ServerProcess::script(
        "provider",
        &peer.interpreter()?,
        &peer.script("provider.py")?,
        |_| {
            vec![
                format!("--url={}", server.url),
                format!("--room={room}"),
                format!("--name={NAME}"),
            ]
        },
        "serving",
    )
}

struct ColdReads<'a> {
    server: &'a Server,
    connection: Connection,
    room: String,
    next: usize,
}

impl ColdReads<'_> {
    /// Of a new key each time.
    async fn read(&mut self, hold: Duration) -> anyhow::Result<()> {
        self.next += 1;
        let key = format!("cold-{}", self.next);
        let request = read(self.server, &self.room, NAME, &key).held_for(hold);
        let timeout = HOLD + REQUEST_TIMEOUT;
        let response = self.connection.send_ok(request, timeout).await?;
        let body = String::from_utf8_lossy(&response.body);
        ensure!(body.contains(&key), "not the result of {key}: {body}");
        Ok(())
    }

    async fn until_answered(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + JOINED_WITHIN;
        while let Err(error) = self.read(Duration::from_secs(1)).await {
            if Instant::now() >= deadline {
                return Err(error).context("the provider in Python answers nothing");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(())
    }
}
