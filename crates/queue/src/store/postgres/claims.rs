//! Pops in batches: one transaction of two round trips. The first locks ready cursors and reads what
//! is behind them, then it is shared out among those who ask, then the second writes and commits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_store::postgres::{Batch, RunError, Weigh, pipelined};

use super::{steps::query_if, write::Cursors, wrong};
use crate::{
    claim::{PopRequest, Popped, Source, Start},
    claiming::{self, Asker, ClaimedQueue, Shares},
    cut::Candidate,
    segment::Segment,
};

#[derive(Debug)]
pub(super) struct Claims {
    /// So many seconds of waiting count as one of priority.
    pub(super) aging: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Pop {
    pub(super) request: Arc<PopRequest>,
    pub(super) lease: Uuid,
    pub(super) time: Duration,
}

impl Weigh for Pop {}

impl Pop {
    fn asker(&self) -> Asker {
        Asker {
            batch: self.request.batch,
            partitions: self.request.partitions,
            auto_ack: self.request.auto_ack,
            lease: self.lease,
            time: self.time,
        }
    }
}

/// Those who ask for the same, by their index.
#[derive(Debug)]
struct Line {
    queue: String,
    partition: Option<String>,
    group: String,
    start: Start,
    askers: Vec<usize>,
}

impl Batch for Claims {
    type Operation = Pop;
    type Output = Popped;

    const KIND: &'static str = "pop";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        pops: &'a [Pop],
    ) -> BoxFuture<'a, Result<Vec<Popped>, RunError>> {
        async move {
            let mut popped: Vec<Option<Popped>> = pops.iter().map(|_| None).collect();
            let lines = self.lines(client, pops, &mut popped).await?;
            if !lines.is_empty() {
                let claimed = claim(client, pops, &lines, &mut popped).await;
                if claimed.is_err() {
                    // What is broken is noticed by whoever uses the connection next.
                    let _ = client.batch_execute("ROLLBACK").await;
                }
                claimed?;
            }
            let empty = || Popped::Empty {
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

impl Claims {
    async fn lines(
        &self,
        client: &Client,
        pops: &[Pop],
        popped: &mut [Option<Popped>],
    ) -> Result<Vec<Line>, RunError> {
        let mut chosen = self.choose(client, pops, popped).await?;
        let mut lines: Vec<Line> = Vec::new();
        let mut by_place: HashMap<(String, Option<String>, &str), usize> = HashMap::new();
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
            let line = *by_place.entry(key).or_insert_with(|| {
                lines.push(Line {
                    queue,
                    partition,
                    group: pop.request.group.clone(),
                    start,
                    askers: Vec::new(),
                });
                lines.len() - 1
            });
            lines[line].askers.push(index);
        }
        Ok(lines)
    }

    /// For those who ask by namespace or task: which queue, and where the group begins there.
    async fn choose(
        &self,
        client: &Client,
        pops: &[Pop],
        popped: &mut [Option<Popped>],
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
                "SELECT item, mode, begin_us FROM wakeline.queue_subscribed($1, $2, $3, $4, $5)",
                &[
                    (&namespaces, Type::TEXT_ARRAY),
                    (&tasks, Type::TEXT_ARRAY),
                    (&groups, Type::TEXT_ARRAY),
                    (&modes, Type::TEXT_ARRAY),
                    (&begins, Type::INT8_ARRAY),
                ],
            ),
            client.query_typed(
                "SELECT item, queue, greatest(0, due_us - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                 FROM wakeline.queue_choose($1, $2, $3, $4)",
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
            let at = super::index(row, 0).ok_or_else(|| wrong("a group"))?;
            if let Some(begin) = row.get(2) {
                starts[at] = Start::At(begin);
            }
        }
        let mut queues = HashMap::new();
        for row in &chosen {
            let at = super::index(row, 0).ok_or_else(|| wrong("a queue"))?;
            match row.get::<_, Option<String>>(1) {
                Some(queue) => {
                    queues.insert(of[at], (queue, starts[at]));
                }
                None => {
                    let recheck_after = row.get::<_, Option<i64>>(2).map(claiming::micros);
                    popped[of[at]] = Some(Popped::Empty { recheck_after });
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
    pops: &[Pop],
    lines: &[Line],
    popped: &mut [Option<Popped>],
) -> Result<(), RunError> {
    let queues: Vec<&str> = lines.iter().map(|line| &*line.queue).collect();
    let partitions: Vec<Option<&str>> =
        lines.iter().map(|line| line.partition.as_deref()).collect();
    let groups: Vec<&str> = lines.iter().map(|line| &*line.group).collect();
    let modes: Vec<&str> = lines.iter().map(|line| line.start.mode()).collect();
    let begins: Vec<Option<i64>> = lines.iter().map(|line| begin(line.start)).collect();
    let asked = |line: &Line, of: fn(&PopRequest) -> u32| -> Vec<u32> {
        line.askers
            .iter()
            .map(|index| of(&pops[*index].request))
            .collect()
    };
    let counts: Vec<i32> = lines
        .iter()
        .map(|line| {
            let wanted = asked(line, |request| request.partitions.max(1)).into_iter();
            i32::try_from(wanted.map(u64::from).sum::<u64>()).unwrap_or(i32::MAX)
        })
        .collect();
    let batches: Vec<i64> = lines
        .iter()
        .map(|line| {
            i64::from(
                asked(line, |request| request.batch)
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
    let mut found = read(lines, &batches, &rows)?;
    let mut shares = Vec::with_capacity(lines.len());
    for (line, found) in lines.iter().zip(&mut found) {
        let askers: Vec<Asker> = line
            .askers
            .iter()
            .map(|index| pops[*index].asker())
            .collect();
        let candidates = std::mem::take(&mut found.candidates);
        let shared = claiming::share(&askers, candidates, found.now);
        shares.push(shared.map_err(|error| RunError::Answer(format!("a segment: {error}")))?);
    }
    let remaining = write(client, &shares).await?;
    for ((line, found), mut shares) in lines.iter().zip(found).zip(shares) {
        for moved in shares.moved.iter().filter(|moved| moved.is_at_end) {
            if let Some((asker, part)) = moved.part {
                // Not known because of a push under way: someone has to look once it is there.
                let more = remaining.get(&moved.key).copied().flatten().unwrap_or(1);
                shares.parts[asker][part].remaining = u32::try_from(more).unwrap_or(u32::MAX);
            }
        }
        let mut recheck_after = shares.again_us;
        if let Some(due) = found.due {
            claiming::sooner(&mut recheck_after, (due - found.now).max(0));
        }
        for ((index, parts), time) in line.askers.iter().zip(shares.parts).zip(shares.leases) {
            let asker = pops[*index].asker();
            let claimed = claiming::claimed(&found.queue, &line.group, &asker, time, parts);
            popped[*index] = Some(match claimed {
                Some(claimed) => Popped::Claimed(claimed),
                None => Popped::Empty {
                    recheck_after: recheck_after.map(claiming::micros),
                },
            });
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Found {
    now: i64,
    due: Option<i64>,
    queue: ClaimedQueue,
    candidates: Vec<Candidate>,
}

fn read(lines: &[Line], batches: &[i64], rows: &[Row]) -> Result<Vec<Found>, RunError> {
    let mut found: Vec<Found> = lines.iter().map(|_| Found::default()).collect();
    for row in rows {
        let at = super::index(row, 0).ok_or_else(|| wrong("a place"))?;
        let line = &mut found[at];
        line.now = row.get("now_us");
        let Some(partition) = row.get::<_, Option<i64>>("partition_id") else {
            line.due = row.get("due_us");
            continue;
        };
        if line.candidates.last().map(|last| last.partition) != Some(partition) {
            let candidate = candidate(row, partition, batches[at]);
            line.queue = ClaimedQueue {
                name: lines[at].queue.clone(),
                namespace: row.get("namespace"),
                task: row.get("task"),
                group: candidate.group,
            };
            line.candidates.push(candidate);
        }
        if let Some(body) = row.get("body")
            && let Some(candidate) = line.candidates.last_mut()
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

fn candidate(row: &Row, partition: i64, window: i64) -> Candidate {
    let dead: Option<Vec<i64>> = row.get("dead");
    let in_micros = |name: &str| row.get::<_, Option<i64>>(name).map(|ms| ms * 1_000);
    Candidate {
        partition,
        group: row.get("group_id"),
        name: row.get("partition_name"),
        position: row.get("position"),
        marked_to: row.get("marked_to"),
        first: row.get("first_position"),
        next: row.get("next_position"),
        last_us: row.get("last_us"),
        lease_us: in_micros("lease_ms"),
        delay_us: in_micros("delay_ms").unwrap_or_default(),
        window_us: in_micros("window_ms").unwrap_or_default(),
        age_us: in_micros("age_ms"),
        dead: dead.map(HashSet::from_iter).unwrap_or_default(),
        window,
        segments: Vec::new(),
    }
}

/// Writes cursors and commits. Of those that seemed to be at the end: how many more there are.
async fn write(
    client: &Client,
    shares: &[Shares],
) -> Result<HashMap<(i64, i64), Option<i64>>, RunError> {
    let mut cursors = Cursors::default();
    let (mut partitions, mut groups) = (Vec::new(), Vec::new());
    for moved in shares.iter().flat_map(|shares| &shares.moved) {
        cursors.add(moved.key, &moved.cursor, moved.consumed);
        if moved.is_at_end {
            partitions.push(moved.key.0);
            groups.push(moved.key.1);
        }
    }
    let ((), settled, ()) = pipelined!(
        cursors.write(client),
        query_if(
            client,
            !partitions.is_empty(),
            "SELECT partition_id, group_id, remaining FROM wakeline.queue_settle($1, $2)",
            &[(&partitions, Type::INT8_ARRAY), (&groups, Type::INT8_ARRAY)],
        ),
        client.batch_execute("COMMIT"),
    )?;
    Ok(settled
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect())
}
