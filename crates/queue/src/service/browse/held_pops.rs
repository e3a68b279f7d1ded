//! How many pops were held, per queue and node.

use super::Queue;
use crate::{
    browse::{HeldPopsAverage, Span},
    error::Error,
    store::{read::Row, statements},
};

#[expect(clippy::cast_precision_loss, reason = "an average is for reading")]
fn average(row: &Row) -> HeldPopsAverage {
    let sum = row.number("thousandths") as f64 / 1_000.0;
    HeldPopsAverage {
        bucket_us: row.number("bucket_us"),
        queue: row.text("queue_name"),
        held: sum / row.number("minutes").max(1) as f64,
        node: row.maybe_text("host").zip(row.maybe_number("host_port")),
    }
}

impl Queue {
    /// By queue and node.
    pub async fn held_by_node(
        &self,
        span: Span,
        queue: &Option<String>,
    ) -> Result<Vec<HeldPopsAverage>, Error> {
        let rows = self.series("held_pops", statements::HELD_POPS_BY_NODE, span, queue);
        Ok(rows.await?.iter().map(average).collect())
    }

    /// By queue, on all nodes together.
    pub async fn held_by_queue(
        &self,
        span: Span,
        queue: &Option<String>,
    ) -> Result<Vec<HeldPopsAverage>, Error> {
        let rows = self.series("held_pops", statements::HELD_POPS_BY_QUEUE, span, queue);
        Ok(rows.await?.iter().map(average).collect())
    }
}
