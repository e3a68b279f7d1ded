//! The ground the run stands on, and how it is shaken.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::time::Instant;
use wakeline_testbed::{Postgres, psql};

use super::args::{VerifyArgs, VerifyStore};
use super::run::{LEASE, Run, Tally};
use super::schedule::{Fault, Planned};
use crate::own::{self, OwnServer};

/// How long a killed node stays away at most.
const LONGEST_AWAY: u64 = 1_000;

/// The nodes go before the database they stand on.
#[derive(Debug)]
pub(super) struct Ground {
    nodes: Vec<OwnServer>,
    postgres: Option<Postgres>,
}

impl Ground {
    pub(super) fn prepare(args: &VerifyArgs) -> anyhow::Result<Self> {
        let program = own::wakeline_program(args.wakeline_bin.as_deref())?;
        let postgres = match args.store {
            VerifyStore::Sqlite => None,
            VerifyStore::Postgres => Some(Postgres::start()?),
        };
        let url = postgres.as_ref().map(Postgres::url);
        let lease = format!("--queue-lease={}s", LEASE.as_secs());
        // A lost line of the bus is noticed within a run.
        let flags = [&*lease, "--bus-canary=500ms", "--log-level=warn"];
        let nodes = (0..args.nodes)
            .map(|_| OwnServer::wakeline(&program, url.as_deref(), &flags))
            .collect::<Result<_, _>>()?;
        Ok(Self { nodes, postgres })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(OwnServer::url).collect()
    }

    fn shake(&mut self, fault: Fault, away: Duration) -> anyhow::Result<()> {
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

/// Does what is planned, each when it is due; all runs again when this returns.
pub(super) async fn run(
    run: Arc<Run>,
    ground: Arc<Mutex<Ground>>,
    plan: Vec<Planned>,
) -> anyhow::Result<Tally> {
    let start = Instant::now();
    let mut random = StdRng::seed_from_u64(run.seed);
    let mut tally = Tally::default();
    for Planned { at, fault } in plan {
        tokio::time::sleep_until(start + at).await;
        eprintln!("{:>7.1} s  {}", start.elapsed().as_secs_f64(), name(fault));
        if fault == Fault::LeaseStorm {
            run.storm();
        }
        let away = Duration::from_millis(random.random_range(0..LONGEST_AWAY));
        let ground = Arc::clone(&ground);
        tokio::task::spawn_blocking(move || {
            let mut ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
            ground.shake(fault, away)
        })
        .await??;
        tally.count(name(fault));
    }
    Ok(tally)
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
