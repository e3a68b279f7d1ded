//! How the nodes were doing.

use super::Queue;
use crate::{
    browse::{Gauge, NodeStatsBucket, Span},
    error::Error,
    store::{read::Row, statements},
};

impl Queue {
    /// By node and time step.
    pub async fn node_steps(
        &self,
        span: Span,
        hostname: &Option<String>,
    ) -> Result<Vec<NodeStatsBucket>, Error> {
        let rows = self.series("node_stats", statements::NODE_STATS, span, hostname);
        let bucket = |row: &Row| NodeStatsBucket {
            bucket_us: row.number("bucket"),
            hostname: row.text("host"),
            port: row.number("host_port"),
            minutes: row.number("minutes_told"),
            last_us: row.number("last_us"),
            messages: row.number("messages_sum"),
            cpu_user: gauge(row, "cpu_user"),
            cpu_system: gauge(row, "cpu_system"),
            resident_bytes: gauge(row, "resident_bytes"),
            virtual_bytes: gauge(row, "virtual_bytes"),
            connections: gauge(row, "connections"),
            busy_connections: gauge(row, "busy_connections"),
            held: gauge(row, "held"),
            late_us: gauge(row, "late_us"),
            max_late_us: gauge(row, "max_late_us"),
        };
        Ok(rows.await?.iter().map(bucket).collect())
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average is for reading")]
fn gauge(row: &Row, name: &str) -> Option<Gauge> {
    let number = |of: &str| row.maybe_number(&format!("{name}_{of}"));
    let count = number("count").unwrap_or_default().max(1);
    Some(Gauge {
        average: number("sum")? as f64 / count as f64,
        least: number("min").unwrap_or_default(),
        most: number("max").unwrap_or_default(),
        last: number("last").unwrap_or_default(),
    })
}
