//! Timers that two processes share: whichever is free serves the next. Nobody polls; the process
//! that starts the workflows runs none of them and is woken when each has ended.
//!
//! ```console
//! cargo run -p wakeline-durable --example timers_two_processes -- postgres://localhost/app
//! ```
//!
//! It starts itself twice more, as the two processes.

use std::{
    error::Error,
    io::Read,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    runtime::{Runtime, registry::ActivityRegistry},
};
use wakeline_durable::PostgresProvider;

const TIMERS: u64 = 12;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("usage: timers_two_processes <URL>")?;
    match arguments.next() {
        Some(name) => serve(&url, name).await,
        None => lead(&url).await,
    }
}

/// Starts the processes and the workflows, and waits for these.
async fn lead(url: &str) -> Result<(), Box<dyn Error>> {
    // Connected first, so that the schema is there when the processes look for it.
    let provider = PostgresProvider::connect(url).await?;
    let start = |name: &str| {
        Command::new(std::env::current_exe()?)
            .args([url, name])
            .stdin(Stdio::piped())
            .spawn()
    };
    let mut processes = [start("one")?, start("two")?];

    let client = Client::new(Arc::new(provider.clone()));
    let run = uuid::Uuid::now_v7();
    let instance = |timer: u64| format!("timer-{run}-{timer}");
    for timer in 1..=TIMERS {
        let due = now_ms() + 1_000 + 100 * timer;
        let input = format!("{timer} {due}");
        client
            .start_orchestration(instance(timer), "Timer", input)
            .await?;
    }
    for timer in 1..=TIMERS {
        provider
            .wait_for_orchestration(&instance(timer), Duration::from_secs(60))
            .await?;
    }
    for process in &mut processes {
        // The end of its input tells it to stop.
        drop(process.stdin.take());
        process.wait()?;
    }
    println!("all {TIMERS} timers were served");
    Ok(())
}

/// Runs workflows until the input ends.
async fn serve(url: &str, name: String) -> Result<(), Box<dyn Error>> {
    let provider = PostgresProvider::connect(url).await?;
    let activities = ActivityRegistry::builder()
        .register("Ring", move |_: ActivityContext, timer: String| {
            let name = name.clone();
            async move {
                let (timer, due) = parse(&timer)?;
                let late = now_ms().saturating_sub(due);
                println!("process {name} served timer {timer}, {late} ms after it was due");
                Ok(String::new())
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register(
            "Timer",
            |context: OrchestrationContext, timer: String| async move {
                let (_, due) = parse(&timer)?;
                let now = context.utc_now().await?;
                let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
                let left = Duration::from_millis(due).saturating_sub(now);
                context.schedule_timer(left).await;
                context.schedule_activity("Ring", timer).await
            },
        )
        .build();
    let runtime = Runtime::start_with_store(Arc::new(provider), activities, orchestrations).await;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    runtime.shutdown(None).await;
    Ok(())
}

/// The number of a timer and when it is due.
fn parse(timer: &str) -> Result<(u64, u64), String> {
    let (number, due) = timer.split_once(' ').ok_or("not two numbers")?;
    let parse = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
    Ok((parse(number)?, parse(due)?))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
