//! What was counted per queue and minute.

use wakeline_store::Error;

use crate::{store::read::Read, tally::Count};

/// How long counts are kept.
pub const KEPT_SECONDS: i64 = 90 * 86_400;
/// Rows of an answer at most.
pub const MAX_ROWS: i64 = 50_000;

/// Counts in steps of `bucket_us`, from a time on and before another; by queue, or of all queues
/// together (then without a name).
pub async fn series(
    read: &dyn Read,
    range: (i64, i64),
    bucket_us: i64,
    queue: &Option<String>,
    by_queue: bool,
) -> Result<Vec<Count>, Error> {
    let rows = read
        .rows(
            "tallies",
            "SELECT (t.minute_us / $3) * $3, CASE WHEN $5 = 1 THEN t.queue ELSE '' END,
                 CAST(sum(t.pushed) AS bigint), CAST(sum(t.popped) AS bigint),
                 CAST(sum(t.completed) AS bigint), CAST(sum(t.failed) AS bigint),
                 CAST(sum(t.dead) AS bigint), CAST(sum(t.lag_us) AS bigint), max(t.max_lag_us)
             FROM wakeline.queue_count t
             WHERE t.minute >= {at $1} AND t.minute < {at $2} AND ($4 IS NULL OR t.queue = $4)
             GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $6",
            vec![
                range.0.into(),
                range.1.into(),
                bucket_us.into(),
                queue.into(),
                i64::from(by_queue).into(),
                MAX_ROWS.into(),
            ],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| Count {
            minute_us: row.number(0),
            queue: row.text(1),
            pushed: row.number(2),
            popped: row.number(3),
            completed: row.number(4),
            failed: row.number(5),
            dead: row.number(6),
            lag_us: row.number(7),
            max_lag_us: row.number(8),
        })
        .collect())
}

/// The store's time, in microseconds since 1970.
pub async fn now(read: &dyn Read) -> Result<i64, Error> {
    let rows = read.rows("now", "SELECT {now}", vec![]).await?;
    Ok(rows[0].number(0))
}
