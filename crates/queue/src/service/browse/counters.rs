//! Counters per queue and time step.

use super::{MAX_ROWS, Queue};
use crate::{
    browse::Span,
    counters::{CounterRow, columns},
    error::Error,
    store::{read::Row, statements},
};

impl Queue {
    /// Counters in steps; by queue, or of one or all queues together (then without a name).
    pub async fn counts(
        &self,
        span: Span,
        queue: &Option<String>,
        by_queue: bool,
    ) -> Result<Vec<CounterRow>, Error> {
        let is_whole = !by_queue && queue.is_none();
        let mut parameters = span.parameters();
        parameters.extend([
            queue.into(),
            i64::from(by_queue).into(),
            i64::from(is_whole).into(),
            MAX_ROWS.into(),
        ]);
        let rows = self
            .store
            .rows("counters", &statements::COUNTERS, parameters)
            .await?;
        let counters = |row: &Row| {
            let mut counters = CounterRow {
                minute_us: row.number("bucket_us"),
                queue: row.text("queue_name"),
                max_lag_us: row.number("longest_us"),
                partitions: row.maybe_number("most_partitions"),
                ..CounterRow::default()
            };
            for column in columns() {
                *(column.field)(&mut counters) = row.number(column.name);
            }
            counters
        };
        Ok(rows.iter().map(counters).collect())
    }
}
