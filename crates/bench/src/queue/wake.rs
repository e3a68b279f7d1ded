//! End to end: a pop is held, a message is pushed, the pop is answered.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

use super::answers::{ack_of, acknowledged, queued};
use super::args::QueueArgs;
use super::bodies::{Bodies, Template, shape};
use crate::contestant::{Contestant, PATIENCE};
use crate::figure::Figure;
use crate::percentiles::Percentiles;

const HOLD: Duration = Duration::from_secs(30);
/// Before each push, so that the pop is parked. Drawn at random, so that the pushes do not fall
/// into step with a server that polls.
const REST: std::ops::Range<f64> = 0.02..0.12;

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
) -> anyhow::Result<Vec<Figure>> {
    let queue = contestant.named("wake");
    let template = Template::new(&shape(args, &queue), std::iter::once("p"));
    let mut bodies = Bodies::new(Arc::new([template]), 0);
    let hold = HOLD.as_millis();
    let pop = contestant.path(&format!(
        "/api/v1/pop/queue/{queue}?batch=1&wait=true&timeout={hold}"
    ));
    let push = contestant.path("/api/v1/push");
    let ack = contestant.path("/api/v1/ack");
    let (mut pops, mut pushes) = (contestant.line(), contestant.line());
    let (mut from_sent, mut from_answered) = (Vec::new(), Vec::new());

    // The first one makes the queue and opens the connections: it is not counted.
    for wake in 0..=args.wakes {
        let waiting = async {
            let answer = pops.get(&pop, HOLD + PATIENCE).await?;
            anyhow::Ok((Instant::now(), answer))
        };
        let pushing = async {
            tokio::time::sleep(Duration::from_secs_f64(rand::random_range(REST))).await;
            let sent = Instant::now();
            let answer = pushes.post(&push, bodies.next().1, PATIENCE).await?;
            ensure!(queued(&answer)? == 1, "not stored: {}", answer.shown());
            Ok((sent, Instant::now()))
        };
        let woken = async {
            let ((popped, answer), (sent, pushed)) = tokio::try_join!(waiting, pushing)?;
            let (body, _) = ack_of(&answer, 1, None)?.context("the hold ended without it")?;
            Ok((
                body,
                popped - sent,
                popped.saturating_duration_since(pushed),
            ))
        };
        let (body, sent, answered) = match woken.await {
            Ok(woken) => woken,
            Err::<_, anyhow::Error>(error) => {
                contestant.failures.add("wake", &format!("{error:#}"));
                continue;
            }
        };
        let answer = pops.post(&ack, body, PATIENCE).await?;
        ensure!(acknowledged(&answer)? == 1, "ack: {}", answer.shown());
        if wake > 0 {
            from_sent.push(sent);
            from_answered.push(answered);
        }
    }

    let mut figures = Vec::new();
    for (from, times) in [("push sent", from_sent), ("push answered", from_answered)] {
        let times = Percentiles::of(times).context("no pop was woken")?;
        for (name, time) in [("p50", times.p50), ("p99", times.p99), ("max", times.max)] {
            figures.push(Figure::time(format!("wake {name}, from {from}"), time));
        }
    }
    Ok(figures)
}
