//! Many open streams, a connection each.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::StreamRoots;
use crate::connection::Connection;
use crate::feed::facts::Root;
use crate::feed::stream::FeedStream;
use crate::load;
use crate::server::Server;

/// More would overrun the server's accept queue, and run into the timeouts of a slow server.
const OPENING_AT_ONCE: usize = 64;
const FEEDS_AT_ONCE: usize = 16;
/// Until the head of a stream's response is there.
const OPENS_WITHIN: Duration = Duration::from_secs(120);
/// Until all streams are open and have brought their SYNC.
const ALL_WITHIN: Duration = Duration::from_secs(600);
/// A fact that takes longer is lost.
const ARRIVES_WITHIN: Duration = Duration::from_secs(120);
const SYNCS_WITHIN: Duration = Duration::from_secs(10);
/// Wakeline sends SYNC half a second after a live page. A server that sends none is not waited for
/// longer than this.
const NO_MORE_SYNCS: Duration = Duration::from_secs(1);

pub(super) struct OpenStreams {
    roots: Vec<Root>,
    count: usize,
    events: mpsc::UnboundedReceiver<StreamEvent>,
    _tasks: JoinSet<()>,
}

enum StreamEvent {
    /// A frame with facts.
    Page(Instant),
    Sync,
    Lost(anyhow::Error),
}

impl OpenStreams {
    /// Returns when every stream has brought its SYNC.
    pub(super) async fn open(
        server: &Server,
        sharing: StreamRoots,
        count: usize,
    ) -> anyhow::Result<Self> {
        let roots = match sharing {
            StreamRoots::Distinct => count,
            StreamRoots::Shared => 1,
        };
        let phase = format!("live-{sharing}-{count}").replace(' ', "-");
        let roots: Vec<Root> = (0..roots)
            .map(|number| Root::new(server, &format!("{phase}-{number}")))
            .collect();
        let feeds = register_feeds(server, &roots).await?;
        let (sender, events) = mpsc::unbounded_channel();
        let opening = Arc::new(Semaphore::new(OPENING_AT_ONCE));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let request = FeedStream::request(server, &feeds[number % feeds.len()]);
            let (connection, opening, sender) =
                (server.connection(), Arc::clone(&opening), sender.clone());
            tasks.spawn(async move {
                let opened = {
                    let _permit = opening.acquire().await;
                    connection.stream(request, OPENS_WITHIN).await
                };
                let lost = match opened {
                    Ok(body) => follow(FeedStream::of(body), &sender).await,
                    Err(error) => error,
                };
                // The receiver is gone when the run is over.
                let _ = sender.send(StreamEvent::Lost(lost));
            });
        }
        let mut streams = Self {
            roots,
            count,
            events,
            _tasks: tasks,
        };
        let deadline = Instant::now() + ALL_WITHIN;
        for synced in 0..count {
            let event = streams.next(deadline).await;
            event.with_context(|| format!("{synced} of {count} streams have brought SYNC"))?;
        }
        Ok(streams)
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn root(&self, stream: usize) -> &Root {
        &self.roots[stream % self.roots.len()]
    }

    /// When each of `wanted` frames with facts arrived.
    pub(super) async fn arrivals(&mut self, wanted: usize) -> anyhow::Result<Vec<Instant>> {
        let deadline = Instant::now() + ARRIVES_WITHIN;
        let mut times = Vec::with_capacity(wanted);
        while times.len() < wanted {
            let event = self.next(deadline).await;
            let event =
                event.with_context(|| format!("{} of {wanted} frames came", times.len()))?;
            if let StreamEvent::Page(at) = event {
                times.push(at);
            }
        }
        Ok(times)
    }

    /// Some servers send a SYNC after each frame, others fewer.
    pub(super) async fn until_synced(&mut self, wanted: usize) {
        let deadline = Instant::now() + SYNCS_WITHIN;
        for _ in 0..wanted {
            let next = (Instant::now() + NO_MORE_SYNCS).min(deadline);
            if self.next(next).await.is_err() {
                return;
            }
        }
    }

    async fn next(&mut self, deadline: Instant) -> anyhow::Result<StreamEvent> {
        let event = tokio::time::timeout_at(deadline, self.events.recv())
            .await
            .context("the rest took too long")?
            .context("all streams have ended")?;
        match event {
            StreamEvent::Lost(error) => Err(error.context("a stream was lost")),
            event => Ok(event),
        }
    }
}

/// Returns why it ended.
async fn follow(
    mut stream: FeedStream,
    events: &mpsc::UnboundedSender<StreamEvent>,
) -> anyhow::Error {
    loop {
        let event = match stream.frame().await {
            Ok(frame) if frame.hashes.is_empty() => StreamEvent::Sync,
            Ok(frame) => StreamEvent::Page(frame.at),
            Err(error) => return error,
        };
        if events.send(event).is_err() {
            return anyhow::anyhow!("the run is over");
        }
    }
}

/// Stores the roots. Returns the hashes of their feeds, in their order.
async fn register_feeds(server: &Server, roots: &[Root]) -> anyhow::Result<Vec<String>> {
    let register = async |connection: &mut Connection, number: usize| {
        let root: &Root = &roots[number];
        // Else the first save of each root would also bring the facts that its feed begins with.
        root.save(connection, 0..0).await?;
        root.feed(connection).await
    };
    load::for_each(server, FEEDS_AT_ONCE, roots.len(), register).await
}
