//! A read that nobody has asked for before: it goes to a provider in Python, by zndraw-joblib's own
//! client over Socket.IO, which uploads the result.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::host::HOLD;
use super::peer::Peer;
use super::provider::read;
use crate::contestant::{Contestant, PATIENCE, PAUSE};
use crate::figure::Figure;
use crate::line::Line;

const NAME: &str = "python";
/// A provider joins its room without being told that it has; it has after this.
const JOINED_WITHIN: Duration = Duration::from_secs(30);
/// Not counted: both sides open connections and load code.
const WARM_UP: usize = 10;

pub(super) async fn measure(server: &Contestant, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    let peer = Peer::find(&args.peer)?;
    let room = server.named("cold");
    let provider = peer.provider(&server.url, &room, NAME)?;
    let mut reads = Reads {
        server,
        line: server.line(),
        room,
        next: 0,
    };
    reads.until_answered().await?;
    for _ in 0..WARM_UP {
        reads.read(HOLD).await?;
    }
    let mut times = Vec::new();
    for _ in 0..args.cold {
        let sent = Instant::now();
        match reads.read(HOLD).await {
            Ok(()) => times.push(sent.elapsed()),
            Err(error) => server.failures.add("cold read", &format!("{error:#}")),
        }
    }
    drop(provider);
    Ok(Figure::times("cold read", times))
}

struct Reads<'a> {
    server: &'a Contestant,
    line: Line,
    room: String,
    next: usize,
}

impl Reads<'_> {
    /// Each of a new key.
    async fn read(&mut self, hold: Duration) -> anyhow::Result<()> {
        self.next += 1;
        let key = format!("cold-{}", self.next);
        let hold = format!("wait={}", hold.as_secs());
        let ask = read(self.server, &self.room, NAME, &key).with("prefer", &hold);
        let answer = self.line.send(ask, HOLD + PATIENCE).await?;
        ensure!(answer.status.is_success(), "{}", answer.shown());
        let body = String::from_utf8_lossy(&answer.body);
        ensure!(body.contains(&key), "not what was asked for: {body}");
        Ok(())
    }

    async fn until_answered(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + JOINED_WITHIN;
        while let Err(error) = self.read(Duration::from_secs(1)).await {
            if Instant::now() >= deadline {
                return Err(error).context("the provider in Python answers nothing");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
