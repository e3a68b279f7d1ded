//! Consumer groups.

use std::collections::HashMap;

use futures_util::try_join;

use super::Queue;
use crate::{
    browse::{GroupRow, Lease, Reader},
    claim::Source,
    error::Error,
    store::{
        read::{Row, Value},
        statements,
    },
    topic::{self, QueueName},
};

fn reader(row: &Row) -> Reader {
    Reader {
        group: row.text("group_name"),
        queue: row.text("queue"),
        partition: row.text("partition"),
        partition_number: row.number("partition_id"),
        position: row.number("position"),
        lag: row.number("ahead"),
        lease: row.maybe_id("lease_id").map(|id| Lease {
            id,
            to: row.number("leased_to"),
            until_us: row.number("ready_us"),
        }),
        consumed: row.number("consumed"),
        oldest_us: row.maybe_number("oldest_us"),
    }
}

/// The pops that a node holds, by group and by what they wait for.
#[derive(Debug, Default)]
struct HeldPopsByGroup(HashMap<(String, Source), i64>);

impl HeldPopsByGroup {
    fn add(&mut self, group: &str, source: Source, count: usize) {
        // A pop of one partition waits for the queue too.
        let source = match source {
            Source::Queue { queue, .. } => Source::Queue {
                queue,
                partition: None,
            },
            matching @ Source::Matching { .. } => matching,
        };
        let held = self.0.entry((group.to_owned(), source)).or_default();
        *held += i64::try_from(count).unwrap_or_default();
    }

    /// Those that a message of this queue can answer.
    fn of(&self, group: &str, queue: QueueName<'_>) -> i64 {
        let sources = topic::sources_of_queue(queue).into_iter();
        let held = sources.filter_map(|source| self.0.get(&(group.to_owned(), source)));
        held.sum()
    }
}

impl Queue {
    fn held_by_group(&self) -> HeldPopsByGroup {
        let mut held = HeldPopsByGroup::default();
        for waiting in self.engine.waiting(topic::DOOR) {
            if let Some(source) = topic::source(&waiting.topic) {
                held.add(waiting.group.name(), source, waiting.waiters);
            }
        }
        held
    }

    /// All groups of all queues, `limit` at most. Reads every cursor.
    pub async fn groups(&self, limit: i64) -> Result<Vec<GroupRow>, Error> {
        let (groups, totals) = try_join!(
            self.store
                .rows("groups", statements::GROUPS, vec![limit.into()]),
            self.store.rows("groups", statements::GROUP_TOTALS, vec![]),
        )?;
        let totals = totals.into_iter().map(|row| (row.number("group_id"), row));
        let totals: HashMap<i64, Row> = totals.collect();
        let held = self.held_by_group();
        let group = |row: &Row| {
            let totals = totals.get(&row.number("id"));
            let total = |column: &str| totals.and_then(|totals| totals.maybe_number(column));
            let (name, queue) = (row.text("name"), row.text("queue"));
            let (namespace, task) = (row.text("namespace"), row.text("task"));
            let queue_name = QueueName {
                name: &queue,
                namespace: &namespace,
                task: &task,
            };
            GroupRow {
                held_pops: held.of(&name, queue_name),
                name,
                queue,
                namespace,
                task,
                mode: row.text("mode"),
                begin_us: row.maybe_number("begin_us"),
                created_us: row.number("created_us"),
                cursors: total("cursors").unwrap_or_default(),
                lag: total("lag").unwrap_or_default(),
                lagging: total("lagging").unwrap_or_default(),
                leased: total("leased").unwrap_or_default(),
                leases: total("leases").unwrap_or_default(),
                oldest_us: total("oldest_us"),
            }
        };
        Ok(groups.iter().map(group).collect())
    }

    async fn readers(
        &self,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> Result<Vec<Reader>, Error> {
        let rows = self.store.rows("groups", statement, parameters).await?;
        Ok(rows.iter().map(reader).collect())
    }

    /// How far a group has read in its queues, or in one of them; `limit` partitions at most.
    pub async fn group_readers(
        &self,
        group: &str,
        queue: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Reader>, Error> {
        let (first, last) = (queue.unwrap_or(0), queue.unwrap_or(i64::MAX));
        let parameters = vec![group.into(), first.into(), last.into(), limit.into()];
        self.readers(statements::GROUP_READERS, parameters).await
    }

    /// Groups whose oldest message in a partition has waited for at least `wait_us`, the longest
    /// wait first. Reads every cursor.
    pub async fn lagging_groups(&self, wait_us: i64, limit: i64) -> Result<Vec<Reader>, Error> {
        let parameters = vec![wait_us.into(), limit.into()];
        self.readers(statements::LAGGING_READERS, parameters).await
    }

    /// The groups that read a partition, queue mode first.
    pub(super) async fn partition_readers(&self, partition: i64) -> Result<Vec<Reader>, Error> {
        self.readers(statements::PARTITION_READERS, vec![partition.into()])
            .await
    }

    /// The names of the groups of a queue, or of all queues.
    pub async fn group_names(&self, queue: Option<i64>, limit: i64) -> Result<Vec<String>, Error> {
        let (first, last) = (queue.unwrap_or(0), queue.unwrap_or(i64::MAX));
        let parameters = vec![first.into(), last.into(), limit.into()];
        let rows = self
            .store
            .rows("groups", statements::GROUP_NAMES, parameters)
            .await?;
        Ok(rows.iter().map(|row| row.text("name")).collect())
    }
}
