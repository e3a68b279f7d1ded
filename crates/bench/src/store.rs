//! `bench store`: what sharing commits gains over a commit for every call.
//!
//! Both ways run one after the other on the same disk, with the same statement, the same
//! connections and the store's own durability.

mod load;
mod postgres;
mod report;
mod sqlite;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::args::{check_counts, check_times};
use crate::units::parse_duration;
use load::Load;
use postgres::PostgresStore;
use report::{Report, Row};
use sqlite::SqliteStore;

/// What each operation writes.
const BODY: [u8; 100] = [0x57; 100];

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

pub(crate) async fn run(args: StoreArgs) -> anyhow::Result<()> {
    let report = measure(&args).await?;
    crate::report::print(&report, args.json, None)
}

async fn measure(args: &StoreArgs) -> anyhow::Result<Report> {
    for &writers in &args.writers {
        check_counts(&[("--writers", writers)])?;
    }
    check_times(&[("--time", args.time)])?;
    match &*args.store {
        "sqlite" => measure_on(&SqliteStore::open(&args.directory)?, args).await,
        url => {
            let scheme = url.split("://").next().unwrap_or_default();
            ensure!(
                matches!(scheme, "postgres" | "postgresql"),
                "--store must be `sqlite` or a postgres:// URL"
            );
            measure_on(&PostgresStore::open(url).await?, args).await
        }
    }
}

async fn measure_on(store: &impl Store, args: &StoreArgs) -> anyhow::Result<Report> {
    let rows = rows(store, args).await;
    // The table is removed also after a run that has failed.
    let closed = store.close().await;
    let report = Report::new(store.describe(), BODY.len(), args.time, rows?);
    closed?;
    Ok(report)
}

async fn rows(store: &impl Store, args: &StoreArgs) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &writers in &args.writers {
        let before = store.commits()?;
        let grouped = store.grouped(writers, args.time).await?;
        let commits = store.commits()? - before;
        let single = store.single(writers, args.time).await?;
        rows.push(Row::new(writers, &grouped, commits, &single));
    }
    Ok(rows)
}

/// A store with a table for the run.
trait Store {
    /// By group commit.
    async fn grouped(&self, writers: usize, time: Duration) -> anyhow::Result<Load>;
    /// With a commit for every call.
    async fn single(&self, writers: usize, time: Duration) -> anyhow::Result<Load>;
    /// How many group commits there were.
    fn commits(&self) -> anyhow::Result<u64>;
    fn describe(&self) -> String;
    /// Removes the table.
    async fn close(&self) -> anyhow::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(store: &str, writers: &[usize]) -> StoreArgs {
        StoreArgs {
            store: store.into(),
            directory: std::env::temp_dir(),
            writers: writers.into(),
            time: Duration::from_millis(50),
            json: false,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lone_writer_on_sqlite_has_every_commit_to_itself() {
        let report = measure(&args("sqlite", &[1])).await.unwrap();
        assert_eq!(report.rows[0].mean_batch, 1.0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn postgres_is_left_without_the_table_of_the_run() {
        let server = wakeline_testbed::Postgres::start().unwrap();
        let report = measure(&args(&server.url(), &[1, 4])).await.unwrap();
        assert_eq!(report.rows[0].mean_batch, 1.0);
        let left = "SELECT count(*) FROM pg_tables WHERE tablename = 'bench'";
        assert_eq!(wakeline_testbed::psql(&server.url(), left).unwrap(), "0");
    }

    #[tokio::test]
    async fn another_kind_of_store_is_refused() {
        let error = measure(&args("mysql://here/db", &[1])).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "--store must be `sqlite` or a postgres:// URL"
        );
    }
}
