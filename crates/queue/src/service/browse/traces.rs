//! Traces: what consumers recorded about messages.

use futures_util::try_join;

use super::Queue;
use crate::{
    browse::{ListPage, MessageAddress, Page, Trace, TraceName},
    error::Error,
    store::{read::Row, statements},
};

/// Traces of one message at most.
const MAX_TRACES: i64 = 1_000;

fn trace(row: &Row) -> Trace {
    Trace {
        id: row.id("id"),
        partition: row.number("partition_id"),
        transaction_id: row.text("transaction_id"),
        group: row.text("group_name"),
        event: row.text("event"),
        data: row.text("data"),
        worker: row.text("worker"),
        created_us: row.number("created_us"),
        names: Vec::new(),
        queue: row.maybe_text("queue"),
        partition_name: row.maybe_text("partition"),
    }
}

impl Queue {
    /// The traces of a message, the oldest first.
    pub async fn traces_of(&self, address: &MessageAddress) -> Result<Vec<Trace>, Error> {
        let transaction_id = address.transaction_id.as_str();
        let message = vec![address.partition.into(), transaction_id.into()];
        let mut limited = message.clone();
        limited.push(MAX_TRACES.into());
        let (traces, names) = try_join!(
            self.store
                .rows("traces", statements::TRACES_OF_MESSAGE, limited),
            self.store
                .rows("traces", statements::TRACE_NAMES_OF_MESSAGE, message),
        )?;
        let with_names = |row: &Row| {
            let trace = trace(row);
            let names = names.iter().filter(|row| row.id("trace_id") == trace.id);
            Trace {
                names: names.map(|row| row.text("name")).collect(),
                ..trace
            }
        };
        Ok(traces.iter().map(with_names).collect())
    }

    /// The traces that have a name, the newest first.
    pub async fn traces_named(
        &self,
        name: &str,
        from_us: i64,
        to_us: i64,
        page: Page,
    ) -> Result<ListPage<Trace>, Error> {
        let filter = vec![name.into(), from_us.into(), to_us.into()];
        let read = |row: &Row| Ok(trace(row));
        let mut found = self
            .paged("traces", statements::TRACES_NAMED, filter, page, read)
            .await?;
        for trace in &mut found.rows {
            let address = MessageAddress {
                partition: trace.partition,
                transaction_id: trace.transaction_id.clone(),
            };
            let of_message = self.traces_of(&address).await?;
            if let Some(same) = of_message.into_iter().find(|other| other.id == trace.id) {
                trace.names = same.names;
            }
        }
        Ok(found)
    }

    /// The names that traces have, the last used first. Reads every name.
    pub async fn trace_names(&self, page: Page) -> Result<ListPage<TraceName>, Error> {
        let read = |row: &Row| {
            Ok(TraceName {
                name: row.text("name"),
                traces: row.number("traces"),
                messages: row.number("messages"),
                last_us: row.number("last_us"),
            })
        };
        self.paged("traces", statements::TRACE_NAMES, vec![], page, read)
            .await
    }
}
