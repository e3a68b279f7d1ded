//! Pops of many callers in one transaction of two round trips. The first locks ready cursors and reads
//! their messages, then these are shared out among the pops, then the second writes and commits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_store::postgres::{Batch, RunError, Weigh, pipelined};

use super::{apply::query_if, flush::Cursors, wrong};
use crate::{
    claim::{PopOutcome, PopRequest, Source, Start},
    claiming::{self, ClaimShares, Claimant, ClaimedQueue},
    deliveries::Deliveries,
    segment::Segment,
    takeable::Candidate,
};

#[derive(Debug)]
pub(super) struct ClaimBatches {
    /// A queue that waits for so many seconds gains one of priority.
    pub(super) aging: f64,
}

#[derive(Clone, Debug)]
pub(super) struct PopCall {
    pub(super) request: Arc<PopRequest>,
    pub(super) lease: Uuid,
    pub(super) time: Duration,
}

impl Weigh for PopCall {}

impl PopCall {
    fn claimant(&self) -> Claimant {
        Claimant {
            batch: self.request.batch,
            partitions: self.request.partitions,
            auto_ack: self.request.auto_ack,
            lease: self.lease,
            time: self.time,
            own_time: self.request.lease_time,
        }
    }
}

/// One claim for all pops of the same queue, partition and group. `claimants` are their indexes.
#[derive(Debug)]
struct SharedClaim {
    queue: String,
    partition: Option<String>,
    group: String,
    start: Start,
    claimants: Vec<usize>,
}

impl Batch for ClaimBatches {
    type Operation = PopCall;
    type Output = PopOutcome;

    const KIND: &'static str = "pop";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        pops: &'a [PopCall],
    ) -> BoxFuture<'a, Result<Vec<PopOutcome>, RunError>> {
        async move {
            let mut popped: Vec<Option<PopOutcome>> = pops.iter().map(|_| None).collect();
            let claims = self.claims(client, pops, &mut popped).await?;
            if !claims.is_empty() {
                let claimed = claim(client, pops, &claims, &mut popped).await;
                if claimed.is_err() {
                    // A broken connection is noticed by the next statement on it.
                    let _ = client.batch_execute("ROLLBACK").await;
                }
                claimed?;
            }
            let empty = || PopOutcome::Empty {
                recheck_after: None,
            };
            Ok(popped
                .into_iter()
                .map(|popped| popped.unwrap_or_else(empty))
                .collect())
        }
        .boxed()
    }
}

impl ClaimBatches {
    async fn claims(
        &self,
        client: &Client,
        pops: &[PopCall],
        popped: &mut [Option<PopOutcome>],
    ) -> Result<Vec<SharedClaim>, RunError> {
        let mut chosen = self.choose(client, pops, popped).await?;
        let mut claims: Vec<SharedClaim> = Vec::new();
        let mut by_source: HashMap<(String, Option<String>, &str), usize> = HashMap::new();
        for (index, pop) in pops.iter().enumerate() {
            let (queue, partition, start) = match &pop.request.source {
                Source::Queue { queue, partition } => {
                    (queue.clone(), partition.clone(), pop.request.start)
                }
                Source::Matching { .. } => match chosen.remove(&index) {
                    Some((queue, start)) => (queue, None, start),
                    None => continue,
                },
            };
            let key = (queue.clone(), partition.clone(), &*pop.request.group);
            let shared = *by_source.entry(key).or_insert_with(|| {
                claims.push(SharedClaim {
                    queue,
                    partition,
                    group: pop.request.group.clone(),
                    start,
                    claimants: Vec::new(),
                });
                claims.len() - 1
            });
            claims[shared].claimants.push(index);
        }
        Ok(claims)
    }

    /// For pops by namespace or task: which queue, and where the group starts there.
    async fn choose(
        &self,
        client: &Client,
        pops: &[PopCall],
        popped: &mut [Option<PopOutcome>],
    ) -> Result<HashMap<usize, (String, Start)>, RunError> {
        let (mut of, mut namespaces, mut tasks, mut groups, mut modes, mut begins) =
            (vec![], vec![], vec![], vec![], vec![], vec![]);
        for (index, pop) in pops.iter().enumerate() {
            if let Source::Matching { namespace, task } = &pop.request.source {
                of.push(index);
                namespaces.push(namespace.as_deref());
                tasks.push(task.as_deref());
                groups.push(&*pop.request.group);
                modes.push(pop.request.start.mode());
                begins.push(begin(pop.request.start));
            }
        }
        if of.is_empty() {
            return Ok(HashMap::new());
        }
        let (subscribed, chosen) = pipelined!(
            client.query_typed(
                "SELECT item, mode, begin_us FROM wakeline.queue_remember_subscriptions($1, $2, $3, $4, $5)",
                &[
                    (&namespaces, Type::TEXT_ARRAY),
                    (&tasks, Type::TEXT_ARRAY),
                    (&groups, Type::TEXT_ARRAY),
                    (&modes, Type::TEXT_ARRAY),
                    (&begins, Type::INT8_ARRAY),
                ],
            ),
            client.query_typed(
                "SELECT item, queue, greatest(0,
                     due_us - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS wait_us
                 FROM wakeline.queue_choose_queue($1, $2, $3, $4)",
                &[
                    (&namespaces, Type::TEXT_ARRAY),
                    (&tasks, Type::TEXT_ARRAY),
                    (&groups, Type::TEXT_ARRAY),
                    (&self.aging, Type::FLOAT8),
                ],
            ),
        )?;
        let mut starts = vec![Start::All; of.len()];
        for row in &subscribed {
            let item = super::item(row).ok_or_else(|| wrong("a group"))?;
            if let Some(begin) = row.get("begin_us") {
                starts[item] = Start::At(begin);
            }
        }
        let mut queues = HashMap::new();
        for row in &chosen {
            let item = super::item(row).ok_or_else(|| wrong("a queue"))?;
            match row.get::<_, Option<String>>("queue") {
                Some(queue) => {
                    queues.insert(of[item], (queue, starts[item]));
                }
                None => {
                    let wait_us: Option<i64> = row.get("wait_us");
                    let recheck_after = wait_us.map(claiming::duration_from_us);
                    popped[of[item]] = Some(PopOutcome::Empty { recheck_after });
                }
            }
        }
        Ok(queues)
    }
}

fn begin(start: Start) -> Option<i64> {
    match start {
        Start::All | Start::New => None,
        Start::At(at) => Some(at),
    }
}

async fn claim(
    client: &Client,
    pops: &[PopCall],
    claims: &[SharedClaim],
    popped: &mut [Option<PopOutcome>],
) -> Result<(), RunError> {
    let queues: Vec<&str> = claims.iter().map(|shared| &*shared.queue).collect();
    let partitions: Vec<Option<&str>> = claims
        .iter()
        .map(|shared| shared.partition.as_deref())
        .collect();
    let groups: Vec<&str> = claims.iter().map(|shared| &*shared.group).collect();
    let modes: Vec<&str> = claims.iter().map(|shared| shared.start.mode()).collect();
    let begins: Vec<Option<i64>> = claims.iter().map(|shared| begin(shared.start)).collect();
    let asked = |shared: &SharedClaim, of: fn(&PopRequest) -> u32| -> Vec<u32> {
        shared
            .claimants
            .iter()
            .map(|index| of(&pops[*index].request))
            .collect()
    };
    let counts: Vec<i32> = claims
        .iter()
        .map(|shared| {
            let wanted = asked(shared, |request| request.partitions.max(1)).into_iter();
            i32::try_from(wanted.map(u64::from).sum::<u64>()).unwrap_or(i32::MAX)
        })
        .collect();
    let batches: Vec<i64> = claims
        .iter()
        .map(|shared| {
            i64::from(
                asked(shared, |request| request.batch)
                    .into_iter()
                    .max()
                    .unwrap_or(1),
            )
        })
        .collect();
    let ((), rows) = pipelined!(
        client.batch_execute("BEGIN"),
        client.query_typed(
            "SELECT * FROM wakeline.queue_claim($1, $2, $3, $4, $5, $6, $7)",
            &[
                (&queues, Type::TEXT_ARRAY),
                (&partitions, Type::TEXT_ARRAY),
                (&groups, Type::TEXT_ARRAY),
                (&modes, Type::TEXT_ARRAY),
                (&begins, Type::INT8_ARRAY),
                (&counts, Type::INT4_ARRAY),
                (&batches, Type::INT8_ARRAY),
            ],
        ),
    )?;
    let mut found = read(claims, &batches, &rows)?;
    let mut shares = Vec::with_capacity(claims.len());
    for (shared, found) in claims.iter().zip(&mut found) {
        let claimants: Vec<Claimant> = shared
            .claimants
            .iter()
            .map(|index| pops[*index].claimant())
            .collect();
        let candidates = std::mem::take(&mut found.candidates);
        let share = claiming::share(&claimants, candidates, found.now);
        shares.push(share.map_err(|error| RunError::Answer(format!("a segment: {error}")))?);
    }
    let remaining = write(client, &shares).await?;
    for ((shared, found), mut shares) in claims.iter().zip(found).zip(shares) {
        for update in shares.updates.iter().filter(|update| update.is_at_end) {
            if let Some((claimant, part)) = update.part {
                // Not known because of a push under way: a pop has to check after its commit.
                let more = remaining.get(&update.key).copied().flatten().unwrap_or(1);
                shares.parts[claimant][part].remaining = u32::try_from(more).unwrap_or(u32::MAX);
            }
        }
        let mut recheck_after = shares.recheck_after_us;
        if let Some(due) = found.due {
            claiming::keep_soonest(&mut recheck_after, (due - found.now).max(0));
        }
        for ((index, parts), time) in shared.claimants.iter().zip(shares.parts).zip(shares.leases) {
            let claimant = pops[*index].claimant();
            let claimed = claiming::claim(&found.queue, &shared.group, &claimant, time, parts);
            popped[*index] = Some(match claimed {
                Some(claimed) => PopOutcome::Claimed(claimed),
                None => PopOutcome::Empty {
                    recheck_after: recheck_after.map(claiming::duration_from_us),
                },
            });
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct ClaimRows {
    now: i64,
    due: Option<i64>,
    queue: ClaimedQueue,
    candidates: Vec<Candidate>,
}

fn read(claims: &[SharedClaim], batches: &[i64], rows: &[Row]) -> Result<Vec<ClaimRows>, RunError> {
    let mut found: Vec<ClaimRows> = claims.iter().map(|_| ClaimRows::default()).collect();
    for row in rows {
        let at = super::item(row).ok_or_else(|| wrong("a claim"))?;
        let shared = &mut found[at];
        shared.now = row.get("now_us");
        let Some(partition) = row.get::<_, Option<i64>>("partition_id") else {
            shared.due = row.get("due_us");
            continue;
        };
        if shared.candidates.last().map(|last| last.partition) != Some(partition) {
            let candidate = candidate(row, partition, batches[at]);
            shared.queue = ClaimedQueue {
                name: claims[at].queue.clone(),
                namespace: row.get("namespace"),
                task: row.get("task"),
                group: candidate.group,
            };
            shared.candidates.push(candidate);
        }
        if let Some(body) = row.get("body")
            && let Some(candidate) = shared.candidates.last_mut()
        {
            candidate.segments.push(Segment {
                partition,
                first: row.get("first"),
                last: row.get("last"),
                created_us: row.get("created_us"),
                only_group: row.get("only_group"),
                body,
            });
        }
    }
    Ok(found)
}

fn candidate(row: &Row, partition: i64, read_limit: i64) -> Candidate {
    let dead: Option<Vec<i64>> = row.get("dead");
    let duration_to_us = |name: &str| row.get::<_, Option<i64>>(name).map(|ms| ms * 1_000);
    Candidate {
        partition,
        group: row.get("group_id"),
        name: row.get("partition_name"),
        position: row.get("position"),
        flags_end: row.get("flags_end"),
        leased_to: row.get("leased_to"),
        deliveries: Deliveries::of_text(row.get("deliveries")),
        first: row.get("first_position"),
        next: row.get("next_position"),
        last_us: row.get("last_us"),
        lease_us: duration_to_us("lease_ms"),
        delay_us: duration_to_us("delay_ms").unwrap_or_default(),
        window_us: duration_to_us("window_ms").unwrap_or_default(),
        max_age_us: duration_to_us("max_age_ms"),
        skipped: dead.map(HashSet::from_iter).unwrap_or_default(),
        read_limit,
        segments: Vec::new(),
    }
}

/// Writes cursors and commits. Of the cursors that seem to be at the end: how many more messages there
/// are.
async fn write(
    client: &Client,
    shares: &[ClaimShares],
) -> Result<HashMap<(i64, i64), Option<i64>>, RunError> {
    let mut cursors = Cursors::default();
    let (mut partitions, mut groups) = (Vec::new(), Vec::new());
    for update in shares.iter().flat_map(|shares| &shares.updates) {
        cursors.add(update.key, &update.cursor, update.consumed);
        if update.is_at_end {
            partitions.push(update.key.0);
            groups.push(update.key.1);
        }
    }
    let ((), settled, ()) = pipelined!(
        cursors.write(client),
        query_if(
            client,
            !partitions.is_empty(),
            "SELECT partition_id, group_id, remaining FROM wakeline.queue_check_end($1, $2)",
            &[(&partitions, Type::INT8_ARRAY), (&groups, Type::INT8_ARRAY)],
        ),
        client.batch_execute("COMMIT"),
    )?;
    Ok(settled
        .iter()
        .map(|row| {
            let cursor = (row.get("partition_id"), row.get("group_id"));
            (cursor, row.get("remaining"))
        })
        .collect())
}
