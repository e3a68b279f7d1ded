//! What was counted per queue and minute.

use std::{fmt::Write, sync::LazyLock};

use super::Browse;
use crate::{
    error::Error,
    store::read::{Row, Value},
    tally::{Count, columns},
};

/// How long counts are kept.
pub const KEPT_SECONDS: i64 = 90 * 86_400;
/// Rows of an answer at most.
pub const MAX_ROWS: i64 = 50_000;

/// Which times: from the first on and before the second, in steps of `bucket_us`.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_us: i64,
    pub to_us: i64,
    pub bucket_us: i64,
}

impl Span {
    /// As the first three parameters of a question.
    pub(super) fn parameters(self) -> Vec<Value> {
        vec![
            self.from_us.into(),
            self.to_us.into(),
            self.bucket_us.into(),
        ]
    }
}

/// Of calls the server's own row counts when everything is asked for together.
static SERIES: LazyLock<String> = LazyLock::new(|| {
    let mut sums = String::new();
    for column in columns() {
        let name = column.name;
        let _ = if column.is_servers {
            let own = "(t.queue = '') = ($6 = 1)";
            write!(
                sums,
                ", CAST(sum(CASE WHEN {own} THEN t.{name} ELSE 0 END) AS bigint)"
            )
        } else {
            write!(sums, ", CAST(sum(t.{name}) AS bigint)")
        };
    }
    format!(
        "SELECT (t.minute_us / $3) * $3, CASE WHEN $5 = 1 THEN t.queue ELSE '' END,
             max(t.max_lag_us), max(t.partitions){sums}
         FROM wakeline.queue_count t
         WHERE t.minute >= {{at $1}} AND t.minute < {{at $2}} AND ($4 IS NULL OR t.queue = $4)
             AND ($6 = 1 OR t.queue <> '')
         GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $7"
    )
});

impl Browse<'_> {
    /// Counts in steps; by queue, or of one or all queues together (then without a name).
    pub async fn counts(
        &self,
        span: Span,
        queue: &Option<String>,
        by_queue: bool,
    ) -> Result<Vec<Count>, Error> {
        let whole = !by_queue && queue.is_none();
        let mut parameters = span.parameters();
        parameters.extend([
            queue.into(),
            i64::from(by_queue).into(),
            i64::from(whole).into(),
            MAX_ROWS.into(),
        ]);
        let rows = self.read.rows("tallies", &SERIES, parameters).await?;
        let count = |row: &Row| {
            let mut count = Count {
                minute_us: row.number(0),
                queue: row.text(1),
                max_lag_us: row.number(2),
                partitions: row.maybe_number(3),
                ..Count::default()
            };
            for (at, column) in columns().enumerate() {
                *(column.field)(&mut count) = row.number(at + 4);
            }
            count
        };
        Ok(rows.iter().map(count).collect())
    }

    /// The store's time, in microseconds since 1970.
    pub async fn now_us(&self) -> Result<i64, Error> {
        let rows = self.read.rows("now", "SELECT {now}", vec![]).await?;
        Ok(rows[0].number(0))
    }
}
