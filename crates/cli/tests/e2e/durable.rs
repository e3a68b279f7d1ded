//! Durable workflows, run by the real runtime, as the command line and the server show them.

mod commands;
mod tidy;
mod view;

use std::{process::Output, sync::Arc};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    runtime::{Runtime, registry::ActivityRegistry},
};
use serde_json::Value;
use wakeline_durable::PostgresProvider;
use wakeline_testkit::PostgresDatabase;

use crate::server::{PATIENCE, until, wakeline};

/// With what a URL must have encoded.
const CHILD: &str = "family/child ü";

/// A database with workflows in the schema `durable`.
struct Workflows {
    provider: PostgresProvider,
    runtime: Arc<Runtime>,
    url: String,
    _database: Option<PostgresDatabase>,
}

impl Workflows {
    async fn new() -> Self {
        let database = PostgresDatabase::new(&[]).await;
        let workflows = Self::at(database.url()).await;
        Self {
            _database: Some(database),
            ..workflows
        }
    }

    async fn at(url: String) -> Self {
        let provider = PostgresProvider::connect(&url).await.unwrap();
        let store = Arc::new(provider.clone());
        let runtime = Runtime::start_with_store(store, activities(), orchestrations()).await;
        Self {
            provider,
            runtime,
            url,
            _database: None,
        }
    }

    /// A database with one workflow of each kind, created in this order.
    async fn with_one_of_each() -> Self {
        let workflows = Self::new().await;
        workflows.run("greet", "Greet", "Ada").await;
        workflows.run("family", "Family", "Bob").await;
        workflows.run("broken", "Broken", "").await;
        workflows.run("again", "Again", "1").await;
        workflows.start("waiting", "Waits", "").await;
        workflows.until_running("waiting").await;
        workflows
    }

    fn client(&self) -> Client {
        Client::new(Arc::new(self.provider.clone()))
    }

    async fn start(&self, instance: &str, name: &str, input: &str) {
        let client = self.client();
        let started = client.start_orchestration(instance, name, input);
        started.await.unwrap();
    }

    async fn ended(&self, instance: &str) -> OrchestrationStatus {
        let ended = self.provider.wait_for_orchestration(instance, PATIENCE);
        ended.await.unwrap()
    }

    async fn run(&self, instance: &str, name: &str, input: &str) {
        self.start(instance, name, input).await;
        self.ended(instance).await;
    }

    async fn until_running(&self, instance: &str) {
        until("a workflow that runs", async || {
            let status = self.client().get_orchestration_status(instance).await;
            matches!(status.unwrap(), OrchestrationStatus::Running { .. }).then_some(())
        })
        .await;
    }

    /// Runs the command on this database, to its end.
    async fn call(&self, arguments: &[&str]) -> Output {
        let arguments = [&["durable"], arguments].concat();
        let mut command = wakeline(&arguments);
        command.env("WAKELINE_DURABLE_DATABASE", &self.url);
        let run = tokio::task::spawn_blocking(move || command.output());
        run.await.unwrap().expect("the command runs")
    }

    /// The output of a command that succeeds.
    async fn text(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments).await;
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {log}");
        timeless(&String::from_utf8(output.stdout).unwrap())
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let output = self.call(&[arguments, &["--json"]].concat()).await;
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {log}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The exit code and the error text of a command that fails.
    async fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments).await;
        let code = output.status.code().unwrap();
        assert_ne!(code, 0, "{arguments:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        format!("{code} {}", log.lines().next().unwrap_or_default())
    }
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move {
            Ok(format!("Hello, {name}!"))
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register(
            "Greet",
            |context: OrchestrationContext, name: String| async move {
                context.set_custom_status("greeting");
                context.set_kv_value("language", "en");
                context.schedule_activity("Greet", name).await
            },
        )
        .register(
            "Family",
            |context: OrchestrationContext, name: String| async move {
                context
                    .schedule_sub_orchestration_with_id("Greet", CHILD, name)
                    .await
            },
        )
        .register("Broken", |_: OrchestrationContext, _: String| async move {
            Err("no such customer".to_owned())
        })
        .register(
            "Again",
            |context: OrchestrationContext, turn: String| async move {
                let turn: u32 = turn.parse().map_err(|_| "no number".to_owned())?;
                if turn < 4 {
                    return context.continue_as_new((turn + 1).to_string()).await;
                }
                Ok(format!("turn {turn}"))
            },
        )
        .register(
            "Waits",
            |context: OrchestrationContext, _: String| async move {
                Ok(context.schedule_wait("go").await)
            },
        )
        .build()
}

/// Replaces the times, which differ in every run, before a comparison with a snapshot.
fn timeless(text: &str) -> String {
    let forms = [
        "0000-00-00T00:00:00Z",
        "0000-00-00T00:00:00.000Z",
        "0000-00-00T00:00:00.000000Z",
    ];
    let is_time = |word: &str| {
        let form: String = word
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        forms.contains(&form.as_str()) || form.ends_with("_ms=0000000000000")
    };
    let line = |line: &str| {
        let words = line.split(' ');
        let words = words.map(|word| if is_time(word) { "<time>" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
