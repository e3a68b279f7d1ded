//! How ready messages are shared out among pops of the same moment. Both databases share it.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    apply::Cursor,
    claim::{Claim, ClaimedPartition},
    takeable::{Candidate, Takeable},
};

/// One of the pops that share a claim.
#[derive(Clone, Copy, Debug)]
pub struct Claimant {
    pub batch: u32,
    pub partitions: u32,
    pub auto_ack: bool,
    pub lease: Uuid,
    /// How long a lease lasts if the queue has no `leaseTime`.
    pub time: Duration,
    /// How long this one lasts, whatever the queue says.
    pub own_time: Option<Duration>,
}

impl Claimant {
    /// How long the lease lasts in a queue with this `leaseTime`.
    fn lease_time(&self, of_queue: Option<i64>) -> Duration {
        let of_queue = of_queue.map(|us| duration_from_us(us.max(0)));
        self.own_time.or(of_queue).unwrap_or(self.time)
    }
}

/// The new state of a cursor that was read.
#[derive(Debug)]
pub struct CursorUpdate {
    pub key: (i64, i64),
    pub cursor: Cursor,
    /// Messages that were acknowledged as they were handed out.
    pub consumed: i64,
    /// No message was seen from the cursor on. Only the partition's lock tells whether there is none.
    pub is_at_end: bool,
    /// The indexes of the claimant and of its part that need to know how many more messages there are.
    pub part: Option<(usize, usize)>,
}

/// What the claimants get.
#[derive(Debug, Default)]
pub struct ClaimShares {
    /// Per claimant, in order.
    pub parts: Vec<Vec<ClaimedPartition>>,
    pub leases: Vec<Option<Duration>>,
    pub updates: Vec<CursorUpdate>,
    /// When there may be messages for the pops that got none, in microseconds from now.
    pub recheck_after_us: Option<i64>,
}

/// Gives each claimant in turn as many of the candidates as it wants.
pub fn share(
    claimants: &[Claimant],
    candidates: Vec<Candidate>,
    now: i64,
) -> Result<ClaimShares, serde_json::Error> {
    let mut shares = ClaimShares::default();
    let mut candidates = candidates.into_iter();
    for (claimant_index, claimant) in claimants.iter().enumerate() {
        let mut parts: Vec<ClaimedPartition> = Vec::new();
        let mut room = claimant.batch as usize;
        let mut lease_time = None;
        while room > 0 && parts.len() < claimant.partitions.max(1) as usize {
            let Some(candidate) = candidates.next() else {
                break;
            };
            let mut deliveries = candidate.deliveries.clone();
            // A lease that has ended without an acknowledgement was a delivery too.
            if let Some(end) = candidate.leased_to {
                deliveries.add(end, candidate.position);
            }
            let mut cursor = Cursor {
                position: candidate.position,
                ready_us: Some(now),
                lease: None,
                leased_to: None,
                nacked_lease: None,
                flags_end: candidate.flags_end,
                deliveries: deliveries.clone(),
            };
            let key = (candidate.partition, candidate.group);
            let mut update = |cursor, consumed, is_at_end, part| {
                shares.updates.push(CursorUpdate {
                    key,
                    cursor,
                    consumed,
                    is_at_end,
                    part,
                });
            };
            match candidate.takeable(room, now)? {
                Takeable::Messages { messages, end } => {
                    let first = messages.first().map_or(end, |message| message.position);
                    room -= messages.len();
                    let consumed = i64::try_from(messages.len()).unwrap_or_default();
                    let part = (claimant_index, parts.len());
                    if claimant.auto_ack {
                        cursor.position = end;
                        // If more messages were seen, they are there without the partition's lock.
                        let is_at_end = candidate.next <= end;
                        update(cursor, consumed, is_at_end, Some(part));
                    } else {
                        let time = claimant.lease_time(candidate.lease_us);
                        lease_time = Some(time);
                        cursor.position = first;
                        cursor.lease = Some(claimant.lease);
                        cursor.leased_to = Some(end);
                        cursor.ready_us = Some(now.saturating_add(duration_to_us(time)));
                        update(cursor, 0, false, None);
                    }
                    let remaining = (candidate.next - end).max(0);
                    parts.push(ClaimedPartition {
                        partition: candidate.name,
                        number: candidate.partition,
                        first,
                        end,
                        messages,
                        deliveries,
                        remaining: if claimant.auto_ack {
                            u32::try_from(remaining).unwrap_or(u32::MAX)
                        } else {
                            0
                        },
                    });
                }
                Takeable::NotBefore(due) => {
                    cursor.ready_us = Some(due);
                    update(cursor, 0, false, None);
                    keep_soonest(&mut shares.recheck_after_us, due - now);
                }
                Takeable::AllSkipped(position) => {
                    cursor.position = position;
                    let is_at_end = candidate.next <= position;
                    update(cursor, 0, is_at_end, None);
                    keep_soonest(&mut shares.recheck_after_us, 0);
                }
                Takeable::End(position) => {
                    cursor.position = position;
                    update(cursor, 0, true, None);
                    keep_soonest(&mut shares.recheck_after_us, 0);
                }
            }
        }
        shares.parts.push(parts);
        shares.leases.push(lease_time);
    }
    Ok(shares)
}

pub fn keep_soonest(recheck_after: &mut Option<i64>, us: i64) {
    *recheck_after = Some(recheck_after.map_or(us, |known| known.min(us)));
}

#[must_use]
pub fn duration_from_us(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or_default())
}

#[must_use]
pub fn duration_to_us(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The queue that is claimed from, and the group there.
#[derive(Clone, Debug, Default)]
pub struct ClaimedQueue {
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub group: i64,
}

/// The claim of a claimant that got something.
#[must_use]
pub fn claim(
    queue: &ClaimedQueue,
    group: &str,
    claimant: &Claimant,
    time: Option<Duration>,
    parts: Vec<ClaimedPartition>,
) -> Option<Claim> {
    (!parts.is_empty()).then(|| Claim {
        queue: queue.name.clone(),
        namespace: queue.namespace.clone(),
        task: queue.task.clone(),
        group: group.to_owned(),
        group_number: queue.group,
        lease: (!claimant.auto_ack).then_some(claimant.lease),
        time,
        parts,
    })
}
