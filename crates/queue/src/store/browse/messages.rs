//! Messages.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::{future::try_join_all, try_join};

use super::{
    Address, Browse,
    walk::{self, Part},
};
use crate::{
    browse::{MessageFilter, MessageStatus, Page, Paged, Reader, Seen},
    error::Error,
    message::Message,
    segment::{MAX_MESSAGES, Segment},
    store::read::{Read, Row},
};

impl Browse<'_> {
    /// Messages, the newest first.
    pub async fn messages(
        &self,
        filter: &MessageFilter,
        status: Option<MessageStatus>,
        page: Page,
    ) -> Result<Paged<Seen>, Error> {
        let queue = match &filter.queue {
            None => None,
            Some(name) => match self.queue_number(name).await? {
                Some(number) => Some(number),
                None => {
                    return Ok(Paged {
                        rows: Vec::new(),
                        total: 0,
                    });
                }
            },
        };
        if status == Some(MessageStatus::DeadLetter) {
            return self.dead(filter, page).await;
        }
        let walked = walk::walk(self.read, queue, filter, status, page).await?;
        let partitions: BTreeSet<i64> = walked
            .picks
            .iter()
            .map(|(head, _)| head.partition)
            .collect();
        let readers = partitions.into_iter().map(|partition| async move {
            let found = self.partition_readers(partition).await?;
            Ok::<_, Error>((partition, Arc::new(found)))
        });
        let readers: HashMap<i64, Arc<Vec<Reader>>> =
            try_join_all(readers).await?.into_iter().collect();
        let picked = try_join_all(walked.picks.iter().map(|(head, positions)| {
            let part = &walked.parts[&head.partition];
            let readers = readers[&head.partition].clone();
            async move {
                let Some(segment) = segment(self.read, head.partition, head.last).await? else {
                    // It was swept meanwhile.
                    return Ok(Vec::new());
                };
                show(self.read, part, &segment, positions, &readers).await
            }
        }))
        .await?;
        Ok(Paged {
            rows: picked.into_iter().flatten().collect(),
            total: walked.total,
        })
    }

    async fn dead(&self, filter: &MessageFilter, page: Page) -> Result<Paged<Seen>, Error> {
        let found = self.dead_letters(filter, page).await?;
        let rows = found.rows.into_iter().map(|letter| Seen {
            home: letter.home,
            status: MessageStatus::DeadLetter,
            segment: letter.message.position,
            was_sealed: letter.message.is_sealed,
            message: letter.message,
            readers: Arc::default(),
        });
        Ok(Paged {
            rows: rows.collect(),
            total: found.total,
        })
    }
}

async fn segment(read: &dyn Read, partition: i64, position: i64) -> Result<Option<Segment>, Error> {
    let rows = read
        .rows(
            "browse",
            "SELECT s.partition_id, s.first, s.last, s.created_us, s.only_group, s.body
             FROM wakeline.queue_stored s WHERE s.partition_id = $1 AND s.last >= $2
             ORDER BY s.last LIMIT 1",
            vec![partition.into(), position.into()],
        )
        .await?;
    Ok(rows.first().map(|row| Segment {
        partition: row.number(0),
        first: row.number(1),
        last: row.number(2),
        created_us: row.number(3),
        only_group: row.maybe_number(4),
        body: row.text(5),
    }))
}

/// The messages at these positions, in this order.
async fn show(
    read: &dyn Read,
    part: &Part,
    segment: &Segment,
    positions: &[i64],
    readers: &Arc<Vec<Reader>>,
) -> Result<Vec<Seen>, Error> {
    let mut messages: HashMap<i64, Message> = decode(segment, |at| positions.contains(&at))?
        .into_iter()
        .map(|message| (message.position, message))
        .collect();
    let special = special(read, part, segment).await?;
    Ok(positions
        .iter()
        .filter_map(|position| {
            let message = messages.remove(position)?;
            Some(Seen {
                home: part.home.clone(),
                status: special
                    .get(position)
                    .copied()
                    .unwrap_or_else(|| part.status(*position)),
                segment: segment.first,
                was_sealed: message.is_sealed,
                message,
                readers: readers.clone(),
            })
        })
        .collect())
}

fn decode(segment: &Segment, wanted: impl Fn(i64) -> bool) -> Result<Vec<Message>, Error> {
    segment
        .messages(segment.first, MAX_MESSAGES, |at| !wanted(at))
        .map_err(|error| {
            wakeline_store::Error::Failed(format!("a segment cannot be read: {error}")).into()
        })
}

/// Of a segment's messages, those whose status is not where they are.
async fn special(
    read: &dyn Read,
    part: &Part,
    segment: &Segment,
) -> Result<HashMap<i64, MessageStatus>, Error> {
    let Some((id, name)) = &part.group else {
        return Ok(HashMap::new());
    };
    let rows = read
        .rows(
            "browse",
            "SELECT m.position, 0 AS kind FROM wakeline.queue_mark m
             WHERE m.partition_id = $1 AND m.group_id = $4 AND m.is_dead
                 AND m.position >= $2 AND m.position <= $3
             UNION ALL SELECT d.position, 1 FROM wakeline.queue_dead_letter d
             WHERE d.partition_id = $1 AND d.group_name = $5
                 AND d.position >= $2 AND d.position <= $3
             ORDER BY kind",
            vec![
                segment.partition.into(),
                segment.first.into(),
                segment.last.into(),
                (*id).into(),
                name.as_str().into(),
            ],
        )
        .await?;
    let status = |row: &Row| match row.number(1) {
        // Dead, and no letter of it: it was dropped, or has been retried.
        0 => MessageStatus::Completed,
        _ => MessageStatus::DeadLetter,
    };
    Ok(rows
        .iter()
        .map(|row| (row.number(0), status(row)))
        .collect())
}

/// Where a message is that has not been deleted.
async fn position(read: &dyn Read, address: &Address) -> Result<Option<i64>, Error> {
    let rows = read
        .rows(
            "browse",
            "SELECT a.position FROM (
                 SELECT coalesce($2, (
                     SELECT t.position FROM wakeline.queue_transaction t
                     WHERE t.partition_id = $1 AND t.hash = $3)) AS position) a
             JOIN wakeline.queue_partition p ON p.id = $1
             WHERE a.position >= p.first_position AND a.position < p.next_position
                 AND NOT EXISTS (
                     SELECT 1 FROM wakeline.queue_mark m
                     WHERE m.partition_id = $1 AND m.group_id = 0 AND m.position = a.position)",
            vec![
                address.partition.into(),
                address.given().into(),
                address.hash().into(),
            ],
        )
        .await?;
    Ok(rows.first().map(|row| row.number(0)))
}

impl Browse<'_> {
    /// Whether there is such a message, or a dead letter of it.
    pub async fn message_exists(&self, address: &Address) -> Result<bool, Error> {
        let (position, letters) =
            try_join!(position(self.read, address), self.dead_letters_of(address))?;
        Ok(position.is_some() || !letters.is_empty())
    }
}

/// A message, and its dead letters.
#[derive(Debug)]
pub struct Found {
    pub seen: Seen,
    pub letters: Vec<crate::browse::DeadLetter>,
}

impl Browse<'_> {
    pub async fn message(&self, address: &Address) -> Result<Option<Found>, Error> {
        let (position, part, readers, mut letters) = try_join!(
            position(self.read, address),
            walk::part(self.read, address.partition),
            self.partition_readers(address.partition),
            self.dead_letters_of(address),
        )?;
        let readers = Arc::new(readers);
        if let (Some(position), Some(part)) = (position, part)
            && let Some(segment) = segment(self.read, address.partition, position).await?
        {
            let shown = show(self.read, &part, &segment, &[position], &readers).await?;
            if let Some(seen) = shown.into_iter().next() {
                return Ok(Some(Found { seen, letters }));
            }
        }
        // Swept, but its letter is kept.
        let Some(letter) = letters.first_mut() else {
            return Ok(None);
        };
        let seen = Seen {
            home: letter.home.clone(),
            status: MessageStatus::DeadLetter,
            segment: letter.message.position,
            was_sealed: letter.message.is_sealed,
            message: letter.message.clone(),
            readers,
        };
        Ok(Some(Found { seen, letters }))
    }
}
