//! A duroxide runtime with orchestrations to run.

use std::{ops::Range, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    runtime::{Runtime, RuntimeOptions, registry::ActivityRegistry},
};
use wakeline_durable::PostgresProvider;

pub(crate) struct TestRuntime(Arc<Runtime>);

impl TestRuntime {
    pub(crate) async fn start(provider: &PostgresProvider, options: RuntimeOptions) -> Self {
        let activities = ActivityRegistry::builder()
            .register("Same", |_: ActivityContext, input: String| async move {
                Ok(input)
            })
            .register("Double", |_: ActivityContext, input: String| async move {
                let number: u64 = input.parse().map_err(|_| "no number")?;
                Ok((number * 2).to_string())
            })
            .build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("Echo", echo)
            .register("Await", await_event)
            .register("Sum", sum)
            .build();
        let provider = Arc::new(provider.clone());
        Self(Runtime::start_with_options(provider, activities, orchestrations, options).await)
    }

    pub(crate) async fn end(self) {
        self.0.shutdown(Some(5_000)).await;
    }
}

/// Returns its input, as the result, a custom status and a value.
async fn echo(context: OrchestrationContext, input: String) -> Result<String, String> {
    context.set_custom_status(input.clone());
    context.set_kv_value("key", input.clone());
    context.schedule_activity("Same", input).await
}

async fn await_event(context: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(context.schedule_wait("go").await)
}

/// Twice the sum of the numbers up to its input: two activities at once, a timer, and the rest one
/// after the other.
async fn sum(context: OrchestrationContext, input: String) -> Result<String, String> {
    let most: u64 = input.parse().map_err(|_| "no number")?;
    let first = (1..=most.min(2)).map(|n| context.schedule_activity("Double", n.to_string()));
    let mut sum = 0;
    for doubled in context.join(first.collect()).await {
        sum += doubled?.parse::<u64>().map_err(|_| "no number")?;
    }
    context.schedule_timer(Duration::from_millis(300)).await;
    for number in 3..=most {
        let doubled = context.schedule_activity("Double", number.to_string());
        sum += doubled.await?.parse::<u64>().map_err(|_| "no number")?;
    }
    Ok(sum.to_string())
}

/// The largest number that the orchestrations of a test add.
const MOST: u64 = 4;

fn name(number: usize) -> String {
    format!("sum {number}")
}

/// Starts so many orchestrations.
pub(crate) async fn start_sums(provider: &PostgresProvider, numbers: Range<usize>) {
    let client = Client::new(Arc::new(provider.clone()));
    for number in numbers {
        let sent = client
            .start_orchestration(&name(number), "Sum", MOST.to_string())
            .await;
        sent.expect("it can be sent");
    }
}

/// Asserts that all orchestrations have the right result.
pub(crate) async fn all_add_up(provider: &PostgresProvider, count: usize, within: Duration) {
    let deadline = tokio::time::Instant::now() + within;
    let mut wrong = Vec::new();
    for number in 0..count {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        let ended = provider
            .wait_for_orchestration(&name(number), left.max(Duration::from_millis(1)))
            .await;
        match ended {
            Ok(OrchestrationStatus::Completed { output, .. })
                if output == (MOST * (MOST + 1)).to_string() => {}
            other => wrong.push((number, other)),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:?}", wrong.len());
}
