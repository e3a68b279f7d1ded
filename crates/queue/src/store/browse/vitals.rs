//! How the nodes were doing.

use super::{
    Browse,
    tallies::{MAX_ROWS, Span},
};
use crate::{error::Error, store::read::Row};

/// How long it is kept.
pub const KEPT_SECONDS: i64 = 7 * 86_400;

/// A number over the minutes of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge {
    pub average: f64,
    pub least: i64,
    pub most: i64,
    /// In the last minute.
    pub last: i64,
}

/// What a node told of a step. What its system does not tell is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStep {
    pub step_us: i64,
    pub hostname: String,
    pub port: i64,
    /// Minutes that it told of.
    pub minutes: i64,
    pub last_us: i64,
    /// Pushed and acknowledged.
    pub messages: i64,
    /// Hundredths of a percent of one processor.
    pub cpu_user: Option<Gauge>,
    pub cpu_system: Option<Gauge>,
    pub resident_bytes: Option<Gauge>,
    pub virtual_bytes: Option<Gauge>,
    pub connections: Option<Gauge>,
    pub busy_connections: Option<Gauge>,
    pub held: Option<Gauge>,
    pub late_us: Option<Gauge>,
    pub max_late_us: Option<Gauge>,
}

/// Columns before the first gauge, and of a gauge.
const BEFORE: usize = 6;
const WIDTH: usize = 5;

macro_rules! of_step {
    ($($name:literal),+) => {
        concat!($(", CAST(sum(n.", $name, ") AS bigint), count(n.", $name, "), min(n.", $name,
            "), max(n.", $name, "), max(CASE WHEN n.minute_us = s.last_us THEN n.", $name,
            " END)"),+)
    };
}

const STATEMENT: &str = concat!(
    "SELECT s.step_us, s.hostname, s.port, max(s.minutes), max(s.last_us),
         CAST(sum(n.messages) AS bigint)",
    of_step!(
        "cpu_user",
        "cpu_system",
        "resident_bytes",
        "virtual_bytes",
        "connections",
        "busy_connections",
        "held",
        "late_us",
        "max_late_us"
    ),
    "
     FROM (
         SELECT (n.minute_us / $3) * $3 AS step_us, n.hostname, n.port, count(*) AS minutes,
             max(n.minute_us) AS last_us
         FROM wakeline.queue_vital n
         WHERE n.minute >= {at $1} AND n.minute < {at $2} AND ($4 IS NULL OR n.hostname = $4)
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $5) s
     JOIN wakeline.queue_vital n ON n.hostname = s.hostname AND n.port = s.port
         AND (n.minute_us / $3) * $3 = s.step_us
     WHERE n.minute >= {at $1} AND n.minute < {at $2}
     GROUP BY 1, 2, 3 ORDER BY 2, 3, 1"
);

impl Browse<'_> {
    /// By node and step.
    pub async fn node_steps(
        &self,
        span: Span,
        hostname: &Option<String>,
    ) -> Result<Vec<NodeStep>, Error> {
        let mut parameters = span.parameters();
        parameters.extend([hostname.into(), MAX_ROWS.into()]);
        let rows = self.read.rows("vitals", STATEMENT, parameters).await?;
        let step = |row: &Row| NodeStep {
            step_us: row.number(0),
            hostname: row.text(1),
            port: row.number(2),
            minutes: row.number(3),
            last_us: row.number(4),
            messages: row.number(5),
            cpu_user: gauge(row, 0),
            cpu_system: gauge(row, 1),
            resident_bytes: gauge(row, 2),
            virtual_bytes: gauge(row, 3),
            connections: gauge(row, 4),
            busy_connections: gauge(row, 5),
            held: gauge(row, 6),
            late_us: gauge(row, 7),
            max_late_us: gauge(row, 8),
        };
        Ok(rows.iter().map(step).collect())
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average is for reading")]
fn gauge(row: &Row, number: usize) -> Option<Gauge> {
    let at = BEFORE + number * WIDTH;
    Some(Gauge {
        average: row.maybe_number(at)? as f64 / row.number(at + 1).max(1) as f64,
        least: row.number(at + 2),
        most: row.number(at + 3),
        last: row.number(at + 4),
    })
}
