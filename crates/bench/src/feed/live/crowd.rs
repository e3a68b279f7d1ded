//! Many open streams, a connection each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Givens;
use crate::contestant::Contestant;
use crate::feed::facts::Root;
use crate::feed::stream::Stream;

/// More would overrun the server's accept queue, and a slow one its patience with us.
const OPENING_AT_ONCE: usize = 64;
const FEEDS_AT_ONCE: usize = 16;
/// Until the head of a stream's answer is there.
const OPENS_WITHIN: Duration = Duration::from_secs(120);
/// Until all are open and have said SYNC.
const ALL_WITHIN: Duration = Duration::from_secs(600);
/// A fact that takes longer has not come.
const COMES_WITHIN: Duration = Duration::from_secs(120);
const SYNCS_WITHIN: Duration = Duration::from_secs(10);
/// Wakeline says SYNC half a second after a live page; one who says none at all is not waited for
/// longer.
const NO_MORE_SYNCS: Duration = Duration::from_secs(1);

pub(super) struct Crowd {
    roots: Vec<Root>,
    count: usize,
    events: mpsc::UnboundedReceiver<Event>,
    _tasks: JoinSet<()>,
}

enum Event {
    /// A frame with facts.
    Page(Instant),
    Sync,
    Lost(anyhow::Error),
}

impl Crowd {
    /// Returns when every stream has said SYNC.
    pub(super) async fn open(
        server: &Contestant,
        givens: Givens,
        count: usize,
    ) -> anyhow::Result<Self> {
        let roots = match givens {
            Givens::Distinct => count,
            Givens::One => 1,
        };
        let phase = format!("live-{givens}-{count}").replace(' ', "-");
        let roots: Vec<Root> = (0..roots)
            .map(|number| Root::new(server, &format!("{phase}-{number}")))
            .collect();
        let feeds = make_known(server, &roots).await?;
        let (sender, events) = mpsc::unbounded_channel();
        let opening = Arc::new(Semaphore::new(OPENING_AT_ONCE));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let ask = Stream::request(server, &feeds[number % feeds.len()]);
            let (line, opening, sender) = (server.line(), Arc::clone(&opening), sender.clone());
            tasks.spawn(async move {
                let opened = {
                    let _permit = opening.acquire().await;
                    line.stream(ask, OPENS_WITHIN).await
                };
                let lost = match opened {
                    Ok(body) => follow(Stream::of(body), &sender).await,
                    Err(error) => error,
                };
                // Nobody listens when the run is over.
                let _ = sender.send(Event::Lost(lost));
            });
        }
        let mut crowd = Self {
            roots,
            count,
            events,
            _tasks: tasks,
        };
        let deadline = Instant::now() + ALL_WITHIN;
        for synced in 0..count {
            let event = crowd.next(deadline).await;
            event.with_context(|| format!("{synced} of {count} streams have said SYNC"))?;
        }
        Ok(crowd)
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn root(&self, stream: usize) -> &Root {
        &self.roots[stream % self.roots.len()]
    }

    /// When each of `wanted` frames with facts came.
    pub(super) async fn arrivals(&mut self, wanted: usize) -> anyhow::Result<Vec<Instant>> {
        let deadline = Instant::now() + COMES_WITHIN;
        let mut times = Vec::with_capacity(wanted);
        while times.len() < wanted {
            let event = self.next(deadline).await;
            let event =
                event.with_context(|| format!("{} of {wanted} frames came", times.len()))?;
            if let Event::Page(at) = event {
                times.push(at);
            }
        }
        Ok(times)
    }

    /// Some servers say SYNC for each, some may save themselves some.
    pub(super) async fn until_synced(&mut self, wanted: usize) {
        let deadline = Instant::now() + SYNCS_WITHIN;
        for _ in 0..wanted {
            let next = (Instant::now() + NO_MORE_SYNCS).min(deadline);
            if self.next(next).await.is_err() {
                return;
            }
        }
    }

    async fn next(&mut self, deadline: Instant) -> anyhow::Result<Event> {
        let event = tokio::time::timeout_at(deadline, self.events.recv())
            .await
            .context("the rest took too long")?
            .context("all streams are gone")?;
        match event {
            Event::Lost(error) => Err(error.context("a stream was lost")),
            event => Ok(event),
        }
    }
}

/// Returns why it ended.
async fn follow(mut stream: Stream, events: &mpsc::UnboundedSender<Event>) -> anyhow::Error {
    loop {
        let event = match stream.frame().await {
            Ok(frame) if frame.hashes.is_empty() => Event::Sync,
            Ok(frame) => Event::Page(frame.at),
            Err(error) => return error,
        };
        if events.send(event).is_err() {
            return anyhow::anyhow!("the run is over");
        }
    }
}

/// Stores them. Returns the hashes of their feeds, in their order.
async fn make_known(server: &Contestant, roots: &[Root]) -> anyhow::Result<Vec<String>> {
    let next = AtomicUsize::new(0);
    let asking = (0..FEEDS_AT_ONCE.min(roots.len())).map(|_| async {
        let mut line = server.line();
        let mut known = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(root) = roots.get(number) else {
                return anyhow::Ok(known);
            };
            // Else the first save of each would also be the arrival of what its feed begins with.
            root.save(&mut line, 0..0).await?;
            known.push((number, root.feed(&mut line).await?));
        }
    });
    let mut known = futures_util::future::try_join_all(asking).await?.concat();
    ensure!(known.len() == roots.len(), "not all feeds are known");
    known.sort_unstable();
    Ok(known.into_iter().map(|(_, feed)| feed).collect())
}
