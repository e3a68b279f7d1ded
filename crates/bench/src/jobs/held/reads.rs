//! The held reads: a connection each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{BYTES, ReadKeys};
use crate::connection::{Connection, Request};
use crate::jobs::provider::{Provider, body};
use crate::jobs::server::HOLD;
use crate::load;
use crate::meter::{Meter, RestCriteria, Work};
use crate::server::{REQUEST_TIMEOUT, Server};

/// More would overrun the server's accept queue.
const OPENING_AT_ONCE: usize = 256;
const UPLOADS_AT_ONCE: usize = 16;
/// How a server shows that it has taken in all reads, if it does not say how many it holds. At most
/// 12 s, as the reads run out of time.
const TAKEN_IN: RestCriteria = RestCriteria {
    check_interval: Duration::from_millis(200),
    cpu_share: 0.1,
    quiet_checks: 2,
    unmeasured: Duration::from_secs(3),
    timeout: Duration::from_secs(12),
};

pub(crate) struct HeldReads {
    keys: ReadKeys,
    count: usize,
    sent: Arc<AtomicUsize>,
    /// Each returns the number of its read, and when that was answered.
    tasks: JoinSet<(usize, anyhow::Result<Instant>)>,
}

pub(super) struct AnswerTimes {
    /// From the first upload to the last answer.
    pub(super) time: Duration,
    /// From the upload of its result to the answer of each read.
    pub(super) times: Vec<Duration>,
}

impl HeldReads {
    pub(crate) fn open(server: &Server, provider: &Provider, keys: ReadKeys, count: usize) -> Self {
        let opening = Arc::new(Semaphore::new(OPENING_AT_ONCE));
        let sent = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let (opening, sent) = (Arc::clone(&opening), Arc::clone(&sent));
            let mut connection = server.connection();
            let read = provider.held_read(server, &keys.of(number));
            tasks.spawn(async move {
                let opened = {
                    let _permit = opening.acquire().await;
                    connection.open().await
                };
                sent.fetch_add(1, Ordering::Relaxed);
                let answered = match opened {
                    Ok(()) => hold(connection, read).await,
                    Err(error) => Err(error.into()),
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

    /// Returns when the server says that it holds `wanted` requests, or its process has nothing to
    /// do.
    pub(crate) async fn until_taken_in(
        &self,
        server: &Server,
        meter: &Meter,
        wanted: usize,
    ) -> anyhow::Result<()> {
        let client = server.client()?;
        let work = async || {
            let waiting = client.waiting().await.ok();
            let holds_all = waiting.is_some_and(|waiting| waiting as usize >= wanted);
            match self.sent.load(Ordering::Relaxed) >= self.count {
                true if holds_all => Work::Finished,
                true => Work::Unknown,
                false => Work::Unfinished,
            }
        };
        meter.until_at_rest(&TAKEN_IN, work).await
    }

    /// Uploads the results, and returns when all reads have been answered or have failed.
    pub(super) async fn answer(mut self, server: &Server, provider: &Provider) -> AnswerTimes {
        let start = Instant::now();
        let uploads = match self.keys {
            ReadKeys::Distinct => self.count,
            ReadKeys::Identical => 1,
        };
        let keys = self.keys;
        let uploading = load::for_each(
            server,
            UPLOADS_AT_ONCE,
            uploads,
            async |connection, number| {
                let upload = provider.upload(&keys.of(number), body(BYTES));
                let sent = Instant::now();
                if let Err(error) = connection.send_ok(upload, REQUEST_TIMEOUT).await {
                    server.failures.add_error("upload", &error);
                }
                Ok(sent)
            },
        );
        let answering = async {
            let mut answers = Vec::with_capacity(self.count);
            while let Some(Ok((number, answered))) = self.tasks.join_next().await {
                match answered {
                    Ok(at) => answers.push((number, at)),
                    Err(error) => server.failures.add_error("held read", &error),
                }
            }
            answers
        };
        let (uploaded, answers) = tokio::join!(uploading, answering);
        let uploaded = uploaded.unwrap_or_default();
        let last = answers.iter().map(|(_, at)| *at).max().unwrap_or(start);
        let times = answers.into_iter().map(|(number, at)| {
            let upload = number.min(uploads - 1);
            let sent = uploaded.get(upload).copied().unwrap_or(start);
            at.saturating_duration_since(sent)
        });
        AnswerTimes {
            time: last.saturating_duration_since(start),
            times: times.collect(),
        }
    }

    pub(crate) async fn hang_up(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn hold(mut connection: Connection, read: Request) -> anyhow::Result<Instant> {
    let response = connection.send(read, HOLD + REQUEST_TIMEOUT).await?;
    let answered = Instant::now();
    response.check()?;
    ensure!(response.body.len() == BYTES, "{}", response.describe());
    Ok(answered)
}
