//! Deleting what is old, in batches, until there is no more of it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use duroxide::providers::{InstanceFilter, ProviderAdmin, PruneOptions};
use wakeline_durable::{PostgresProvider, view::Prunable};

use super::{Place, text::print, when::When};

/// Instances that are deleted between two looks.
const BATCH: u32 = 100;
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Executions that ended, of instances that continued as new. The current one always stays.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    group = ArgGroup::new("what").required(true).multiple(true).args(["keep_last", "before"])
)]
pub(crate) struct Prune {
    #[command(subcommand)]
    command: Option<PruneCommand>,
    /// Keep the last so many executions of each instance.
    #[arg(long, value_name = "N")]
    keep_last: Option<u32>,
    /// Only executions that ended before this: a time, a day, or a while ago such as 30d.
    #[arg(long, value_name = "TIME")]
    before: Option<When>,
    /// Only those of this instance.
    #[arg(long)]
    instance: Option<String>,
    /// Say what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Missing when there is a subcommand, which has its own.
    #[command(flatten)]
    place: Option<Place>,
}

#[derive(Debug, Subcommand)]
enum PruneCommand {
    /// Delete finished instances, with their sub-orchestrations.
    Instances(Instances),
}

#[derive(Debug, Args)]
struct Instances {
    /// Those that ended before this: a time, a day, or a while ago such as 30d.
    #[arg(long, value_name = "TIME")]
    before: When,
    /// At most so many, not counting sub-orchestrations; those that ended first go first.
    #[arg(long)]
    limit: Option<u32>,
    /// Say what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

impl Prune {
    pub(crate) async fn run(self) -> Result<()> {
        match (&self.command, &self.place) {
            (Some(PruneCommand::Instances(instances)), _) => instances.run().await,
            (None, Some(place)) => self.executions(place).await,
            (None, None) => bail!("say where: --database <URL> is missing"),
        }
    }

    async fn executions(&self, place: &Place) -> Result<()> {
        let view = place.view();
        let what = Prunable {
            keep_last: self.keep_last,
            before_ms: self.before.map(|When(ms)| ms),
        };
        let mut pruning = Pruning {
            provider: if self.dry_run {
                None
            } else {
                Some(place.provider().await?)
            },
            what,
            done: Pruned::default(),
        };
        let mut progress = Progress::default();
        if let Some(instance) = &self.instance {
            view.instance(instance).await?;
            let executions = view.prunable_of(what, instance).await?;
            pruning.prune(instance, executions).await?;
            return print(&pruning.report());
        }
        let (mut after, mut looked_at) = (String::new(), 0);
        loop {
            let looked = view.prunable(what, &after).await?;
            looked_at += looked.instances;
            for (instance, executions) in &looked.executions {
                pruning.prune(instance, *executions).await?;
                progress.tell(|| pruning.report());
            }
            progress.tell(|| format!("looked at {looked_at} instances\n"));
            match looked.next {
                Some(next) => after = next,
                None => return print(&pruning.report()),
            }
        }
    }
}

struct Pruning {
    /// Missing in a dry run.
    provider: Option<PostgresProvider>,
    what: Prunable,
    done: Pruned,
}

#[derive(Default)]
struct Pruned {
    instances: u64,
    executions: u64,
    events: u64,
}

impl Pruning {
    async fn prune(&mut self, instance: &str, executions: u64) -> Result<()> {
        if executions == 0 {
            return Ok(());
        }
        self.done.instances += 1;
        let Some(provider) = &self.provider else {
            self.done.executions += executions;
            return Ok(());
        };
        let options = PruneOptions {
            keep_last: self.what.keep_last,
            completed_before: self.what.before_ms,
        };
        let pruned = provider.prune_executions(instance, options).await?;
        self.done.executions += pruned.executions_deleted;
        self.done.events += pruned.events_deleted;
        Ok(())
    }

    fn report(&self) -> String {
        let Pruned {
            instances,
            executions,
            events,
        } = &self.done;
        if self.provider.is_none() {
            format!("would delete {executions} executions of {instances} instances\n")
        } else {
            format!("deleted {executions} executions of {instances} instances, {events} events\n")
        }
    }
}

impl Instances {
    async fn run(&self) -> Result<()> {
        let view = self.place.view();
        let When(before_ms) = self.before;
        if self.dry_run {
            let count = view.count_ended(before_ms, self.limit).await?;
            return print(&format!(
                "would delete {count} instances, with their sub-orchestrations\n"
            ));
        }
        // Before anything is deleted: that the schema is there.
        let mut ids = view.ended(before_ms, self.batch(0)).await?;
        let provider = self.place.provider().await?;
        let mut progress = Progress::default();
        let (mut roots, mut deleted, mut events) = (0, 0, 0);
        while !ids.is_empty() {
            let filter = InstanceFilter {
                instance_ids: Some(ids.clone()),
                completed_before: Some(before_ms),
                limit: Some(BATCH),
            };
            let result = provider.delete_instance_bulk(filter).await?;
            roots += u32::try_from(ids.len())?;
            deleted += result.instances_deleted;
            events += result.events_deleted;
            progress.tell(|| format!("deleted {deleted} instances\n"));
            let next = view.ended(before_ms, self.batch(roots)).await?;
            if next == ids {
                bail!(
                    "deleted {deleted} instances; {:?} and others stay: try again",
                    ids[0]
                );
            }
            ids = next;
        }
        print(&format!(
            "deleted {deleted} instances, sub-orchestrations among them, {events} events\n"
        ))
    }

    /// How many next, when so many are done.
    fn batch(&self, done: u32) -> u32 {
        let left = self.limit.map(|limit| limit.saturating_sub(done));
        left.unwrap_or(BATCH).min(BATCH)
    }
}

/// Says on standard error how far a long command is, now and then.
#[derive(Default)]
struct Progress {
    told: Option<Instant>,
}

impl Progress {
    fn tell(&mut self, text: impl FnOnce() -> String) {
        // Nothing in the first moments: most are done by then.
        let told = *self.told.get_or_insert_with(Instant::now);
        if told.elapsed() >= TELL_EVERY {
            self.told = Some(Instant::now());
            eprint!("… {}", text());
        }
    }
}
