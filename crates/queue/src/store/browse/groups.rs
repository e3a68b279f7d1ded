//! Consumer groups.

use std::collections::HashMap;

use futures_util::try_join;

use super::Browse;
use crate::{
    browse::{GroupRow, Lease, Reader},
    error::Error,
    store::read::Row,
};

impl Browse<'_> {
    /// All groups of all queues, `limit` at most. Reads every cursor.
    pub async fn groups(&self, limit: i64) -> Result<Vec<GroupRow>, Error> {
        let (members, sums) = try_join!(
            self.read.rows(
                "groups",
                "SELECT g.id, g.name, q.name, g.mode, g.begin_us, g.created_us
                 FROM wakeline.queue_member g JOIN wakeline.queue q ON q.id = g.queue_id
                 ORDER BY g.name, q.name LIMIT $1",
                vec![limit.into()],
            ),
            self.read.rows(
                "groups",
                "SELECT r.group_id, count(*), CAST(sum(r.ahead) AS bigint),
                     CAST(sum(CASE WHEN r.ahead > 0 THEN 1 ELSE 0 END) AS bigint),
                     CAST(sum(CASE WHEN r.ready_us > {now} AND r.leased > 0 THEN 1 ELSE 0 END) AS bigint),
                     min(CASE WHEN r.ahead > 0 THEN r.oldest_us END)
                 FROM wakeline.queue_reader r GROUP BY r.group_id",
                vec![],
            ),
        )?;
        let sums: HashMap<i64, Row> = sums.into_iter().map(|row| (row.number(0), row)).collect();
        Ok(members
            .iter()
            .map(|row| {
                let sum = sums.get(&row.number(0));
                let number = |column: usize| sum.map(|sum| sum.number(column)).unwrap_or_default();
                GroupRow {
                    name: row.text(1),
                    queue: row.text(2),
                    mode: row.text(3),
                    begin_us: row.maybe_number(4),
                    created_us: row.number(5),
                    cursors: number(1),
                    lag: number(2),
                    lagging: number(3),
                    leased: number(4),
                    oldest_us: sum.and_then(|sum| sum.maybe_number(5)),
                }
            })
            .collect())
    }
}

fn reader(row: &Row) -> Reader {
    Reader {
        group: row.text(0),
        queue: row.text(1),
        partition: row.text(2),
        partition_number: row.number(3),
        position: row.number(4),
        lag: row.number(5),
        lease: row.maybe_id(6).map(|id| Lease {
            id,
            to: row.number(7),
            until_us: row.number(8),
        }),
        consumed: row.number(9),
        oldest_us: row.maybe_number(10),
    }
}

impl Browse<'_> {
    /// Where a group is in the queues that know it, `limit` partitions at most.
    pub async fn group_readers(
        &self,
        group: &str,
        queue: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Reader>, Error> {
        let rows = self
            .read
            .rows(
                "groups",
                "SELECT r.group_name, r.queue, r.partition, r.partition_id, r.position, r.ahead,
                     CASE WHEN r.ready_us > {now} THEN r.lease_id END, r.leased_to, r.ready_us,
                     r.consumed, CASE WHEN r.ahead > 0 THEN r.oldest_us END
                 FROM wakeline.queue_member g
                 JOIN wakeline.queue_partition p ON p.queue_id = g.queue_id
                 JOIN wakeline.queue_reader r ON r.partition_id = p.id AND r.group_id = g.id
                 WHERE g.name = $1 AND g.queue_id >= $2 AND g.queue_id <= $3
                 ORDER BY r.queue, p.ordinal LIMIT $4",
                vec![
                    group.into(),
                    queue.unwrap_or(0).into(),
                    queue.unwrap_or(i64::MAX).into(),
                    limit.into(),
                ],
            )
            .await?;
        Ok(rows.iter().map(reader).collect())
    }

    /// Whose oldest message has waited for so long, those who wait longest first. Reads every cursor.
    pub async fn lagging_groups(&self, wait_us: i64, limit: i64) -> Result<Vec<Reader>, Error> {
        let rows = self
            .read
            .rows(
                "groups",
                "SELECT r.group_name, r.queue, r.partition, r.partition_id, r.position, r.ahead,
                     CASE WHEN r.ready_us > {now} THEN r.lease_id END, r.leased_to, r.ready_us,
                     r.consumed, r.oldest_us
                 FROM wakeline.queue_reader r
                 WHERE r.next > r.position AND r.oldest_us <= {now} - $1 AND r.ahead > 0
                 ORDER BY r.oldest_us LIMIT $2",
                vec![wait_us.into(), limit.into()],
            )
            .await?;
        Ok(rows.iter().map(reader).collect())
    }

    /// The groups that read a partition, queue mode first.
    pub async fn partition_readers(&self, partition: i64) -> Result<Vec<Reader>, Error> {
        let rows = self
            .read
            .rows(
                "groups",
                "SELECT r.group_name, r.queue, r.partition, r.partition_id, r.position, r.ahead,
                     CASE WHEN r.ready_us > {now} THEN r.lease_id END, r.leased_to, r.ready_us,
                     r.consumed, r.oldest_us
                 FROM wakeline.queue_reader r WHERE r.partition_id = $1
                 ORDER BY r.group_name <> '__QUEUE_MODE__', r.position, r.group_name",
                vec![partition.into()],
            )
            .await?;
        Ok(rows.iter().map(reader).collect())
    }

    /// The names of the groups of a queue, or of all queues.
    pub async fn group_names(&self, queue: Option<i64>, limit: i64) -> Result<Vec<String>, Error> {
        let rows = self
            .read
            .rows(
                "groups",
                "SELECT DISTINCT g.name FROM wakeline.queue_group g
                 WHERE g.queue_id >= $1 AND g.queue_id <= $2 ORDER BY g.name LIMIT $3",
                vec![
                    queue.unwrap_or(0).into(),
                    queue.unwrap_or(i64::MAX).into(),
                    limit.into(),
                ],
            )
            .await?;
        Ok(rows.iter().map(|row| row.text(0)).collect())
    }
}
