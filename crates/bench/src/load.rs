//! Ways to load a server with many connections at once.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, TryStreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::server::{RETRY_PAUSE, Server};

/// Calls `operation` once for each number below `count`, over `connections` connections at once.
/// Returns the results in the order of their numbers, or the first failure.
pub(crate) async fn for_each<T>(
    server: &Server,
    connections: usize,
    count: usize,
    operation: impl AsyncFn(&mut Connection, usize) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let next = Cell::new(0);
    let workers = (0..connections.min(count)).map(|_| async {
        let mut connection = server.connection();
        let mut results = Vec::new();
        loop {
            let number = next.replace(next.get() + 1);
            if number >= count {
                return anyhow::Ok(results);
            }
            results.push((number, operation(&mut connection, number).await?));
        }
    });
    let workers: FuturesUnordered<_> = workers.collect();
    let mut results: Vec<(usize, T)> = workers.try_concat().await?;
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// What one connection does again and again while it is measured.
pub(crate) trait Operation: Send + 'static {
    /// How many units of work it has done; 0 for a failure, which it has counted.
    fn run(&mut self) -> impl Future<Output = usize> + Send;
}

/// What the connections did while they were measured.
pub(crate) struct Throughput {
    /// Units of work per second, in the median round.
    pub(crate) per_second: f64,
    /// How long each operation took, of all rounds.
    pub(crate) times: Vec<Duration>,
}

impl Throughput {
    /// Repeats each of `operations` for `rounds` of `time`, one after the other without a pause. An
    /// operation counts in the round in which it ended. Before the first round, connections are
    /// opened and nothing is counted.
    pub(crate) async fn measure(
        operations: impl Iterator<Item = impl Operation>,
        time: Duration,
        rounds: usize,
    ) -> Self {
        let from = Instant::now() + (time / 4).min(Duration::from_secs(1));
        let mut tasks = JoinSet::new();
        for operation in operations {
            tasks.spawn(repeat(operation, from, time, rounds));
        }
        let (mut sums, mut all) = (vec![0_usize; rounds], Vec::new());
        for (counts, mut times) in tasks.join_all().await {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
            all.append(&mut times);
        }
        sums.sort_unstable();
        Self {
            per_second: sums[rounds / 2] as f64 / time.as_secs_f64(),
            times: all,
        }
    }
}

async fn repeat(
    mut operation: impl Operation,
    from: Instant,
    time: Duration,
    rounds: usize,
) -> (Vec<usize>, Vec<Duration>) {
    let (mut counts, mut times) = (vec![0; rounds], Vec::new());
    loop {
        let sent = Instant::now();
        let done = operation.run().await;
        let ended = Instant::now();
        let round = ended
            .checked_duration_since(from)
            .map(|since| since.div_duration_f64(time) as usize);
        if round.is_some_and(|round| round >= rounds) {
            return (counts, times);
        }
        if done == 0 {
            tokio::time::sleep(RETRY_PAUSE).await;
        } else if let Some(round) = round {
            counts[round] += done;
            times.push(ended - sent);
        }
    }
}

/// Sleeps for a random number of milliseconds, so that measurements do not fall into step with a
/// server that polls.
pub(crate) async fn random_pause(millis: Range<u64>) {
    tokio::time::sleep(Duration::from_millis(rand::random_range(millis))).await;
}

/// Waits for all tasks; the first failure ends the others.
pub(crate) async fn join_all(mut tasks: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
