//! Queues and partitions.

use std::collections::HashMap;

use futures_util::try_join;

use super::Browse;
use crate::{
    browse::{Counts, Page, Paged, PartitionRow, QueueRow},
    error::Error,
    store::read::{Read, Row},
};

/// What a filter by name, namespace or task leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub task: Option<String>,
}

impl Browse<'_> {
    /// Queues, the newest first. Reads every partition of the queues on the page.
    pub async fn queues(&self, filter: &QueueFilter, page: Page) -> Result<Paged<QueueRow>, Error> {
        let named = || {
            vec![
                (&filter.name).into(),
                (&filter.namespace).into(),
                (&filter.task).into(),
            ]
        };
        let mut paged = named();
        paged.extend([page.limit.into(), page.offset.into()]);
        let (count, rows) = try_join!(
            self.read.rows(
                "queues",
                "SELECT count(*) FROM wakeline.queue q
                 WHERE ($1 IS NULL OR q.name = $1) AND ($2 IS NULL OR q.namespace = $2)
                     AND ($3 IS NULL OR q.task = $3)",
                named(),
            ),
            self.read.rows(
                "queues",
                "SELECT q.id, q.public_id, q.name, q.namespace, q.task, q.priority, q.options, q.created_us,
                     q.lease_ms
                 FROM wakeline.queue_named q
                 WHERE ($1 IS NULL OR q.name = $1) AND ($2 IS NULL OR q.namespace = $2)
                     AND ($3 IS NULL OR q.task = $3)
                 ORDER BY q.id DESC LIMIT $4 OFFSET $5",
                paged,
            ),
        )?;
        let ids = rows.iter().map(|row| row.number(0));
        let Some((least, most)) = ids.clone().min().zip(ids.max()) else {
            return Ok(Paged {
                rows: Vec::new(),
                total: count[0].number(0),
            });
        };
        let mut standings = standings(self.read, least, most).await?;
        let rows = rows
            .into_iter()
            .map(|row| {
                let standing = standings.remove(&row.number(0)).unwrap_or_default();
                QueueRow {
                    number: row.number(0),
                    id: row.id(1),
                    name: row.text(2),
                    namespace: row.text(3),
                    task: row.text(4),
                    priority: row.number(5),
                    options: row.text(6),
                    created_us: row.number(7),
                    lease_ms: row.maybe_number(8),
                    partitions: standing.partitions,
                    counts: standing.counts,
                    consumed: standing.consumed,
                    leased_partitions: standing.leased_partitions,
                    oldest_us: standing.oldest_us,
                }
            })
            .collect();
        Ok(Paged {
            rows,
            total: count[0].number(0),
        })
    }

    /// One queue by its name.
    pub async fn queue(&self, name: &str) -> Result<Option<QueueRow>, Error> {
        let filter = QueueFilter {
            name: Some(name.to_owned()),
            ..QueueFilter::default()
        };
        let page = Page {
            limit: 1,
            offset: 0,
        };
        Ok(self.queues(&filter, page).await?.rows.pop())
    }

    /// The number of a queue, or nothing if there is none of this name.
    pub async fn queue_number(&self, name: &str) -> Result<Option<i64>, Error> {
        let rows = self
            .read
            .rows(
                "queues",
                "SELECT q.id FROM wakeline.queue q WHERE q.name = $1",
                vec![name.into()],
            )
            .await?;
        Ok(rows.first().map(|row| row.number(0)))
    }
}

#[derive(Debug, Default)]
struct Standing {
    partitions: i64,
    counts: Counts,
    consumed: i64,
    leased_partitions: i64,
    oldest_us: Option<i64>,
}

/// By the queue's number, of the queues from `least` to `most`.
async fn standings(
    read: &dyn Read,
    least: i64,
    most: i64,
) -> Result<HashMap<i64, Standing>, Error> {
    let rows = read
        .rows(
            "queues",
            "SELECT s.queue_id, CAST(sum(s.total) AS bigint), CAST(sum(s.ahead) AS bigint),
                 CAST(sum(CASE WHEN s.ready_us > {now} THEN s.leased ELSE 0 END) AS bigint),
                 CAST(sum(s.letters) AS bigint), CAST(sum(s.all_letters) AS bigint),
                 count(*), CAST(sum(s.consumed) AS bigint),
                 CAST(sum(CASE WHEN s.ready_us > {now} AND s.leased > 0 THEN 1 ELSE 0 END) AS bigint),
                 min(CASE WHEN s.ahead > 0 THEN s.oldest_us END)
             FROM wakeline.queue_standing s WHERE s.queue_id >= $1 AND s.queue_id <= $2
             GROUP BY s.queue_id",
            vec![least.into(), most.into()],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| {
            let standing = Standing {
                partitions: row.number(6),
                counts: counts(row, 1),
                consumed: row.number(7),
                leased_partitions: row.number(8),
                oldest_us: row.maybe_number(9),
            };
            (row.number(0), standing)
        })
        .collect())
}

/// From five columns: stored, ahead, leased, dead letters of the group that counts, and of all.
fn counts(row: &Row, column: usize) -> Counts {
    let [total, ahead, leased, letters, all_letters] =
        [0, 1, 2, 3, 4].map(|offset| row.number(column + offset));
    Counts {
        total,
        pending: ahead - leased,
        processing: leased,
        completed: (total - ahead - letters).max(0),
        dead_letter: all_letters,
    }
}

impl Browse<'_> {
    /// Partitions in the order in which they were made, of one queue or of all.
    pub async fn partitions(
        &self,
        queue: Option<i64>,
        page: Page,
    ) -> Result<Paged<PartitionRow>, Error> {
        let read = self.read;
        let (least, most) = (queue.unwrap_or(0), queue.unwrap_or(i64::MAX));
        let (count, rows) = try_join!(
            read.rows(
                "partitions",
                "SELECT count(*) FROM wakeline.queue_partition p JOIN wakeline.queue q ON q.id = p.queue_id
                 WHERE p.queue_id >= $1 AND p.queue_id <= $2",
                vec![least.into(), most.into()],
            ),
            read.rows(
                "partitions",
                "SELECT s.partition_id, s.queue, s.partition, s.created_us, s.last_us, s.consumed,
                     s.oldest_us, s.total, s.ahead,
                     CASE WHEN s.ready_us > {now} THEN s.leased ELSE 0 END, s.letters, s.all_letters
                 FROM wakeline.queue_standing s WHERE s.queue_id >= $1 AND s.queue_id <= $2
                 ORDER BY s.queue_id, s.ordinal LIMIT $3 OFFSET $4",
                vec![
                    least.into(),
                    most.into(),
                    page.limit.into(),
                    page.offset.into()
                ],
            ),
        )?;
        let rows = rows
            .iter()
            .map(|row| PartitionRow {
                number: row.number(0),
                queue: row.text(1),
                name: row.text(2),
                created_us: row.number(3),
                last_us: row.number(4),
                consumed: row.number(5),
                oldest_us: row.maybe_number(6),
                counts: counts(row, 7),
            })
            .collect();
        Ok(Paged {
            rows,
            total: count[0].number(0),
        })
    }
}

/// How many of each there are, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    pub queues: i64,
    pub namespaces: i64,
    pub tasks: i64,
    pub partitions: i64,
    pub counts: Counts,
    pub now_us: i64,
    /// Of the partitions: how many messages are pending, and how long the oldest has waited.
    pub offset: Spread,
    pub wait_us: Spread,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub least: i64,
    pub most: i64,
    pub mean: i64,
    pub median: i64,
}

impl Browse<'_> {
    pub async fn overview(&self) -> Result<Overview, Error> {
        let (names, sums) = try_join!(
            self.read.rows(
                "overview",
                "SELECT count(*), count(DISTINCT nullif(q.namespace, '')), count(DISTINCT nullif(q.task, '')),
                     {now}
                 FROM wakeline.queue q",
                vec![],
            ),
            self.read.rows(
                "overview",
                "SELECT CAST(sum(o.total) AS bigint), CAST(sum(o.ahead) AS bigint),
                     CAST(sum(o.leased) AS bigint), CAST(sum(o.letters) AS bigint),
                     CAST(sum(o.all_letters) AS bigint), count(*),
                     min(o.ahead), max(o.ahead), CAST(avg(o.ahead) AS bigint),
                     min(CASE WHEN o.by_ahead = (o.count + 1) / 2 THEN o.ahead END),
                     min(o.wait), max(o.wait), CAST(avg(o.wait) AS bigint),
                     min(CASE WHEN o.by_wait = (o.count + 1) / 2 THEN o.wait END)
                 FROM (
                     SELECT o.*, row_number() OVER (ORDER BY o.ahead) AS by_ahead,
                         row_number() OVER (ORDER BY o.wait) AS by_wait, count(*) OVER () AS count
                     FROM (
                         SELECT s.total, s.ahead, s.letters, s.all_letters,
                             CASE WHEN s.ready_us > {now} THEN s.leased ELSE 0 END AS leased,
                             CASE WHEN s.ahead > 0 THEN {now} - s.oldest_us ELSE 0 END AS wait
                         FROM wakeline.queue_standing s) o) o",
                vec![],
            ),
        )?;
        let sums = &sums[0];
        let spread = |column: usize| Spread {
            least: sums.number(column),
            most: sums.number(column + 1),
            mean: sums.number(column + 2),
            median: sums.number(column + 3),
        };
        Ok(Overview {
            queues: names[0].number(0),
            namespaces: names[0].number(1),
            tasks: names[0].number(2),
            now_us: names[0].number(3),
            partitions: sums.number(5),
            counts: counts(sums, 0),
            offset: spread(6),
            wait_us: spread(10),
        })
    }
}
