//! `bench store`: what sharing commits gains over a commit for every call.
//!
//! Both ways run one after the other on the same disk, with the same statement, the same
//! connections and the store's own durability.

mod postgres;
mod sqlite;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde_json::json;

use crate::args::{check_counts, check_times};
use crate::comparison::Contestants;
use crate::failures::Failures;
use crate::figure::{Figure, Unit};
use crate::load::{Operation, Throughput};
use crate::report::Settings;
use crate::setup::Setup;
use crate::suite::{Benchmark, Contestant, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, parse_duration, show_duration};
use postgres::PostgresStore;
use sqlite::SqliteStore;

/// What each operation writes.
const BODY: [u8; 100] = [0x57; 100];
const ALONE: &str = "a commit for each write";
const IN_GROUPS: &str = "group commit";
/// With one writer there is nothing to share.
const GOAL_WRITERS: usize = 64;

#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// `sqlite` for a new file, or the `postgres://…` URL of a database to make a table in.
    #[arg(long, default_value = "sqlite")]
    pub store: String,
    /// The directory of the SQLite file during the run. Its disk is measured.
    #[arg(long, default_value = ".")]
    pub directory: PathBuf,
    /// How many callers write at once. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
    pub writers: Vec<usize>,
    /// How long each way of committing is measured at each number of writers.
    #[arg(long, default_value = "3s", value_parser = parse_duration)]
    pub time: Duration,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// One way to commit.
pub(crate) struct CommitMode {
    name: &'static str,
    store: Arc<BenchStore>,
    failures: Arc<Failures>,
}

/// A store with a table for the run.
enum BenchStore {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl BenchStore {
    async fn open(args: &StoreArgs) -> anyhow::Result<Self> {
        if args.store == "sqlite" {
            return Ok(Self::Sqlite(SqliteStore::open(&args.directory)?));
        }
        let scheme = args.store.split("://").next().unwrap_or_default();
        ensure!(
            matches!(scheme, "postgres" | "postgresql"),
            "--store must be `sqlite` or a postgres:// URL"
        );
        Ok(Self::Postgres(PostgresStore::open(&args.store).await?))
    }

    async fn write(&self, in_group: bool) -> Result<(), wakeline_store::Error> {
        match (self, in_group) {
            (Self::Sqlite(store), true) => store.write_in_group().await,
            (Self::Sqlite(store), false) => store.write_alone(),
            (Self::Postgres(store), true) => store.write_in_group().await,
            (Self::Postgres(store), false) => store.write_alone().await,
        }
    }

    fn group_commits(&self) -> anyhow::Result<u64> {
        match self {
            Self::Sqlite(store) => store.group_commits(),
            Self::Postgres(store) => Ok(store.group_commits()),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Sqlite(store) => store.describe(),
            Self::Postgres(store) => store.describe(),
        }
    }
}

impl Contestant for CommitMode {
    fn name(&self) -> &str {
        self.name
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }
}

impl Benchmark for StoreArgs {
    type Contestant = CommitMode;
    type PhaseName = ();

    fn json(&self) -> bool {
        self.json
    }

    async fn prepare(&self) -> anyhow::Result<Setup<CommitMode>> {
        for &writers in &self.writers {
            check_counts(&[("--writers", writers)])?;
        }
        check_times(&[("--time", self.time)])?;
        let mut setup = Setup::new(false)?;
        let store = Arc::new(BenchStore::open(self).await?);
        setup.contestants = [ALONE, IN_GROUPS]
            .map(|name| CommitMode {
                name,
                store: Arc::clone(&store),
                failures: Arc::default(),
            })
            .into();
        Ok(setup)
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        for &writers in &self.writers {
            phases.add((), name(writers), move |mode, args| {
                Box::pin(measure(mode, writers, args.time))
            });
        }
    }

    fn settings(&self, setup: &Setup<CommitMode>) -> anyhow::Result<Settings> {
        let store = setup.contestants[0].store.describe();
        let text = format!(
            "{store}\n{}-byte rows, each number measured for {}",
            BODY.len(),
            show_duration(self.time)
        );
        let json = json!({
            "store": store,
            "bodyBytes": BODY.len(),
            "timeMs": millis(self.time),
        });
        Ok(Settings { text, json })
    }

    fn contestants(&self, names: Vec<String>) -> Contestants {
        Contestants::CommitModes(names)
    }

    fn goals(&self) -> Goals {
        Goals {
            reference: ALONE,
            ours: &[IN_GROUPS],
            goals: vec![(name(GOAL_WRITERS), Goal::AtLeastTimes(8.0))],
        }
    }

    async fn clean_up(&self, setup: &Setup<CommitMode>) -> anyhow::Result<()> {
        match &*setup.contestants[0].store {
            // The file goes with its directory, which goes with the value.
            BenchStore::Sqlite(_) => Ok(()),
            BenchStore::Postgres(store) => store.drop_table().await,
        }
    }
}

fn name(writers: usize) -> String {
    match writers {
        1 => "1 writer".to_owned(),
        _ => format!("{writers} writers"),
    }
}

async fn measure(mode: &CommitMode, writers: usize, time: Duration) -> anyhow::Result<Vec<Figure>> {
    let in_group = mode.name == IN_GROUPS;
    let written = Arc::<AtomicU64>::default();
    let write = |_| Write {
        store: Arc::clone(&mode.store),
        in_group,
        written: Arc::clone(&written),
        failures: Arc::clone(&mode.failures),
    };
    let before = mode.store.group_commits()?;
    let measured = Throughput::measure((0..writers).map(write), time, 1).await;
    let commits = mode.store.group_commits()? - before;

    let name = name(writers);
    let mut figures = Figure::rate(&name, Unit::WRITES_PER_SECOND, "write", measured);
    if in_group {
        let mean = written.load(Ordering::Relaxed) as f64 / commits.max(1) as f64;
        let name = format!("  {name}, mean batch");
        figures.push(Figure::new(name, Unit::WRITES, mean));
    }
    Ok(figures)
}

struct Write {
    store: Arc<BenchStore>,
    in_group: bool,
    /// By all writers, also before they are measured.
    written: Arc<AtomicU64>,
    failures: Arc<Failures>,
}

impl Operation for Write {
    async fn run(&mut self) -> usize {
        match self.store.write(self.in_group).await {
            Ok(()) => {
                self.written.fetch_add(1, Ordering::Relaxed);
                1
            }
            Err(error) => {
                self.failures.add("write", &error);
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::tests::{empty, finished};
    use crate::suite;

    async fn measure(line: &str) -> anyhow::Result<serde_json::Value> {
        let directory = std::env::temp_dir();
        let line = format!("store --directory {} {line}", directory.display());
        let report = suite::measure(&parse::<StoreArgs>(&line)).await?;
        Ok(serde_json::to_value(report)?)
    }

    fn mean_batch_of_one_writer(report: &serde_json::Value) -> f64 {
        let mut rows = report["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == "  1 writer, mean batch");
        row.unwrap()["values"][1].as_f64().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lone_writer_on_sqlite_has_every_commit_to_itself() {
        let report = measure("--writers 1 --time 50ms").await.unwrap();
        assert_eq!(mean_batch_of_one_writer(&report), 1.0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn postgres_is_left_without_the_table_of_the_run() {
        let server = wakeline_testbed::Postgres::start().unwrap();
        let line = format!("--store {} --writers 1,4 --time 50ms", server.url());
        let report = measure(&line).await.unwrap();
        assert_eq!(mean_batch_of_one_writer(&report), 1.0);
        let left = "SELECT count(*) FROM pg_tables WHERE tablename = 'bench'";
        assert_eq!(wakeline_testbed::psql(&server.url(), left).unwrap(), "0");
    }

    #[tokio::test]
    async fn another_kind_of_store_is_refused() {
        let error = measure("--store mysql://here/db").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "--store must be `sqlite` or a postgres:// URL"
        );
    }

    #[test]
    fn group_commit_is_judged_beside_a_commit_for_each_write() {
        let figures: &[(&str, Unit, &[f64])] = &[
            ("1 writer", Unit::WRITES_PER_SECOND, &[1_050.0, 1_000.0]),
            ("64 writers", Unit::WRITES_PER_SECOND, &[1_250.0, 9_625.0]),
            ("  64 writers, write p99", Unit::MILLIS, &[60.0, 3.15]),
        ];
        let comparison = empty(&parse::<StoreArgs>("store"), &[ALONE, IN_GROUPS]);
        insta::assert_snapshot!(finished(comparison, figures), @r"
                                                                 a commit for each write                 group commit
        1 writer                                    writes/s                      1,050                 1,000  0.95x
        64 writers                                  writes/s                      1,250                 9,625  7.70x
          write p99                                 ms                            60.00                  3.15 0.052x

        target  64 writers                                 at least 8 times   measured   7.70 times   MISSED by 4 %
        0 of 1 targets met
        ");
    }
}
