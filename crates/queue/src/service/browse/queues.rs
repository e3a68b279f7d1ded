//! Queues and partitions.

use std::collections::HashMap;

use futures_util::try_join;

use super::Queue;
use crate::{
    browse::{
        Distribution, LeaseCounts, ListPage, MessageCounts, Overview, Page, PartitionRow,
        QueueFilter, QueueRow,
    },
    error::Error,
    store::{
        read::{Row, Value},
        statements,
    },
};

/// From the columns `total`, `ahead`, `leased`, `letters` (dead letters of the group that counts)
/// and `all_letters`.
fn counts(row: &Row) -> MessageCounts {
    let [total, ahead, leased, letters] =
        ["total", "ahead", "leased", "letters"].map(|column| row.number(column));
    MessageCounts {
        total,
        pending: ahead - leased,
        processing: leased,
        completed: (total - ahead - letters).max(0),
        dead_letter: row.number("all_letters"),
    }
}

impl QueueFilter {
    /// As the first three parameters of a statement.
    fn parameters(&self) -> Vec<Value> {
        vec![
            (&self.name).into(),
            (&self.namespace).into(),
            (&self.task).into(),
        ]
    }
}

impl Queue {
    /// Queues, the newest first. Reads every partition of the queues on the page.
    pub async fn queues(
        &self,
        filter: &QueueFilter,
        page: Page,
    ) -> Result<ListPage<QueueRow>, Error> {
        let parameters = filter.parameters();
        let read = |row: &Row| {
            Ok(QueueRow {
                number: row.number("id"),
                id: row.id("public_id"),
                name: row.text("name"),
                namespace: row.text("namespace"),
                task: row.text("task"),
                priority: row.number("priority"),
                options: row.text("options"),
                created_us: row.number("created_us"),
                lease_ms: row.maybe_number("lease_ms"),
                ..QueueRow::default()
            })
        };
        let mut queues = self
            .paged("queues", statements::QUEUES, parameters, page, read)
            .await?;
        let ids = queues.rows.iter().map(|queue| queue.number);
        let Some((first, last)) = ids.clone().min().zip(ids.max()) else {
            return Ok(queues);
        };
        let range = vec![first.into(), last.into()];
        let totals = self.store.rows("queues", statements::QUEUE_TOTALS, range);
        let totals = totals.await?.into_iter();
        let totals: HashMap<i64, Row> = totals.map(|row| (row.number("queue_id"), row)).collect();
        for queue in &mut queues.rows {
            if let Some(row) = totals.get(&queue.number) {
                queue.partitions = row.number("partitions");
                queue.counts = counts(row);
                queue.consumed = row.number("consumed");
                queue.oldest_us = row.maybe_number("oldest_us");
            }
        }
        Ok(queues)
    }

    /// The leases in the queues that the filter selects.
    pub async fn leases(&self, filter: &QueueFilter) -> Result<LeaseCounts, Error> {
        let leases = self
            .store
            .rows("queues", statements::LEASES, filter.parameters());
        let leases = &leases.await?[0];
        Ok(LeaseCounts {
            leases: leases.number("leases"),
            partitions: leases.number("partitions"),
        })
    }

    /// One queue by its name.
    pub async fn queue(&self, name: &str) -> Result<Option<QueueRow>, Error> {
        let filter = QueueFilter {
            name: Some(name.to_owned()),
            ..QueueFilter::default()
        };
        let page = Page::first(1);
        Ok(self.queues(&filter, page).await?.rows.pop())
    }

    /// The number of a queue, or nothing if there is none of this name.
    pub async fn queue_number(&self, name: &str) -> Result<Option<i64>, Error> {
        let rows = self
            .store
            .rows("queues", statements::QUEUE_ID, vec![name.into()])
            .await?;
        Ok(rows.first().map(|row| row.number("id")))
    }

    /// Partitions in the order in which they were created, of one queue or of all.
    pub async fn partitions(
        &self,
        queue: Option<i64>,
        page: Page,
    ) -> Result<ListPage<PartitionRow>, Error> {
        let range = vec![queue.unwrap_or(0).into(), queue.unwrap_or(i64::MAX).into()];
        let read = |row: &Row| {
            Ok(PartitionRow {
                number: row.number("partition_id"),
                queue: row.text("queue"),
                name: row.text("partition"),
                created_us: row.number("created_us"),
                last_us: row.number("last_us"),
                consumed: row.number("consumed"),
                oldest_us: row.maybe_number("oldest_us"),
                counts: counts(row),
            })
        };
        self.paged("partitions", statements::PARTITIONS, range, page, read)
            .await
    }

    pub async fn overview(&self) -> Result<Overview, Error> {
        let (names, totals) = try_join!(
            self.store.rows("overview", statements::NAMES, vec![]),
            self.store.rows("overview", statements::OVERVIEW, vec![]),
        )?;
        let (names, totals) = (&names[0], &totals[0]);
        let distribution = |of: &str| Distribution {
            least: totals.number(&format!("min_{of}")),
            most: totals.number(&format!("max_{of}")),
            mean: totals.number(&format!("mean_{of}")),
            median: totals.number(&format!("median_{of}")),
        };
        Ok(Overview {
            queues: names.number("queues"),
            namespaces: names.number("namespaces"),
            tasks: names.number("tasks"),
            now_us: names.number("now_us"),
            partitions: totals.number("partitions"),
            counts: counts(totals),
            offset: distribution("ahead"),
            wait_us: distribution("wait"),
        })
    }
}
