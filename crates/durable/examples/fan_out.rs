//! A workflow that has many activities done at once and adds up what they answer.
//!
//! ```console
//! cargo run -p wakeline-durable --example fan_out -- postgres://localhost/app
//! ```

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    runtime::{Runtime, RuntimeOptions, registry::ActivityRegistry},
};
use wakeline_durable::PostgresProvider;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: fan_out <URL>")?;
    let provider = PostgresProvider::connect(&url).await?;

    let activities = ActivityRegistry::builder()
        .register("Square", |_: ActivityContext, number: String| async move {
            let number: u64 = number.parse().map_err(|_| "not a number".to_owned())?;
            Ok((number * number).to_string())
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register(
            "SumOfSquares",
            |context: OrchestrationContext, many: String| async move {
                let many: u64 = many.parse().map_err(|_| "not a number".to_owned())?;
                let squares = (1..=many)
                    .map(|number| context.schedule_activity("Square", number.to_string()))
                    .collect();
                let mut sum = 0;
                for square in context.join(squares).await {
                    sum += square?.parse::<u64>().map_err(|error| error.to_string())?;
                }
                Ok(sum.to_string())
            },
        )
        .build();
    let options = RuntimeOptions {
        worker_concurrency: 8,
        ..RuntimeOptions::default()
    };
    let store = Arc::new(provider.clone());
    let runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;

    let instance = format!("squares-{}", uuid::Uuid::now_v7());
    let client = Client::new(store);
    client
        .start_orchestration(&instance, "SumOfSquares", "20")
        .await?;
    let ended = provider
        .wait_for_orchestration(&instance, Duration::from_secs(60))
        .await?;
    println!("{instance}: {ended:?}");
    runtime.shutdown(None).await;
    Ok(())
}
