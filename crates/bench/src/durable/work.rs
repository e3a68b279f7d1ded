//! A runtime with the orchestrations that are timed, which tell when they got where.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::contestant::Contestant;

/// An orchestration that takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const FAN_OUT: usize = 5;

/// Tells when its code begins, and ends.
pub(super) const BEGIN: &str = "Begin";
/// Tells when it has the result of its one activity, and ends.
pub(super) const ONE_ACTIVITY: &str = "OneActivity";
/// Tells when it goes on after a timer of as many milliseconds as its input says.
pub(super) const TIMER: &str = "Timer";
/// Five activities at once, each as long as its input says in milliseconds.
pub(super) const FAN: &str = "Fan";
/// An activity that tells when it begins. Its input is its name for that.
pub(super) const TELL: &str = "Tell";
const SLEEP: &str = "Sleep";

pub(super) struct Work {
    pub(super) client: Client,
    runtime: Arc<Runtime>,
    told: UnboundedReceiver<Told>,
}

#[derive(Debug)]
pub(super) struct Told {
    pub(super) by: String,
    pub(super) at: Instant,
    /// The same moment, to compare with due times.
    pub(super) clock: SystemTime,
}

impl Work {
    /// With so many dispatchers of each kind, and the runtime's other settings as they are.
    pub(super) async fn start(contestant: &Contestant, dispatchers: usize) -> Self {
        let (tell, told) = unbounded_channel();
        let options = RuntimeOptions {
            orchestration_concurrency: dispatchers,
            worker_concurrency: dispatchers,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(
            contestant.provider.clone(),
            activities(&tell),
            orchestrations(&tell),
            options,
        )
        .await;
        Self {
            client: Client::new(contestant.provider.clone()),
            runtime,
            told,
        }
    }

    pub(super) async fn stop(self) {
        let grace = PATIENCE.as_millis() as u64;
        self.runtime.shutdown(Some(grace)).await;
    }

    pub(super) async fn begin(
        &self,
        instance: &str,
        orchestration: &str,
        input: impl Into<String>,
    ) -> anyhow::Result<()> {
        let start = self
            .client
            .start_orchestration(instance, orchestration, input);
        start.await.with_context(|| format!("starting {instance}"))
    }

    /// The next that tells anything.
    pub(super) async fn next(&mut self) -> anyhow::Result<Told> {
        let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        told.context("nothing went on")?
            .context("the runtime is gone")
    }

    /// When this one told.
    pub(super) async fn told_by(&mut self, name: &str) -> anyhow::Result<Instant> {
        loop {
            let told = self.next().await.context(name.to_owned())?;
            if told.by == name {
                return Ok(told.at);
            }
        }
    }

    /// As a client of duroxide waits: it asks again and again.
    pub(super) async fn wait(&self, instance: &str) -> anyhow::Result<()> {
        let wait = self.client.wait_for_orchestration(instance, PATIENCE);
        completed(instance, &wait.await.with_context(|| instance.to_owned())?)
    }
}

pub(super) fn completed(instance: &str, status: &OrchestrationStatus) -> anyhow::Result<()> {
    match status {
        OrchestrationStatus::Completed { .. } => Ok(()),
        OrchestrationStatus::Failed { details, .. } => {
            bail!("{instance} failed: {}", details.display_message())
        }
        other => bail!("{instance} is {other:?}"),
    }
}

fn tells(tell: &UnboundedSender<Told>, by: String) {
    // Nobody listens any more when the phase is over.
    let _ = tell.send(Told {
        by,
        at: Instant::now(),
        clock: SystemTime::now(),
    });
}

fn activities(tell: &UnboundedSender<Told>) -> ActivityRegistry {
    let tell = tell.clone();
    ActivityRegistry::builder()
        .register(TELL, move |_: ActivityContext, name: String| {
            tells(&tell, name);
            async { Ok(String::new()) }
        })
        .register(SLEEP, |_: ActivityContext, millis: String| async move {
            let millis = number(&millis)?;
            if millis > 0 {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            Ok(String::new())
        })
        .build()
}

fn orchestrations(tell: &UnboundedSender<Told>) -> OrchestrationRegistry {
    let [begin, one, timer] = [tell.clone(), tell.clone(), tell.clone()];
    OrchestrationRegistry::builder()
        .register(BEGIN, move |ctx: OrchestrationContext, _: String| {
            tells(&begin, ctx.instance_id());
            async { Ok(String::new()) }
        })
        .register(ONE_ACTIVITY, move |ctx: OrchestrationContext, _: String| {
            let tell = one.clone();
            async move {
                let result = ctx.schedule_activity(SLEEP, "0").await?;
                tells(&tell, ctx.instance_id());
                Ok(result)
            }
        })
        .register(TIMER, move |ctx: OrchestrationContext, millis: String| {
            let tell = timer.clone();
            async move {
                let delay = Duration::from_millis(number(&millis)?);
                ctx.schedule_timer(delay).await;
                tells(&tell, ctx.instance_id());
                Ok(String::new())
            }
        })
        .register(
            FAN,
            |ctx: OrchestrationContext, millis: String| async move {
                let tasks = (0..FAN_OUT).map(|_| ctx.schedule_activity(SLEEP, millis.clone()));
                for result in ctx.join(tasks.collect::<Vec<_>>()).await {
                    result?;
                }
                Ok(String::new())
            },
        )
        .build()
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

/// So that no run falls into step with what polls.
pub(super) async fn pause() {
    let millis = rand::random_range(20..120);
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
