//! One workflow, one activity, and a wait for the result that is woken.
//!
//! ```console
//! cargo run -p wakeline-durable --example hello -- postgres://localhost/app
//! ```

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    runtime::{Runtime, registry::ActivityRegistry},
};
use wakeline_durable::PostgresProvider;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: hello <URL>")?;
    let provider = PostgresProvider::connect(&url).await?;

    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move {
            Ok(format!("Hello, {name}!"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register(
            "Hello",
            |context: OrchestrationContext, name: String| async move {
                context.schedule_activity("Greet", name).await
            },
        )
        .build();
    let store = Arc::new(provider.clone());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let instance = format!("hello-{}", uuid::Uuid::now_v7());
    let client = Client::new(store);
    client
        .start_orchestration(&instance, "Hello", "world")
        .await?;
    let ended = provider
        .wait_for_orchestration(&instance, Duration::from_secs(60))
        .await?;
    println!("{instance}: {ended:?}");
    runtime.shutdown(None).await;
    Ok(())
}
