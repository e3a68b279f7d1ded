//! A page out of many partitions, without reading what is before it.
//!
//! What has a status is a range of positions in every partition, less some that are marked, so the
//! whole is counted by subtraction. The page is found by walking from the newest segment back, by
//! positions only: at worst a page's worth of index entries of every partition that fits.

use std::collections::{HashMap, HashSet};

use futures_util::future::try_join_all;

use crate::{
    browse::{Home, MessageFilter, MessageStatus, Page},
    error::Error,
    store::read::{Head, Read, Row, Slice},
};

/// Partitions that are looked at for a page, those with the newest messages first. More of them
/// can only be missed far behind the first page, or with a status that only old messages have.
const MAX_PARTITIONS: i64 = 10_000;
/// Segments that are looked at in one go.
const CHUNK: i64 = 500;
/// Questions about marks that are under way at once.
const AT_ONCE: usize = 64;

/// A partition that a list is about.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) home: Home,
    first: i64,
    next: i64,
    last_us: i64,
    /// The group whose word counts.
    pub(super) group: Option<(i64, String)>,
    position: i64,
    leased_to: i64,
    has_marks: bool,
}

impl Part {
    fn read(row: &Row) -> Self {
        let [first, next, position] = [6, 7, 11].map(|column| row.number(column));
        let [total, ahead, letters] = [14, 15, 16].map(|column| row.number(column));
        let is_leased = row.number(13) == 1;
        Self {
            home: Home {
                partition_number: row.number(0),
                queue: row.text(1),
                namespace: row.text(2),
                task: row.text(3),
                priority: row.number(4),
                partition: row.text(5),
            },
            first,
            next,
            last_us: row.number(8),
            group: row.maybe_number(9).zip(row.maybe_text(10)),
            position,
            leased_to: if is_leased { row.number(12) } else { position },
            has_marks: total != next - first || ahead != next - position || letters > 0,
        }
    }

    /// Where what has this status is.
    fn slice(&self, status: Option<MessageStatus>) -> Slice {
        let (from, to) = match status {
            None | Some(MessageStatus::DeadLetter) => (self.first, self.next),
            Some(MessageStatus::Completed) => (self.first, self.position),
            Some(MessageStatus::Processing) => (self.position, self.leased_to),
            Some(MessageStatus::Pending) => (self.leased_to, self.next),
        };
        Slice {
            partition: self.home.partition_number,
            from,
            to,
        }
    }

    /// What is at a position that no mark speaks of.
    pub(super) fn status(&self, position: i64) -> MessageStatus {
        if position < self.position {
            MessageStatus::Completed
        } else if position < self.leased_to {
            MessageStatus::Processing
        } else {
            MessageStatus::Pending
        }
    }

    /// Positions in the slice that do not have the status.
    async fn excluded(
        &self,
        read: &dyn Read,
        slice: Slice,
        status: Option<MessageStatus>,
    ) -> Result<HashSet<i64>, Error> {
        if !self.has_marks || slice.from >= slice.to {
            return Ok(HashSet::new());
        }
        let is_ahead = matches!(
            status,
            Some(MessageStatus::Pending | MessageStatus::Processing)
        );
        let dead_for = self.group.as_ref().filter(|_| is_ahead);
        let letters_of = self
            .group
            .as_ref()
            .filter(|_| status == Some(MessageStatus::Completed));
        let rows = read
            .rows(
                "browse",
                "SELECT m.position FROM wakeline.queue_mark m
                 WHERE m.partition_id = $1 AND m.group_id IN (0, $4) AND m.is_dead
                     AND m.position >= $2 AND m.position < $3
                 UNION SELECT d.position FROM wakeline.queue_dead_letter d
                 WHERE d.partition_id = $1 AND d.group_name = $5
                     AND d.position >= $2 AND d.position < $3",
                vec![
                    slice.partition.into(),
                    slice.from.into(),
                    slice.to.into(),
                    dead_for.map_or(0, |(id, _)| *id).into(),
                    (&letters_of.map(|(_, name)| name.clone())).into(),
                ],
            )
            .await?;
        Ok(rows.iter().map(|row| row.number(0)).collect())
    }
}

const PARTS: &str = "
    SELECT s.partition_id, s.queue, s.namespace, s.task, s.priority, s.partition, s.first, s.next,
        s.last_us, s.group_id, s.group_name, s.position, s.leased_to,
        CASE WHEN s.leased_to IS NOT NULL AND s.ready_us > {now} THEN 1 ELSE 0 END,
        s.total, s.ahead, s.letters,
        CAST(sum(s.total) OVER () AS bigint), CAST(sum(s.ahead) OVER () AS bigint),
        CAST(sum(CASE WHEN s.ready_us > {now} THEN s.leased ELSE 0 END) OVER () AS bigint),
        CAST(sum(s.letters) OVER () AS bigint)
    FROM wakeline.queue_standing s
    WHERE s.queue_id >= $1 AND s.queue_id <= $2 AND s.next > s.first AND s.last_us >= $3
        AND ($4 IS NULL OR s.partition = $4) AND ($5 IS NULL OR s.namespace = $5)
        AND ($6 IS NULL OR s.task = $6)
    ORDER BY s.last_us DESC, s.partition_id DESC LIMIT $7";

/// A partition by its number.
pub(super) async fn part(read: &dyn Read, number: i64) -> Result<Option<Part>, Error> {
    let rows = read
        .rows(
            "browse",
            "SELECT s.partition_id, s.queue, s.namespace, s.task, s.priority, s.partition, s.first,
                 s.next, s.last_us, s.group_id, s.group_name, s.position, s.leased_to,
                 CASE WHEN s.leased_to IS NOT NULL AND s.ready_us > {now} THEN 1 ELSE 0 END,
                 s.total, s.ahead, s.letters
             FROM wakeline.queue_standing s WHERE s.partition_id = $1",
            vec![number.into()],
        )
        .await?;
    Ok(rows.first().map(Part::read))
}

/// What a page is made of.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) parts: HashMap<i64, Part>,
    /// Segments with the positions in them that are wanted, newest first.
    pub(super) picks: Vec<(Head, Vec<i64>)>,
    pub(super) total: i64,
}

pub(super) async fn walk(
    read: &dyn Read,
    queue: Option<i64>,
    filter: &MessageFilter,
    status: Option<MessageStatus>,
    page: Page,
) -> Result<Walked, Error> {
    let rows = read
        .rows(
            "browse",
            PARTS,
            vec![
                queue.unwrap_or(0).into(),
                queue.unwrap_or(i64::MAX).into(),
                filter.from_us.unwrap_or(i64::MIN).into(),
                (&filter.partition).into(),
                (&filter.namespace).into(),
                (&filter.task).into(),
                MAX_PARTITIONS.into(),
            ],
        )
        .await?;
    let parts: Vec<Part> = rows.iter().map(Part::read).collect();
    let slices = slices(read, &parts, filter, status).await?;
    let total = if filter.from_us.is_some() || filter.to_us.is_some() {
        count(read, &parts, &slices, status).await?
    } else {
        rows.first().map_or(0, |row| sum(row, status))
    };
    let parts: HashMap<i64, Part> = parts
        .into_iter()
        .map(|part| (part.home.partition_number, part))
        .collect();
    let picks = pick(read, &parts, slices, status, page).await?;
    Ok(Walked {
        parts,
        picks,
        total,
    })
}

/// How many have the status, of all partitions together.
fn sum(row: &Row, status: Option<MessageStatus>) -> i64 {
    let [total, ahead, leased, letters] = [17, 18, 19, 20].map(|column| row.number(column));
    match status {
        None => total,
        Some(MessageStatus::Pending) => ahead - leased,
        Some(MessageStatus::Processing) => leased,
        Some(MessageStatus::Completed) => total - ahead - letters,
        Some(MessageStatus::DeadLetter) => letters,
    }
}

/// Per partition, what is within the times and has the status, but for marks.
async fn slices(
    read: &dyn Read,
    parts: &[Part],
    filter: &MessageFilter,
    status: Option<MessageStatus>,
) -> Result<Vec<Slice>, Error> {
    let mut slices: Vec<Slice> = parts.iter().map(|part| part.slice(status)).collect();
    if let Some(from) = filter.from_us {
        let asked = slices.iter().map(|slice| (slice.partition, from)).collect();
        let positions = read.positions_at(asked).await?;
        for (slice, position) in slices.iter_mut().zip(positions) {
            slice.from = slice.from.max(position);
        }
    }
    if let Some(to) = filter.to_us {
        let late: Vec<usize> = (0..parts.len())
            .filter(|index| parts[*index].last_us >= to)
            .collect();
        let asked = late
            .iter()
            .map(|index| (slices[*index].partition, to))
            .collect();
        let positions = read.positions_at(asked).await?;
        for (index, position) in late.into_iter().zip(positions) {
            slices[index].to = slices[index].to.min(position);
        }
    }
    Ok(slices)
}

async fn count(
    read: &dyn Read,
    parts: &[Part],
    slices: &[Slice],
    status: Option<MessageStatus>,
) -> Result<i64, Error> {
    let mut total: i64 = slices
        .iter()
        .map(|slice| (slice.to - slice.from).max(0))
        .sum();
    let both: Vec<(&Part, Slice)> = parts.iter().zip(slices.iter().copied()).collect();
    for some in both.chunks(AT_ONCE) {
        let asked = some
            .iter()
            .map(|(part, slice)| part.excluded(read, *slice, status));
        for excluded in try_join_all(asked).await? {
            total -= i64::try_from(excluded.len()).unwrap_or_default();
        }
    }
    Ok(total)
}

async fn pick(
    read: &dyn Read,
    parts: &HashMap<i64, Part>,
    mut slices: Vec<Slice>,
    status: Option<MessageStatus>,
    page: Page,
) -> Result<Vec<(Head, Vec<i64>)>, Error> {
    let mut picks = Vec::new();
    let (mut skip, mut room) = (page.offset, page.limit);
    loop {
        slices.retain(|slice| slice.from < slice.to);
        if slices.is_empty() || room <= 0 {
            return Ok(picks);
        }
        let count = (skip + room).min(CHUNK);
        let heads = read.heads(slices.clone(), count).await?;
        if heads.is_empty() {
            return Ok(picks);
        }
        let bounds: HashMap<i64, Slice> = slices
            .iter()
            .map(|slice| (slice.partition, *slice))
            .collect();
        let within = |head: &Head| Slice {
            partition: head.partition,
            from: bounds[&head.partition].from.max(head.first),
            to: bounds[&head.partition].to.min(head.last + 1),
        };
        for some in heads.chunks(AT_ONCE) {
            let asked = some
                .iter()
                .map(|head| parts[&head.partition].excluded(read, within(head), status));
            let excluded = try_join_all(asked).await?;
            for (head, excluded) in some.iter().zip(excluded) {
                let slice = within(head);
                let positions: Vec<i64> = (slice.from..slice.to)
                    .rev()
                    .filter(|at| !excluded.contains(at))
                    .collect();
                let found = i64::try_from(positions.len()).unwrap_or_default();
                let skipped = skip.min(found);
                skip -= skipped;
                let taken: Vec<i64> = positions
                    .into_iter()
                    .skip(usize::try_from(skipped).unwrap_or_default())
                    .take(usize::try_from(room).unwrap_or_default())
                    .collect();
                room -= i64::try_from(taken.len()).unwrap_or_default();
                if !taken.is_empty() {
                    picks.push((*head, taken));
                }
            }
        }
        let seen: HashMap<i64, i64> = heads.iter().fold(HashMap::new(), |mut seen, head| {
            let least = seen.entry(head.partition).or_insert(head.first);
            *least = head.first.min(*least);
            seen
        });
        for slice in &mut slices {
            if let Some(first) = seen.get(&slice.partition) {
                slice.to = slice.to.min(*first);
            }
        }
    }
}
