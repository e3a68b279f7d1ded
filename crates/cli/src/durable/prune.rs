//! Deleting old executions and instances, in batches.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use wakeline_durable::{InstanceAdmin, admin::DeletedCounts, view::PruneCriteria};

use super::{SchemaArgs, text::print, time::TimeArg};

/// Instances that are deleted per call.
const BATCH: u32 = 100;
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Delete finished executions of instances that continued as new, never the current execution.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    group = ArgGroup::new("criteria").required(true).multiple(true).args(["keep_last", "before"])
)]
pub(crate) struct Prune {
    #[command(subcommand)]
    command: Option<PruneCommand>,
    /// Keep the newest N executions of each instance.
    #[arg(long, value_name = "N")]
    keep_last: Option<u32>,
    /// Only executions that ended before this time, date, or age such as 30d.
    #[arg(long, value_name = "TIME")]
    before: Option<TimeArg>,
    /// Only executions of this instance.
    #[arg(long)]
    instance: Option<String>,
    /// Count what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// None with a subcommand, which has its own.
    #[command(flatten)]
    schema: Option<SchemaArgs>,
}

#[derive(Debug, Subcommand)]
enum PruneCommand {
    /// Delete finished instances, with their sub-orchestrations.
    Instances(Instances),
}

#[derive(Debug, Args)]
struct Instances {
    /// Only instances that ended before this time, date, or age such as 30d.
    #[arg(long, value_name = "TIME")]
    before: TimeArg,
    /// The largest number, without sub-orchestrations; the instances that ended first are deleted
    /// first.
    #[arg(long)]
    limit: Option<u32>,
    /// Count what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl Prune {
    pub(crate) async fn run(self) -> Result<()> {
        match (&self.command, &self.schema) {
            (Some(PruneCommand::Instances(instances)), _) => instances.run().await,
            (None, Some(schema)) => self.executions(schema).await,
            (None, None) => {
                bail!("--database <URL> is missing; it names the database of the workflows")
            }
        }
    }

    async fn executions(&self, schema: &SchemaArgs) -> Result<()> {
        let view = schema.view();
        let criteria = PruneCriteria {
            keep_last: self.keep_last,
            before_ms: self.before.map(|TimeArg(ms)| ms),
        };
        let mut pruning = Pruning {
            admin: if self.dry_run {
                None
            } else {
                Some(schema.admin().await?)
            },
            criteria,
            instances: 0,
            deleted: DeletedCounts::default(),
        };
        let mut progress = Progress::default();
        if let Some(instance) = &self.instance {
            view.instance(instance).await?;
            let executions = view.prunable_of(criteria, instance).await?;
            pruning.prune(instance, executions).await?;
            return print(&pruning.report());
        }
        let (mut after, mut examined) = (String::new(), 0);
        loop {
            let page = view.prunable(criteria, &after).await?;
            examined += page.instances;
            for (instance, executions) in &page.executions {
                pruning.prune(instance, *executions).await?;
                progress.report(|| pruning.report());
            }
            progress.report(|| format!("examined {examined} instances\n"));
            match page.next {
                Some(next) => after = next,
                None => return print(&pruning.report()),
            }
        }
    }
}

struct Pruning {
    /// None in a dry run.
    admin: Option<InstanceAdmin>,
    criteria: PruneCriteria,
    /// The instances that had executions to delete.
    instances: u64,
    deleted: DeletedCounts,
}

impl Pruning {
    async fn prune(&mut self, instance: &str, executions: u64) -> Result<()> {
        if executions == 0 {
            return Ok(());
        }
        self.instances += 1;
        match &self.admin {
            None => self.deleted.executions += executions,
            Some(admin) => self.deleted += admin.prune(instance, self.criteria).await?,
        }
        Ok(())
    }

    fn report(&self) -> String {
        let instances = self.instances;
        let DeletedCounts {
            executions, events, ..
        } = self.deleted;
        if self.admin.is_none() {
            format!("would delete {executions} executions of {instances} instances\n")
        } else {
            format!("deleted {executions} executions of {instances} instances, {events} events\n")
        }
    }
}

impl Instances {
    async fn run(&self) -> Result<()> {
        let view = self.schema.view();
        let TimeArg(before_ms) = self.before;
        if self.dry_run {
            let count = view.count_ended(before_ms, self.limit).await?;
            return print(&format!(
                "would delete {count} instances, with their sub-orchestrations\n"
            ));
        }
        // Fails before anything is deleted if the schema does not exist.
        let mut ids = view.ended(before_ms, self.batch(0)).await?;
        let admin = self.schema.admin().await?;
        let mut progress = Progress::default();
        let (mut roots, mut deleted) = (0, DeletedCounts::default());
        while !ids.is_empty() {
            deleted += admin.delete_ended(&ids, before_ms).await?;
            roots += u32::try_from(ids.len())?;
            progress.report(|| format!("deleted {} instances\n", deleted.instances));
            let next = view.ended(before_ms, self.batch(roots)).await?;
            if next == ids {
                bail!(
                    "deleted {} instances; {:?} and others could not be deleted: try again",
                    deleted.instances,
                    ids[0]
                );
            }
            ids = next;
        }
        print(&format!(
            "deleted {} instances, sub-orchestrations included, {} events\n",
            deleted.instances, deleted.events
        ))
    }

    /// The size of the next batch, when `done` instances have been deleted.
    fn batch(&self, done: u32) -> u32 {
        let left = self.limit.map(|limit| limit.saturating_sub(done));
        left.unwrap_or(BATCH).min(BATCH)
    }
}

/// Reports the progress of a long command on standard error.
#[derive(Default)]
struct Progress {
    reported: Option<Instant>,
}

impl Progress {
    fn report(&mut self, text: impl FnOnce() -> String) {
        // Nothing at first: most commands end sooner.
        let reported = *self.reported.get_or_insert_with(Instant::now);
        if reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Some(Instant::now());
            eprint!("… {}", text());
        }
    }
}
