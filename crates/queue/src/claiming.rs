//! How what is ready is shared out among those who ask in the same moment. Both stores share it.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    book::Cursor,
    claim::{Claimed, Part},
    cut::{Candidate, Cut},
};

/// One of those who ask at the same place.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    pub batch: u32,
    pub partitions: u32,
    pub auto_ack: bool,
    pub lease: Uuid,
    /// How long a lease lasts if the queue does not say.
    pub time: Duration,
}

/// What becomes of a cursor that was looked at.
#[derive(Debug)]
pub struct Moved {
    pub key: (i64, i64),
    pub cursor: Cursor,
    /// Messages that were acknowledged by being handed out.
    pub consumed: i64,
    /// Nothing was seen behind it: whether that is so has to be found out under the partition's
    /// lock.
    pub is_at_end: bool,
    /// The asker and the part that wants to know how many more there are.
    pub part: Option<(usize, usize)>,
}

/// What the askers get.
#[derive(Debug, Default)]
pub struct Shares {
    /// Per asker, in order.
    pub parts: Vec<Vec<Part>>,
    pub leases: Vec<Option<Duration>>,
    pub moved: Vec<Moved>,
    /// When there may be something for those who got nothing, in microseconds from now.
    pub again_us: Option<i64>,
}

/// Gives each asker in turn as many of the candidates as it wants.
pub fn share(
    askers: &[Asker],
    candidates: Vec<Candidate>,
    now: i64,
) -> Result<Shares, serde_json::Error> {
    let mut shares = Shares::default();
    let mut candidates = candidates.into_iter();
    for (asker_index, asker) in askers.iter().enumerate() {
        let mut parts: Vec<Part> = Vec::new();
        let mut room = asker.batch as usize;
        let mut lease_time = None;
        while room > 0 && parts.len() < asker.partitions.max(1) as usize {
            let Some(candidate) = candidates.next() else {
                break;
            };
            let mut cursor = Cursor {
                position: candidate.position,
                ready_us: Some(now),
                lease: None,
                leased_to: None,
                marked_to: candidate.marked_to,
            };
            let key = (candidate.partition, candidate.group);
            let mut moved = |cursor, consumed, is_at_end, part| {
                shares.moved.push(Moved {
                    key,
                    cursor,
                    consumed,
                    is_at_end,
                    part,
                });
            };
            match candidate.cut(room, now)? {
                Cut::Taken { messages, end } => {
                    let first = messages.first().map_or(end, |message| message.position);
                    room -= messages.len();
                    let consumed = i64::try_from(messages.len()).unwrap_or_default();
                    let part = (asker_index, parts.len());
                    if asker.auto_ack {
                        cursor.position = end;
                        // Seen to go on: then it is known without the partition's lock.
                        let is_at_end = candidate.next <= end;
                        moved(cursor, consumed, is_at_end, Some(part));
                    } else {
                        let time = candidate
                            .lease_us
                            .map_or(asker.time, |us| micros(us.max(0)));
                        lease_time = Some(time);
                        cursor.position = first;
                        cursor.lease = Some(asker.lease);
                        cursor.leased_to = Some(end);
                        cursor.ready_us = Some(now.saturating_add(in_micros(time)));
                        moved(cursor, 0, false, None);
                    }
                    let remaining = (candidate.next - end).max(0);
                    parts.push(Part {
                        partition: candidate.name,
                        number: candidate.partition,
                        first,
                        end,
                        messages,
                        remaining: if asker.auto_ack {
                            u32::try_from(remaining).unwrap_or(u32::MAX)
                        } else {
                            0
                        },
                    });
                }
                Cut::Later(due) => {
                    cursor.ready_us = Some(due);
                    moved(cursor, 0, false, None);
                    sooner(&mut shares.again_us, due - now);
                }
                Cut::Passed(position) => {
                    cursor.position = position;
                    let is_at_end = candidate.next <= position;
                    moved(cursor, 0, is_at_end, None);
                    sooner(&mut shares.again_us, 0);
                }
                Cut::End(position) => {
                    cursor.position = position;
                    moved(cursor, 0, true, None);
                    sooner(&mut shares.again_us, 0);
                }
            }
        }
        shares.parts.push(parts);
        shares.leases.push(lease_time);
    }
    Ok(shares)
}

pub fn sooner(recheck_after: &mut Option<i64>, us: i64) {
    *recheck_after = Some(recheck_after.map_or(us, |known| known.min(us)));
}

#[must_use]
pub fn micros(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or_default())
}

#[must_use]
pub fn in_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Names of the queue that is claimed from.
#[derive(Clone, Debug, Default)]
pub struct ClaimedQueue {
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub group: i64,
}

/// What an asker gets, if it gets something.
#[must_use]
pub fn claimed(
    queue: &ClaimedQueue,
    group: &str,
    asker: &Asker,
    time: Option<Duration>,
    parts: Vec<Part>,
) -> Option<Claimed> {
    (!parts.is_empty()).then(|| Claimed {
        queue: queue.name.clone(),
        namespace: queue.namespace.clone(),
        task: queue.task.clone(),
        group: group.to_owned(),
        group_number: queue.group,
        lease: (!asker.auto_ack).then_some(asker.lease),
        time,
        parts,
    })
}
