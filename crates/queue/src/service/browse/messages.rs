//! Messages.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::{future::try_join_all, try_join};

use super::{
    Queue,
    walk::{self, ListedPartition},
};
use crate::{
    browse::{
        DeadLetter, ListPage, ListedMessage, MessageAddress, MessageDetails, MessageFilter,
        MessageStatus, Page, Reader,
    },
    error::Error,
    message::Message,
    segment::{MAX_MESSAGES, Segment},
    store::{read::Row, statements},
};

impl Queue {
    /// Messages, the newest first.
    pub async fn messages(
        &self,
        filter: &MessageFilter,
        status: Option<MessageStatus>,
        page: Page,
    ) -> Result<ListPage<ListedMessage>, Error> {
        let mut queue = None;
        if let Some(name) = &filter.queue {
            queue = self.queue_number(name).await?;
            if queue.is_none() {
                return Ok(ListPage::default());
            }
        }
        if status == Some(MessageStatus::DeadLetter) {
            let found = self.dead_letters(filter, page).await?;
            let rows = found.rows.into_iter();
            return Ok(ListPage {
                rows: rows
                    .map(|letter| listed_letter(letter, Arc::default()))
                    .collect(),
                total: found.total,
            });
        }
        let walked = walk::walk(&*self.store, queue, filter, status, page).await?;
        let spans = walked.picks.iter().map(|(span, _)| span.partition);
        let partitions: BTreeSet<i64> = spans.collect();
        let readers = partitions.into_iter().map(|partition| async move {
            let readers = self.partition_readers(partition).await?;
            Ok::<_, Error>((partition, Arc::new(readers)))
        });
        let readers: HashMap<i64, Arc<Vec<Reader>>> =
            try_join_all(readers).await?.into_iter().collect();
        let picked = try_join_all(walked.picks.iter().map(|(span, positions)| {
            let partition = &walked.partitions[&span.partition];
            let readers = readers[&span.partition].clone();
            async move {
                let Some(segment) = self.segment(span.partition, span.last).await? else {
                    // It was swept meanwhile.
                    return Ok(Vec::new());
                };
                self.listed(partition, &segment, positions, &readers).await
            }
        }))
        .await?;
        Ok(ListPage {
            rows: picked.into_iter().flatten().collect(),
            total: walked.total,
        })
    }

    /// A message with its dead letters. A message that was swept is found by its dead letter.
    pub async fn message(&self, address: &MessageAddress) -> Result<Option<MessageDetails>, Error> {
        let (position, partition, readers, letters) = try_join!(
            self.position(address),
            walk::partition(&*self.store, address.partition),
            self.partition_readers(address.partition),
            self.dead_letters_of(address),
        )?;
        let readers = Arc::new(readers);
        if let (Some(position), Some(partition)) = (position, partition)
            && let Some(segment) = self.segment(address.partition, position).await?
        {
            let positions = [position];
            let listed = self.listed(&partition, &segment, &positions, &readers);
            if let Some(message) = listed.await?.into_iter().next() {
                return Ok(Some(MessageDetails { message, letters }));
            }
        }
        let letter = letters.first().cloned();
        Ok(letter.map(|letter| MessageDetails {
            message: listed_letter(letter, readers),
            letters,
        }))
    }

    /// Whether there is such a message, or a dead letter of it.
    pub async fn message_exists(&self, address: &MessageAddress) -> Result<bool, Error> {
        let (position, letters) = try_join!(self.position(address), self.dead_letters_of(address))?;
        Ok(position.is_some() || !letters.is_empty())
    }

    /// The position of a message that has not been deleted.
    async fn position(&self, address: &MessageAddress) -> Result<Option<i64>, Error> {
        let parameters = vec![
            address.partition.into(),
            address.position().into(),
            address.hash().into(),
        ];
        let statement = statements::MESSAGE_POSITION;
        let rows = self.store.rows("browse", statement, parameters).await?;
        Ok(rows.first().map(|row| row.number("position")))
    }

    async fn segment(&self, partition: i64, position: i64) -> Result<Option<Segment>, Error> {
        let parameters = vec![partition.into(), position.into()];
        let rows = self
            .store
            .rows("browse", statements::SEGMENT, parameters)
            .await?;
        Ok(rows.first().map(|row| Segment {
            partition: row.number("partition_id"),
            first: row.number("first"),
            last: row.number("last"),
            created_us: row.number("created_us"),
            only_group: row.maybe_number("only_group"),
            body: row.text("body"),
        }))
    }

    /// The messages at these positions, in this order.
    async fn listed(
        &self,
        partition: &ListedPartition,
        segment: &Segment,
        positions: &[i64],
        readers: &Arc<Vec<Reader>>,
    ) -> Result<Vec<ListedMessage>, Error> {
        let messages = segment
            .messages(segment.first, MAX_MESSAGES, |at| !positions.contains(&at))
            .map_err(|error| {
                wakeline_store::Error::Failed(format!("a segment cannot be read: {error}"))
            })?;
        let messages = messages.into_iter();
        let mut messages: HashMap<i64, Message> = messages.map(|m| (m.position, m)).collect();
        let dead = self.dead_statuses(partition, segment).await?;
        let listed = positions.iter().filter_map(|position| {
            let message = messages.remove(position)?;
            let status = dead.get(position).copied();
            Some(ListedMessage {
                location: partition.location.clone(),
                status: status.unwrap_or_else(|| partition.status(*position)),
                segment: segment.first,
                was_sealed: message.is_sealed,
                message,
                readers: readers.clone(),
            })
        });
        Ok(listed.collect())
    }

    /// The status of a segment's messages that are dead for the partition's group: there the
    /// position does not tell it.
    async fn dead_statuses(
        &self,
        partition: &ListedPartition,
        segment: &Segment,
    ) -> Result<HashMap<i64, MessageStatus>, Error> {
        let Some((id, name)) = &partition.group else {
            return Ok(HashMap::new());
        };
        let parameters = vec![
            segment.partition.into(),
            segment.first.into(),
            segment.last.into(),
            (*id).into(),
            name.as_str().into(),
        ];
        let statement = statements::DEAD_POSITIONS;
        let rows = self.store.rows("browse", statement, parameters).await?;
        let status = |row: &Row| match row.number("is_letter") {
            // Dead without a dead letter: it was dropped, or has been retried.
            0 => MessageStatus::Completed,
            _ => MessageStatus::DeadLetter,
        };
        let rows = rows.iter();
        Ok(rows
            .map(|row| (row.number("position"), status(row)))
            .collect())
    }
}

fn listed_letter(letter: DeadLetter, readers: Arc<Vec<Reader>>) -> ListedMessage {
    ListedMessage {
        location: letter.location,
        status: MessageStatus::DeadLetter,
        segment: letter.message.position,
        was_sealed: letter.message.is_sealed,
        message: letter.message,
        readers,
    }
}
