//! Dead letters.

use futures_util::try_join;

use super::{Address, Browse, Retry};
use crate::{
    browse::{DeadLetter, Home, MessageFilter, Page, Paged},
    error::Error,
    message::NewMessage,
    segment::{Body, Segment},
    store::read::Row,
    topic,
};

/// Letters of one message at most: one per group.
const MAX_LETTERS: i64 = 1_000;

impl Browse<'_> {
    /// Dead letters, those that failed last first.
    pub async fn dead_letters(
        &self,
        filter: &MessageFilter,
        page: Page,
    ) -> Result<Paged<DeadLetter>, Error> {
        let queue = match &filter.queue {
            None => None,
            // No queue has the number 0.
            Some(name) => Some(self.queue_number(name).await?.unwrap_or(0)),
        };
        let wanted = || {
            vec![
                queue.unwrap_or(0).into(),
                queue.unwrap_or(i64::MAX).into(),
                filter.from_us.unwrap_or(0).into(),
                filter.to_us.unwrap_or(FAR).into(),
                (&filter.partition).into(),
                (&filter.group).into(),
                (&filter.namespace).into(),
                (&filter.task).into(),
            ]
        };
        let mut paged = wanted();
        paged.extend([page.limit.into(), page.offset.into()]);
        let (count, rows) = try_join!(
            self.read.rows(
                "letters",
                "SELECT count(*) FROM wakeline.queue_letter d
                 WHERE d.queue_id >= $1 AND d.queue_id <= $2
                     AND d.failed_at >= {at $3} AND d.failed_at < {at $4}
                     AND ($5 IS NULL OR d.partition = $5) AND ($6 IS NULL OR d.group_name = $6)
                     AND ($7 IS NULL OR d.namespace = $7) AND ($8 IS NULL OR d.task = $8)",
                wanted(),
            ),
            self.read.rows(
                "letters",
                "SELECT d.id, d.queue, d.namespace, d.task, d.priority, d.partition_id, d.partition,
                     d.group_name, d.position, d.failures, d.error, d.failed_us, d.created_us,
                     d.transaction_id, d.message
                 FROM wakeline.queue_letter d
                 WHERE d.queue_id >= $1 AND d.queue_id <= $2
                     AND d.failed_at >= {at $3} AND d.failed_at < {at $4}
                     AND ($5 IS NULL OR d.partition = $5) AND ($6 IS NULL OR d.group_name = $6)
                     AND ($7 IS NULL OR d.namespace = $7) AND ($8 IS NULL OR d.task = $8)
                 ORDER BY d.failed_at DESC, d.id DESC LIMIT $9 OFFSET $10",
                paged,
            ),
        )?;
        Ok(Paged {
            rows: rows.iter().map(letter).collect::<Result<_, _>>()?,
            total: count[0].number(0),
        })
    }
}

/// The year 3000, which is in every database's range.
const FAR: i64 = 32_503_680_000_000_000;

impl Browse<'_> {
    /// The dead letters of a message, of all groups. It may have been acknowledged by its own id or by
    /// the one that its producer gave; both find it.
    pub async fn dead_letters_of(&self, address: &Address) -> Result<Vec<DeadLetter>, Error> {
        let rows = self.read
            .rows(
                "letters",
                "SELECT d.id, d.queue, d.namespace, d.task, d.priority, d.partition_id, d.partition,
                     d.group_name, d.position, d.failures, d.error, d.failed_us, d.created_us,
                     d.transaction_id, d.message
                 FROM wakeline.queue_letter d
                 WHERE d.partition_id = $1 AND (d.transaction_id = $2 OR d.position = coalesce($4, (
                     SELECT t.position FROM wakeline.queue_transaction t
                     WHERE t.partition_id = $1 AND t.hash = $5)))
                 ORDER BY d.id LIMIT $3",
                vec![
                    address.partition.into(),
                    address.transaction_id.as_str().into(),
                    MAX_LETTERS.into(),
                    address.given().into(),
                    address.hash().into(),
                ],
            )
            .await?;
        rows.iter().map(letter).collect()
    }
}

fn letter(row: &Row) -> Result<DeadLetter, Error> {
    let entry = row.text(14);
    let segment = Segment {
        partition: row.number(5),
        first: row.number(8),
        last: row.number(8),
        created_us: row.number(12),
        only_group: None,
        body: format!("[{entry}]"),
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::Store(wakeline_store::Error::Failed(format!(
            "a dead letter cannot be read: {error}"
        )))
    };
    let mut messages = segment
        .messages(segment.first, 1, |_| false)
        .map_err(|error| unreadable(&error))?;
    let message = messages.pop().ok_or_else(|| unreadable(&"it is empty"))?;
    Ok(DeadLetter {
        number: row.number(0),
        home: Home {
            queue: row.text(1),
            namespace: row.text(2),
            task: row.text(3),
            priority: row.number(4),
            partition_number: row.number(5),
            partition: row.text(6),
        },
        group: row.text(7),
        failures: row.number(9),
        error: row.maybe_text(10),
        failed_us: row.number(11),
        message,
        entry,
    })
}

impl DeadLetter {
    /// As it is to be appended again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        let message = &self.message;
        let is_given = message.transaction_id != message.id.to_string();
        let entry = |transaction_id: Option<String>| {
            let mut body = Body::default();
            body.add(&NewMessage {
                queue: String::new(),
                partition: String::new(),
                transaction_id,
                trace_id: message.trace_id,
                payload: message.payload.as_str().into(),
                producer_sub: message.producer_sub.clone(),
                is_sealed: message.is_sealed,
            });
            let text = body.text();
            text[1..text.len() - 1].to_owned()
        };
        let given = is_given.then(|| message.transaction_id.clone());
        Retry {
            letter: self.number,
            partition: self.home.partition_number,
            kept: entry(given.clone()),
            fresh: entry(None),
            given,
            wake: topic::ready(
                self.home.queue_name(),
                &self.home.partition,
                Some(&self.group),
                1,
            ),
        }
    }
}
