//! The nodes and the database of a run, and the faults that are injected.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::time::Instant;
use wakeline_testbed::{Postgres, psql};

use super::args::VerifyArgs;
use super::run::{EventCounts, LEASE, Run};
use super::schedule::{Fault, PlannedFault};
use crate::args::StoreKind;
use crate::server_process::{ServerProcess, wakeline_program};

/// Milliseconds that a killed node stays away at most.
const LONGEST_AWAY: u64 = 1_000;

/// The nodes end before the database, as the fields are dropped in this order.
#[derive(Debug)]
pub(super) struct Cluster {
    nodes: Vec<ServerProcess>,
    postgres: Option<Postgres>,
}

impl Cluster {
    pub(super) fn prepare(args: &VerifyArgs) -> anyhow::Result<Self> {
        let program = wakeline_program(args.wakeline_bin.as_deref())?;
        let postgres = match args.store {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => Some(Postgres::start()?),
        };
        let url = postgres.as_ref().map(Postgres::url);
        let lease = format!("--queue-lease={}s", LEASE.as_secs());
        // So that a lost connection of the bus is noticed within a run.
        let flags = [&*lease, "--bus-canary=500ms", "--log-level=warn"];
        let nodes = (0..args.nodes)
            .map(|_| ServerProcess::wakeline(&program, url.as_deref(), &flags))
            .collect::<Result<_, _>>()?;
        Ok(Self { nodes, postgres })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(ServerProcess::url).collect()
    }

    fn inject(&mut self, fault: Fault, away: Duration) -> anyhow::Result<()> {
        match fault {
            Fault::KillNode { node } => {
                self.nodes[node].kill()?;
                std::thread::sleep(away);
                self.nodes[node].start()
            }
            Fault::RestartPostgres { crash } => {
                let Some(postgres) = &mut self.postgres else {
                    return Ok(());
                };
                match crash {
                    true => postgres.crash()?,
                    false => postgres.stop()?,
                }
                postgres.start_again()
            }
            Fault::CutListeners => {
                let Some(postgres) = &self.postgres else {
                    return Ok(());
                };
                let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()";
                psql(&postgres.url(), cut).map(drop)
            }
            Fault::LeaseStorm => Ok(()),
        }
    }
}

/// Injects each planned fault when it is due. All nodes run again when this returns.
pub(super) async fn run(
    run: Arc<Run>,
    cluster: Arc<Mutex<Cluster>>,
    plan: Vec<PlannedFault>,
) -> anyhow::Result<EventCounts> {
    let start = Instant::now();
    let mut random = StdRng::seed_from_u64(run.seed);
    let mut events = EventCounts::default();
    for PlannedFault { at, fault } in plan {
        tokio::time::sleep_until(start + at).await;
        eprintln!("{:>7.1} s  {}", start.elapsed().as_secs_f64(), name(fault));
        if fault == Fault::LeaseStorm {
            run.start_lease_storm();
        }
        let away = Duration::from_millis(random.random_range(0..LONGEST_AWAY));
        let cluster = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || {
            let mut cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
            cluster.inject(fault, away)
        })
        .await??;
        events.count(name(fault));
    }
    Ok(events)
}

pub(super) fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::KillNode { .. } => "nodes killed",
        Fault::RestartPostgres { crash: false } => "PostgreSQL restarts",
        Fault::RestartPostgres { crash: true } => "PostgreSQL crashes",
        Fault::CutListeners => "listeners cut",
        Fault::LeaseStorm => "lease storms",
    }
}
