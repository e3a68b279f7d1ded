//! Dead letters.

use super::Queue;
use crate::{
    browse::{DeadLetter, ListPage, MessageAddress, MessageFilter, MessageLocation, Page},
    error::Error,
    segment::Segment,
    store::{read::Row, statements},
};

/// Dead letters of one message at most: one per group.
const MAX_LETTERS: i64 = 1_000;
/// The year 3000, which is in every database's range.
const FAR_US: i64 = 32_503_680_000_000_000;

impl Queue {
    /// Dead letters, the last failed first.
    pub async fn dead_letters(
        &self,
        filter: &MessageFilter,
        page: Page,
    ) -> Result<ListPage<DeadLetter>, Error> {
        let queue = match &filter.queue {
            None => None,
            // No queue has the number 0.
            Some(name) => Some(self.queue_number(name).await?.unwrap_or(0)),
        };
        let parameters = vec![
            queue.unwrap_or(0).into(),
            queue.unwrap_or(i64::MAX).into(),
            filter.from_us.unwrap_or(0).into(),
            filter.to_us.unwrap_or(FAR_US).into(),
            (&filter.partition).into(),
            (&filter.group).into(),
            (&filter.namespace).into(),
            (&filter.task).into(),
        ];
        let statement = statements::DEAD_LETTERS;
        self.paged("dead_letters", statement, parameters, page, letter)
            .await
    }

    /// The dead letters of a message, of all groups. A message may have been acknowledged by its own
    /// id or by the transaction id of its producer; both find it.
    pub async fn dead_letters_of(
        &self,
        address: &MessageAddress,
    ) -> Result<Vec<DeadLetter>, Error> {
        let parameters = vec![
            address.partition.into(),
            address.transaction_id.as_str().into(),
            MAX_LETTERS.into(),
            address.position().into(),
            address.hash().into(),
        ];
        let statement = statements::DEAD_LETTERS_OF_MESSAGE;
        let rows = self.store.rows("dead_letters", statement, parameters);
        rows.await?.iter().map(letter).collect()
    }
}

fn letter(row: &Row) -> Result<DeadLetter, Error> {
    let entry = row.text("message");
    let position = row.number("position");
    let segment = Segment {
        partition: row.number("partition_id"),
        first: position,
        last: position,
        created_us: row.number("created_us"),
        only_group: None,
        body: format!("[{entry}]"),
    };
    let unreadable = |reason: &dyn std::fmt::Display| {
        Error::Store(wakeline_store::Error::Failed(format!(
            "a dead letter cannot be read: {reason}"
        )))
    };
    let mut messages = segment
        .messages(position, 1, |_| false)
        .map_err(|error| unreadable(&error))?;
    Ok(DeadLetter {
        number: row.number("id"),
        location: location(row),
        group: row.text("group_name"),
        failures: row.number("failures"),
        error: row.maybe_text("error"),
        failed_us: row.number("failed_us"),
        message: messages.pop().ok_or_else(|| unreadable(&"it is empty"))?,
        entry,
    })
}

pub(super) fn location(row: &Row) -> MessageLocation {
    MessageLocation {
        queue: row.text("queue"),
        namespace: row.text("namespace"),
        task: row.text("task"),
        priority: row.number("priority"),
        partition_number: row.number("partition_id"),
        partition: row.text("partition"),
    }
}
