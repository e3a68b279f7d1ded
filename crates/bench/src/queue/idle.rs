//! What 100 held pops on 100 queues cost the database while nothing happens.

use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinSet;

use super::args::QueueArgs;
use super::push::Pusher;
use super::push_bodies::{PushBodies, PushTemplate};
use crate::figure::{Figure, Unit};
use crate::server::{REQUEST_TIMEOUT, RETRY_PAUSE, Server};

const WAITERS: usize = 100;
/// Longer than the watched time and the preparation together.
const HOLD: Duration = Duration::from_secs(120);
/// Until a server that does not say how many pops it holds has parked them all.
const PARKED_WITHIN: Duration = Duration::from_secs(3);
pub(super) const NAME: &str = "idle, 100 waiters on 100 queues";

pub(super) async fn measure(server: &Server, args: &QueueArgs) -> anyhow::Result<Vec<Figure>> {
    let meter = server.meter().await?;
    let mut waiters = JoinSet::new();
    for waiter in 0..WAITERS {
        let queue = server.unique_name(&format!("idle-{waiter}"));
        // Used before, as a real queue has been.
        let template = PushTemplate::new(args, &queue, ["p"]);
        let mut pusher = Pusher::new(server, PushBodies::new([template].into(), 0));
        pusher.push().await.context("making the queues")?;
        let mut connection = server.connection();
        let failures = server.failures.clone();
        let pop = |wait: &str| format!("/api/v1/pop/queue/{queue}?batch=1&autoAck=true&{wait}");
        let empty = server.path(&pop("wait=false"));
        let held = server.path(&pop(&format!("wait=true&timeout={}", HOLD.as_millis())));
        waiters.spawn(async move {
            let mut path = &empty;
            loop {
                if let Err(error) = connection.get(path, HOLD + REQUEST_TIMEOUT).await {
                    failures.add("held pop", &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                path = &held;
            }
        });
    }
    tokio::time::sleep(PARKED_WITHIN).await;
    let idle = meter.idle_usage(args.idle).await?;
    waiters.shutdown().await;
    let rate = idle.statements_per_second;
    Ok(vec![Figure::new(NAME, Unit::STATEMENTS_PER_SECOND, rate)])
}
