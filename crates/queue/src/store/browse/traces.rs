//! Traces: what consumers told of messages.

use futures_util::try_join;

use super::{Address, Browse};
use crate::{
    browse::{Page, Paged, Trace, TraceName},
    error::Error,
    store::read::Row,
};

/// Traces of one message at most, and names of one trace.
pub const MAX_TRACES: i64 = 1_000;
pub const MAX_NAMES: usize = 50;

fn trace(row: &Row) -> Trace {
    Trace {
        id: row.id(0),
        partition: row.number(1),
        transaction_id: row.text(2),
        group: row.text(3),
        event: row.text(4),
        data: row.text(5),
        worker: row.text(6),
        created_us: row.number(7),
        names: Vec::new(),
        queue: row.maybe_text(8),
        partition_name: row.maybe_text(9),
    }
}

impl Browse<'_> {
    /// The traces of a message, the oldest first.
    pub async fn traces_of(&self, address: &Address) -> Result<Vec<Trace>, Error> {
        let wanted = || {
            vec![
                address.partition.into(),
                address.transaction_id.as_str().into(),
            ]
        };
        let mut limited = wanted();
        limited.push(MAX_TRACES.into());
        let (traces, names) = try_join!(
            self.read.rows(
                "traces",
                "SELECT t.id, t.partition_id, t.transaction_id, t.group_name, t.event, t.data, t.worker,
                     t.created_us, NULL, NULL
                 FROM wakeline.queue_traced t WHERE t.partition_id = $1 AND t.transaction_id = $2
                 ORDER BY t.created_us, t.id LIMIT $3",
                limited,
            ),
            self.read.rows(
                "traces",
                "SELECT n.trace_id, n.name FROM wakeline.queue_trace t
                 JOIN wakeline.queue_trace_name n ON n.trace_id = t.id AND n.created_at = t.created_at
                 WHERE t.partition_id = $1 AND t.transaction_id = $2 ORDER BY n.name",
                wanted(),
            ),
        )?;
        Ok(named(traces.iter().map(trace).collect(), &names))
    }
}

fn named(mut traces: Vec<Trace>, names: &[Row]) -> Vec<Trace> {
    for trace in &mut traces {
        trace.names = names
            .iter()
            .filter(|row| row.id(0) == trace.id)
            .map(|row| row.text(1))
            .collect();
    }
    traces
}

impl Browse<'_> {
    /// The traces that have a name, the newest first.
    pub async fn traces_named(
        &self,
        name: &str,
        from_us: i64,
        to_us: i64,
        page: Page,
    ) -> Result<Paged<Trace>, Error> {
        let wanted = || vec![name.into(), from_us.into(), to_us.into()];
        let mut paged = wanted();
        paged.extend([page.limit.into(), page.offset.into()]);
        let (count, rows) = try_join!(
            self.read.rows(
                "traces",
                "SELECT count(*) FROM wakeline.queue_trace_name n
                 WHERE n.name = $1 AND n.created_at >= {at $2} AND n.created_at < {at $3}",
                wanted(),
            ),
            self.read.rows(
                "traces",
                "SELECT t.id, t.partition_id, t.transaction_id, t.group_name, t.event, t.data, t.worker,
                     t.created_us, q.name, p.name
                 FROM (
                     SELECT n.trace_id, n.created_at FROM wakeline.queue_trace_name n
                     WHERE n.name = $1 AND n.created_at >= {at $2} AND n.created_at < {at $3}
                     ORDER BY n.created_at DESC, n.trace_id DESC LIMIT $4 OFFSET $5) n
                 JOIN wakeline.queue_traced t ON t.id = n.trace_id
                 LEFT JOIN wakeline.queue_partition p ON p.id = t.partition_id
                 LEFT JOIN wakeline.queue q ON q.id = p.queue_id
                 ORDER BY n.created_at DESC, n.trace_id DESC",
                paged,
            ),
        )?;
        let mut traces: Vec<Trace> = rows.iter().map(trace).collect();
        for trace in &mut traces {
            let address = Address {
                partition: trace.partition,
                transaction_id: trace.transaction_id.clone(),
            };
            let others = self.traces_of(&address).await?;
            if let Some(same) = others.into_iter().find(|other| other.id == trace.id) {
                trace.names = same.names;
            }
        }
        Ok(Paged {
            rows: traces,
            total: count[0].number(0),
        })
    }

    /// The names that traces have, those that were used last first. Reads every name.
    pub async fn trace_names(&self, page: Page) -> Result<Paged<TraceName>, Error> {
        let (count, rows) = try_join!(
            self.read.rows(
                "traces",
                "SELECT count(DISTINCT n.name) FROM wakeline.queue_trace_name n",
                vec![],
            ),
            self.read.rows(
                "traces",
                "SELECT o.name, o.traces, o.last_us, (
                     SELECT count(*) FROM (
                         SELECT DISTINCT t.partition_id, t.transaction_id
                         FROM wakeline.queue_trace_name n JOIN wakeline.queue_trace t ON t.id = n.trace_id
                         WHERE n.name = o.name) m)
                 FROM (
                     SELECT n.name, count(*) AS traces, max(n.created_us) AS last_us
                     FROM wakeline.queue_trace_named n GROUP BY n.name
                     ORDER BY 3 DESC, 1 LIMIT $1 OFFSET $2) o
                 ORDER BY o.last_us DESC, o.name",
                vec![page.limit.into(), page.offset.into()],
            ),
        )?;
        Ok(Paged {
            rows: rows
                .iter()
                .map(|row| TraceName {
                    name: row.text(0),
                    traces: row.number(1),
                    last_us: row.number(2),
                    messages: row.number(3),
                })
                .collect(),
            total: count[0].number(0),
        })
    }
}
