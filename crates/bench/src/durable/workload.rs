//! A runtime with the orchestrations that are timed. They send a signal when they get to a point.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::measured_provider::MeasuredProvider;
use crate::load::random_pause;

/// An orchestration that takes longer has failed.
pub(super) const ORCHESTRATION_TIMEOUT: Duration = Duration::from_secs(60);
const FAN_OUT: usize = 5;

/// An orchestration that sends a signal when its code begins, and ends.
pub(super) const BEGIN: &str = "Begin";
/// One that sends a signal when it has the result of its one activity, and ends.
pub(super) const ONE_ACTIVITY: &str = "OneActivity";
/// One that sends a signal after a timer of as many milliseconds as its input says.
pub(super) const TIMER: &str = "Timer";
/// One of five activities at once, each of as many milliseconds as its input says.
pub(super) const FAN: &str = "Fan";
/// An activity that sends a signal when it begins. Its input is the sender of the signal.
pub(super) const SIGNAL: &str = "Tell";
const SLEEP: &str = "Sleep";

pub(super) struct Workload {
    pub(super) client: Client,
    runtime: Arc<Runtime>,
    signals: UnboundedReceiver<Signal>,
}

#[derive(Debug)]
pub(super) struct Signal {
    /// The name of the orchestration or activity.
    pub(super) sender: String,
    pub(super) at: Instant,
    /// The same moment, to compare with the times at which timers are due.
    pub(super) clock: SystemTime,
}

impl Workload {
    /// With so many dispatchers of each kind, and the runtime's other settings as they are.
    pub(super) async fn start(provider: &MeasuredProvider, dispatchers: usize) -> Self {
        let (sender, signals) = unbounded_channel();
        let options = RuntimeOptions {
            orchestration_concurrency: dispatchers,
            worker_concurrency: dispatchers,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(
            provider.inner.clone(),
            activities(&sender),
            orchestrations(&sender),
            options,
        )
        .await;
        Self {
            client: Client::new(provider.inner.clone()),
            runtime,
            signals,
        }
    }

    pub(super) async fn stop(self) {
        let grace = ORCHESTRATION_TIMEOUT.as_millis() as u64;
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

    pub(super) async fn next(&mut self) -> anyhow::Result<Signal> {
        let signal = tokio::time::timeout(ORCHESTRATION_TIMEOUT, self.signals.recv()).await;
        signal
            .context("no signal came")?
            .context("the runtime is gone")
    }

    /// When the signal of this sender came; passes over all others.
    pub(super) async fn signal_from(&mut self, name: &str) -> anyhow::Result<Instant> {
        loop {
            let signal = self.next().await.context(name.to_owned())?;
            if signal.sender == name {
                return Ok(signal.at);
            }
        }
    }

    /// Waits as duroxide's own client does, which polls.
    pub(super) async fn wait(&self, instance: &str) -> anyhow::Result<()> {
        let wait = self
            .client
            .wait_for_orchestration(instance, ORCHESTRATION_TIMEOUT);
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

fn send_signal(signals: &UnboundedSender<Signal>, sender: String) {
    // The receiver is gone when the phase is over.
    let _ = signals.send(Signal {
        sender,
        at: Instant::now(),
        clock: SystemTime::now(),
    });
}

fn activities(signals: &UnboundedSender<Signal>) -> ActivityRegistry {
    let signals = signals.clone();
    ActivityRegistry::builder()
        .register(SIGNAL, move |_: ActivityContext, name: String| {
            send_signal(&signals, name);
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

fn orchestrations(signals: &UnboundedSender<Signal>) -> OrchestrationRegistry {
    let [begin, one, timer] = [signals.clone(), signals.clone(), signals.clone()];
    OrchestrationRegistry::builder()
        .register(BEGIN, move |ctx: OrchestrationContext, _: String| {
            send_signal(&begin, ctx.instance_id());
            async { Ok(String::new()) }
        })
        .register(ONE_ACTIVITY, move |ctx: OrchestrationContext, _: String| {
            let signals = one.clone();
            async move {
                let result = ctx.schedule_activity(SLEEP, "0").await?;
                send_signal(&signals, ctx.instance_id());
                Ok(result)
            }
        })
        .register(TIMER, move |ctx: OrchestrationContext, millis: String| {
            let signals = timer.clone();
            async move {
                let delay = Duration::from_millis(number(&millis)?);
                ctx.schedule_timer(delay).await;
                send_signal(&signals, ctx.instance_id());
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

pub(super) async fn pause() {
    random_pause(20..120).await;
}
