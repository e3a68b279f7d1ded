//! How many pops were held, per queue and node.

use super::{
    Browse,
    tallies::{MAX_ROWS, Span},
};
use crate::{
    error::Error,
    store::read::{Read, Row},
};

/// How long it is kept.
pub const KEPT_SECONDS: i64 = 7 * 86_400;

/// The pops of a queue that were held in a step: on one node, or on all of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub step_us: i64,
    pub queue: String,
    /// Host and port.
    pub node: Option<(String, i64)>,
    /// On average over the minutes in which there were any.
    pub held: f64,
}

#[expect(clippy::cast_precision_loss, reason = "an average is for reading")]
fn average(thousandths: i64, minutes: i64) -> f64 {
    thousandths as f64 / 1_000.0 / minutes.max(1) as f64
}

impl Browse<'_> {
    /// By queue and node.
    pub async fn held_by_node(
        &self,
        span: Span,
        queue: &Option<String>,
    ) -> Result<Vec<Held>, Error> {
        let statement = "SELECT (p.minute_us / $3) * $3, p.queue,
                 CAST(sum(p.held * 1000 / p.samples) AS bigint), count(*), p.hostname, p.port
             FROM wakeline.queue_held p
             WHERE p.minute >= {at $1} AND p.minute < {at $2} AND ($4 IS NULL OR p.queue = $4)
             GROUP BY 1, 2, 5, 6 ORDER BY 1, 2, 5, 6 LIMIT $5";
        ask(self.read, statement, span, queue).await
    }

    /// By queue, on all nodes together.
    pub async fn held_by_queue(
        &self,
        span: Span,
        queue: &Option<String>,
    ) -> Result<Vec<Held>, Error> {
        let statement = "SELECT (p.minute_us / $3) * $3, p.queue,
                 CAST(sum(p.held * 1000 / p.samples) AS bigint), count(DISTINCT p.minute)
             FROM wakeline.queue_held p
             WHERE p.minute >= {at $1} AND p.minute < {at $2} AND ($4 IS NULL OR p.queue = $4)
             GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $5";
        ask(self.read, statement, span, queue).await
    }
}

async fn ask(
    read: &dyn Read,
    statement: &'static str,
    span: Span,
    queue: &Option<String>,
) -> Result<Vec<Held>, Error> {
    let mut parameters = span.parameters();
    parameters.extend([queue.into(), MAX_ROWS.into()]);
    let rows = read.rows("parked", statement, parameters).await?;
    let held = |row: &Row| Held {
        step_us: row.number(0),
        queue: row.text(1),
        held: average(row.number(2), row.number(3)),
        node: (row.0.len() > 4).then(|| (row.text(4), row.number(5))),
    };
    Ok(rows.iter().map(held).collect())
}
