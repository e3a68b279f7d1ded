//! End to end: a pop is held, a message is pushed, the pop is answered.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use super::args::QueueArgs;
use super::push::{PUSH, check_queued};
use super::push_bodies::{PushBodies, PushTemplate};
use super::responses::{ack_of, check_acknowledged};
use crate::figure::Figure;
use crate::load::random_pause;
use crate::server::{REQUEST_TIMEOUT, Server};

const HOLD: Duration = Duration::from_secs(30);
/// Milliseconds before each push, so that the pop is parked.
const PAUSE: std::ops::Range<u64> = 20..120;

pub(super) async fn measure(server: &Server, args: &QueueArgs) -> anyhow::Result<Vec<Figure>> {
    let queue = server.unique_name("wake");
    let template = PushTemplate::new(args, &queue, ["p"]);
    let mut bodies = PushBodies::new(Arc::new([template]), 0);
    let hold = HOLD.as_millis();
    let pop = server.path(&format!(
        "/api/v1/pop/queue/{queue}?batch=1&wait=true&timeout={hold}"
    ));
    let push = server.path(PUSH);
    let ack = server.path("/api/v1/ack");
    let (mut consumer, mut producer) = (server.connection(), server.connection());
    let (mut from_sent, mut from_answered) = (Vec::new(), Vec::new());

    // The first wake makes the queue and opens the connections: it is not counted.
    for wake in 0..=args.wakes {
        let waiting = async {
            let response = consumer.get(&pop, HOLD + REQUEST_TIMEOUT).await?;
            anyhow::Ok((Instant::now(), response))
        };
        let pushing = async {
            random_pause(PAUSE).await;
            let sent = Instant::now();
            let body = bodies.next().1;
            check_queued(&producer.post(&push, body, REQUEST_TIMEOUT).await?, 1)?;
            Ok((sent, Instant::now()))
        };
        let woken = async {
            let ((popped, response), (sent, pushed)) = tokio::try_join!(waiting, pushing)?;
            let found = ack_of(&response, 1, None)?;
            let (body, _) = found.context("the hold ended without the message")?;
            let after_push = popped.saturating_duration_since(pushed);
            anyhow::Ok((body, popped - sent, after_push))
        };
        let (body, after_sent, after_push) = match woken.await {
            Ok(woken) => woken,
            Err(error) => {
                server.failures.add_error("wake", &error);
                continue;
            }
        };
        check_acknowledged(&consumer.post(&ack, body, REQUEST_TIMEOUT).await?)?;
        if wake > 0 {
            from_sent.push(after_sent);
            from_answered.push(after_push);
        }
    }

    let mut figures = Figure::wakes("wake", "push sent", from_sent);
    figures.extend(Figure::wakes("wake", "push answered", from_answered));
    Ok(figures)
}
