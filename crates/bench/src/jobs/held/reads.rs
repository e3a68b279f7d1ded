//! The held reads: a connection each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Keys;
use crate::contestant::{Contestant, PATIENCE};
use crate::jobs::host::{HOLD, ask};
use crate::jobs::provider::{Provider, body};
use crate::line::{Ask, Line};

/// More would overrun the server's accept queue.
const OPENING_AT_ONCE: usize = 256;
const UPLOADS_AT_ONCE: usize = 16;
const BYTES: usize = 200;

pub(crate) struct HeldReads {
    keys: Keys,
    count: usize,
    sent: Arc<AtomicUsize>,
    /// Which read was answered, and when.
    tasks: JoinSet<(usize, anyhow::Result<Instant>)>,
}

pub(super) struct Answered {
    /// From the first upload to the last answer.
    pub(super) time: Duration,
    /// From the upload of its result to the answer of each read.
    pub(super) times: Vec<Duration>,
}

impl HeldReads {
    pub(crate) fn open(server: &Contestant, provider: &Provider, keys: Keys, count: usize) -> Self {
        let opening = Arc::new(Semaphore::new(OPENING_AT_ONCE));
        let sent = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let (mut line, opening) = (server.line(), Arc::clone(&opening));
            let (read, sent) = (
                provider.held_read(server, &keys.of(number)),
                Arc::clone(&sent),
            );
            tasks.spawn(async move {
                let opened = {
                    let _permit = opening.acquire().await;
                    line.open().await
                };
                sent.fetch_add(1, Ordering::Relaxed);
                let answered = match opened {
                    Ok(()) => hold(line, read).await,
                    Err(lost) => Err(lost.into()),
                };
                (number, answered)
            });
        }
        Self {
            keys,
            count,
            sent,
            tasks,
        }
    }

    pub(super) fn all_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed) >= self.count
    }

    /// Uploads what they wait for, and returns when all have an answer or have been given up.
    pub(super) async fn answer(mut self, server: &Contestant, provider: &Provider) -> Answered {
        let start = Instant::now();
        let uploads = match self.keys {
            Keys::Distinct => self.count,
            Keys::Identical => 1,
        };
        let uploading = upload(server, provider, self.keys, uploads);
        let answering = async {
            let mut answers = Vec::with_capacity(self.count);
            while let Some(Ok((number, answered))) = self.tasks.join_next().await {
                match answered {
                    Ok(at) => answers.push((number, at)),
                    Err(error) => server.failures.add("held read", &format!("{error:#}")),
                }
            }
            answers
        };
        let (uploaded, answers) = tokio::join!(uploading, answering);
        let last = answers.iter().map(|(_, at)| *at).max().unwrap_or(start);
        let times = answers.into_iter().map(|(number, at)| {
            let sent = uploaded[number.min(uploads - 1)].unwrap_or(start);
            at.saturating_duration_since(sent)
        });
        Answered {
            time: last.saturating_duration_since(start),
            times: times.collect(),
        }
    }

    /// Hangs up.
    pub(crate) async fn leave(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn hold(mut line: Line, read: Ask) -> anyhow::Result<Instant> {
    let answer = line.send(read, HOLD + PATIENCE).await?;
    let at = Instant::now();
    ensure!(answer.status.is_success(), "{}", answer.shown());
    ensure!(answer.body.len() == BYTES, "{}", answer.shown());
    Ok(at)
}

/// When each was sent.
async fn upload(
    server: &Contestant,
    provider: &Provider,
    keys: Keys,
    uploads: usize,
) -> Vec<Option<Instant>> {
    let next = AtomicUsize::new(0);
    let sending = (0..UPLOADS_AT_ONCE.min(uploads)).map(|_| async {
        let mut line = server.line();
        let mut sent = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= uploads {
                return sent;
            }
            let upload = provider.upload(&keys.of(number), body(BYTES));
            sent.push((number, Instant::now()));
            if let Err(error) = ask(&mut line, upload).await {
                server.failures.add("upload", &format!("{error:#}"));
            }
        }
    });
    let mut times = vec![None; uploads];
    for (number, at) in futures_util::future::join_all(sending).await.concat() {
        times[number] = Some(at);
    }
    times
}
