//! Pushing: as fast as the connections can, or a known number of messages.

use std::cell::RefCell;
use std::sync::Arc;

use anyhow::ensure;
use http::Uri;

use super::args::QueueArgs;
use super::push_bodies::{PushBodies, PushTemplate, templates};
use super::responses::queued;
use crate::connection::{Connection, Response};
use crate::failures::Failures;
use crate::figure::{Figure, Unit};
use crate::load::{self, Operation, Throughput};
use crate::server::{REQUEST_TIMEOUT, Server};

pub(super) const PUSH: &str = "/api/v1/push";
pub(super) const FILL_BATCH: usize = 100;
const FILL_CONNECTIONS: usize = 8;

pub(super) async fn measure(
    server: &Server,
    args: &QueueArgs,
    batch: usize,
) -> anyhow::Result<Vec<Figure>> {
    let queue = server.unique_name(&format!("push-{batch}"));
    let templates = templates(args, &queue, batch);
    let pushers = (0..args.connections).map(|connection| {
        let bodies = PushBodies::new(Arc::clone(&templates), connection);
        Pusher::new(server, bodies)
    });
    let pushed = Throughput::measure(pushers, args.seconds, 1).await;
    let name = format!("push, batch {batch}");
    let unit = Unit::MESSAGES_PER_SECOND;
    Ok(Figure::rate(&name, unit, "answer", pushed))
}

/// Pushes at least `wanted` messages to a queue, evenly over its partitions. Returns how many.
pub(super) async fn fill(
    server: &Server,
    args: &QueueArgs,
    queue: &str,
    wanted: usize,
) -> anyhow::Result<usize> {
    let per_partition = wanted.div_ceil(args.partitions);
    let batch = per_partition.min(FILL_BATCH);
    let pushes = per_partition.div_ceil(batch) * args.partitions;
    fill_with(server, templates(args, queue, batch), pushes).await?;
    Ok(pushes * batch)
}

/// Pushes each template in turn, `pushes` times in all. Fails when a message is not stored,
/// because the phase would measure a smaller queue.
pub(super) async fn fill_with(
    server: &Server,
    templates: Arc<[PushTemplate]>,
    pushes: usize,
) -> anyhow::Result<()> {
    let path = server.path(PUSH);
    let bodies = RefCell::new(PushBodies::new(Arc::clone(&templates), 0));
    load::for_each(
        server,
        FILL_CONNECTIONS,
        pushes,
        async |connection, number| {
            let template = number % templates.len();
            let body = bodies.borrow_mut().of(template);
            let response = connection.post(&path, body, REQUEST_TIMEOUT).await?;
            check_queued(&response, templates[template].items())
        },
    )
    .await?;
    Ok(())
}

pub(super) fn check_queued(response: &Response, expected: usize) -> anyhow::Result<()> {
    let stored = queued(response)?;
    ensure!(
        stored == expected,
        "{stored} of {expected} messages were stored: {}",
        response.describe()
    );
    Ok(())
}

/// One connection that pushes.
pub(super) struct Pusher {
    connection: Connection,
    path: Uri,
    bodies: PushBodies,
    failures: Arc<Failures>,
}

impl Pusher {
    pub(super) fn new(server: &Server, bodies: PushBodies) -> Self {
        Self {
            connection: server.connection(),
            path: server.path(PUSH),
            bodies,
            failures: Arc::clone(&server.failures),
        }
    }

    /// How many messages are stored now.
    pub(super) async fn push(&mut self) -> anyhow::Result<usize> {
        let (count, body) = self.bodies.next();
        let path = &self.path;
        let response = self.connection.post(path, body, REQUEST_TIMEOUT).await?;
        check_queued(&response, count)?;
        Ok(count)
    }
}

impl Operation for Pusher {
    async fn run(&mut self) -> usize {
        self.push().await.unwrap_or_else(|error| {
            self.failures.add_error("push", &error);
            0
        })
    }
}
