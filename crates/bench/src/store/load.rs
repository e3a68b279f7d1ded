//! Writers that each submit the next operation when the last is answered.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use futures_util::future::try_join_all;

/// What the writers saw.
#[derive(Debug)]
pub(super) struct Load {
    /// Of each operation, from submitting it to its answer.
    pub(super) latencies: Vec<Duration>,
    pub(super) elapsed: Duration,
}

impl Load {
    pub(super) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// By tasks.
    pub(super) async fn by_tasks<F>(
        writers: usize,
        time: Duration,
        operation: impl Fn() -> F + Clone + Send + 'static,
    ) -> anyhow::Result<Self>
    where
        F: Future<Output = Result<(), wakeline_store::Error>> + Send,
    {
        let began = Instant::now();
        let tasks = (0..writers).map(|_| {
            let operation = operation.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while began.elapsed() < time {
                    let submitted = Instant::now();
                    operation().await?;
                    latencies.push(submitted.elapsed());
                }
                Ok::<_, wakeline_store::Error>(latencies)
            })
        });
        let mut latencies = Vec::new();
        for writer in try_join_all(tasks).await? {
            latencies.append(&mut writer?);
        }
        Ok(Self {
            latencies,
            elapsed: began.elapsed(),
        })
    }

    /// By threads, for an operation that blocks.
    pub(super) fn by_threads(
        writers: usize,
        time: Duration,
        operation: impl Fn() -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<Self> {
        let began = Instant::now();
        let write = || {
            let mut latencies = Vec::new();
            while began.elapsed() < time {
                let submitted = Instant::now();
                operation()?;
                latencies.push(submitted.elapsed());
            }
            anyhow::Ok(latencies)
        };
        let mut latencies = Vec::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..writers)
                .map(|_| thread::Builder::new().spawn_scoped(scope, write))
                .collect::<Result<_, _>>()
                .context("starting the writers")?;
            for writer in threads {
                let done = writer.join().map_err(|_| anyhow!("a writer panicked"))?;
                latencies.append(&mut done?);
            }
            anyhow::Ok(())
        })?;
        Ok(Self {
            latencies,
            elapsed: began.elapsed(),
        })
    }
}
