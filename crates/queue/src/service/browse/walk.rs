//! A page of messages out of many partitions, without reading what is before the page.
//!
//! In every partition the messages of a status are a range of positions, except the flagged ones, so
//! their number is counted by subtraction. The page is found by walking back from the newest
//! segment by positions only. At worst this reads a page's worth of index entries in every partition
//! that fits the filter.

use std::collections::{HashMap, HashSet};

use futures_util::future::try_join_all;

use super::dead_letters::location;
use crate::{
    browse::{MessageFilter, MessageLocation, MessageStatus, Page},
    error::Error,
    store::{
        Store,
        read::{PositionRange, Row, SegmentSpan},
        statements,
    },
};

/// Partitions that are read for a page, those with the newest messages first. A message of further
/// partitions can only be missed far behind the first page, or with a status that only old messages
/// have.
const MAX_PARTITIONS: i64 = 10_000;
/// Segments that are read in one statement.
const CHUNK: i64 = 500;
/// Statements about flags that are under way at once.
const AT_ONCE: usize = 64;

/// A partition whose messages are listed.
#[derive(Clone, Debug)]
pub(super) struct ListedPartition {
    pub(super) location: MessageLocation,
    first: i64,
    next: i64,
    last_us: i64,
    /// The group for which the status is told.
    pub(super) group: Option<(i64, String)>,
    position: i64,
    leased_to: i64,
    has_flags: bool,
}

impl ListedPartition {
    fn read(row: &Row) -> Self {
        let [first, next, position] = ["first", "next", "position"].map(|name| row.number(name));
        let [total, ahead, letters] = ["total", "ahead", "letters"].map(|name| row.number(name));
        let is_leased = row.number("is_leased") == 1;
        Self {
            location: location(row),
            first,
            next,
            last_us: row.number("last_us"),
            group: row
                .maybe_number("group_id")
                .zip(row.maybe_text("group_name")),
            position,
            leased_to: if is_leased {
                row.number("leased_to")
            } else {
                position
            },
            has_flags: total != next - first || ahead != next - position || letters > 0,
        }
    }

    /// The positions that have this status, but for flagged ones.
    fn range(&self, status: Option<MessageStatus>) -> PositionRange {
        let (from, to) = match status {
            None | Some(MessageStatus::DeadLetter) => (self.first, self.next),
            Some(MessageStatus::Completed) => (self.first, self.position),
            Some(MessageStatus::Processing) => (self.position, self.leased_to),
            Some(MessageStatus::Pending) => (self.leased_to, self.next),
        };
        PositionRange {
            partition: self.location.partition_number,
            from,
            to,
        }
    }

    /// The status of a position without a flag.
    pub(super) fn status(&self, position: i64) -> MessageStatus {
        if position < self.position {
            MessageStatus::Completed
        } else if position < self.leased_to {
            MessageStatus::Processing
        } else {
            MessageStatus::Pending
        }
    }

    /// Positions in the range that do not have the status.
    async fn excluded(
        &self,
        store: &dyn Store,
        range: PositionRange,
        status: Option<MessageStatus>,
    ) -> Result<HashSet<i64>, Error> {
        if !self.has_flags || range.from >= range.to {
            return Ok(HashSet::new());
        }
        let is_ahead = matches!(
            status,
            Some(MessageStatus::Pending | MessageStatus::Processing)
        );
        let is_completed = status == Some(MessageStatus::Completed);
        let dead_for = self.group.as_ref().filter(|_| is_ahead);
        let letters_of = self.group.as_ref().filter(|_| is_completed);
        let parameters = vec![
            range.partition.into(),
            range.from.into(),
            range.to.into(),
            dead_for.map_or(0, |(id, _)| *id).into(),
            (&letters_of.map(|(_, name)| name.clone())).into(),
        ];
        let statement = statements::FLAGGED_POSITIONS;
        let rows = store.rows("browse", statement, parameters).await?;
        Ok(rows.iter().map(|row| row.number("position")).collect())
    }
}

/// A partition by its number.
pub(super) async fn partition(
    store: &dyn Store,
    number: i64,
) -> Result<Option<ListedPartition>, Error> {
    let rows = store
        .rows("browse", statements::LISTED_PARTITION, vec![number.into()])
        .await?;
    Ok(rows.first().map(ListedPartition::read))
}

/// What a page consists of.
#[derive(Debug)]
pub(super) struct WalkResult {
    pub(super) partitions: HashMap<i64, ListedPartition>,
    /// Segments with their positions on the page, newest first.
    pub(super) picks: Vec<(SegmentSpan, Vec<i64>)>,
    pub(super) total: i64,
}

pub(super) async fn walk(
    store: &dyn Store,
    queue: Option<i64>,
    filter: &MessageFilter,
    status: Option<MessageStatus>,
    page: Page,
) -> Result<WalkResult, Error> {
    let rows = store
        .rows(
            "browse",
            statements::LISTED_PARTITIONS,
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
    let partitions: Vec<ListedPartition> = rows.iter().map(ListedPartition::read).collect();
    let ranges = ranges(store, &partitions, filter, status).await?;
    let total = if filter.from_us.is_some() || filter.to_us.is_some() {
        count(store, &partitions, &ranges, status).await?
    } else {
        rows.first().map_or(0, |row| sum(row, status))
    };
    let partitions: HashMap<i64, ListedPartition> = partitions
        .into_iter()
        .map(|partition| (partition.location.partition_number, partition))
        .collect();
    let picks = pick_page(store, &partitions, ranges, status, page).await?;
    Ok(WalkResult {
        partitions,
        picks,
        total,
    })
}

/// How many have the status, of all partitions together.
fn sum(row: &Row, status: Option<MessageStatus>) -> i64 {
    let [total, ahead, leased, letters] =
        ["sum_total", "sum_ahead", "sum_leased", "sum_letters"].map(|column| row.number(column));
    match status {
        None => total,
        Some(MessageStatus::Pending) => ahead - leased,
        Some(MessageStatus::Processing) => leased,
        Some(MessageStatus::Completed) => total - ahead - letters,
        Some(MessageStatus::DeadLetter) => letters,
    }
}

/// Per partition, the positions within the times that have the status, but for flagged ones.
async fn ranges(
    store: &dyn Store,
    partitions: &[ListedPartition],
    filter: &MessageFilter,
    status: Option<MessageStatus>,
) -> Result<Vec<PositionRange>, Error> {
    let mut ranges: Vec<PositionRange> = partitions
        .iter()
        .map(|partition| partition.range(status))
        .collect();
    if let Some(from) = filter.from_us {
        let times = ranges.iter().map(|range| (range.partition, from)).collect();
        let positions = store.positions_at(times).await?;
        for (range, position) in ranges.iter_mut().zip(positions) {
            range.from = range.from.max(position);
        }
    }
    if let Some(to) = filter.to_us {
        let late: Vec<usize> = (0..partitions.len())
            .filter(|index| partitions[*index].last_us >= to)
            .collect();
        let times = late
            .iter()
            .map(|index| (ranges[*index].partition, to))
            .collect();
        let positions = store.positions_at(times).await?;
        for (index, position) in late.into_iter().zip(positions) {
            ranges[index].to = ranges[index].to.min(position);
        }
    }
    Ok(ranges)
}

async fn count(
    store: &dyn Store,
    partitions: &[ListedPartition],
    ranges: &[PositionRange],
    status: Option<MessageStatus>,
) -> Result<i64, Error> {
    let mut total: i64 = ranges
        .iter()
        .map(|range| (range.to - range.from).max(0))
        .sum();
    let both: Vec<(&ListedPartition, PositionRange)> =
        partitions.iter().zip(ranges.iter().copied()).collect();
    for some in both.chunks(AT_ONCE) {
        let excluded = some
            .iter()
            .map(|(partition, range)| partition.excluded(store, *range, status));
        for excluded in try_join_all(excluded).await? {
            total -= i64::try_from(excluded.len()).unwrap_or_default();
        }
    }
    Ok(total)
}

async fn pick_page(
    store: &dyn Store,
    partitions: &HashMap<i64, ListedPartition>,
    mut ranges: Vec<PositionRange>,
    status: Option<MessageStatus>,
    page: Page,
) -> Result<Vec<(SegmentSpan, Vec<i64>)>, Error> {
    let mut picks = Vec::new();
    let (mut skip, mut room) = (page.offset, page.limit);
    loop {
        ranges.retain(|range| range.from < range.to);
        if ranges.is_empty() || room <= 0 {
            return Ok(picks);
        }
        let count = (skip + room).min(CHUNK);
        let segment_spans = store.segment_spans(ranges.clone(), count).await?;
        if segment_spans.is_empty() {
            return Ok(picks);
        }
        let bounds: HashMap<i64, PositionRange> = ranges
            .iter()
            .map(|range| (range.partition, *range))
            .collect();
        let within = |span: &SegmentSpan| PositionRange {
            partition: span.partition,
            from: bounds[&span.partition].from.max(span.first),
            to: bounds[&span.partition].to.min(span.last + 1),
        };
        for some in segment_spans.chunks(AT_ONCE) {
            let excluded = some
                .iter()
                .map(|span| partitions[&span.partition].excluded(store, within(span), status));
            let excluded = try_join_all(excluded).await?;
            for (span, excluded) in some.iter().zip(excluded) {
                let range = within(span);
                let positions: Vec<i64> = (range.from..range.to)
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
                    picks.push((*span, taken));
                }
            }
        }
        let seen: HashMap<i64, i64> =
            segment_spans.iter().fold(HashMap::new(), |mut seen, span| {
                let least = seen.entry(span.partition).or_insert(span.first);
                *least = span.first.min(*least);
                seen
            });
        for range in &mut ranges {
            if let Some(first) = seen.get(&range.partition) {
                range.to = range.to.min(*first);
            }
        }
    }
}
