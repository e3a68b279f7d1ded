//! Jobs of `@internal`: submitted through the routes, done by the server.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wakeline_jobs::{
    internal::{InternalJob, Registry},
    job::{JobRegistration, NewJob},
    name::FullName,
    service::Settings,
    store::Store,
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    database::Database,
    node::{Node, Wiring, patient},
};

/// A job that waits, fails or returns as its payload says.
#[derive(Debug)]
struct ObeyJob(Arc<Semaphore>);

const SCHEMA: &str = r#"{"type":"object"}"#;

impl InternalJob for ObeyJob {
    fn category(&self) -> &str {
        "modifiers"
    }

    fn name(&self) -> &str {
        "Obey"
    }

    fn schema(&self) -> Value {
        serde_json::from_str(SCHEMA).unwrap()
    }

    fn run(&self, payload: Value) -> BoxFuture<'_, Result<(), String>> {
        async move {
            match payload["do"].as_str() {
                Some("wait") => {
                    self.0.acquire().await.unwrap().forget();
                    Ok(())
                }
                Some("fail") => Err("no\0pe".to_owned()),
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

struct Fixture {
    node: Node,
    /// A permit lets a waiting task continue.
    gate: Arc<Semaphore>,
}

impl Fixture {
    async fn new(database: &Database, settings: Settings) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let internal = Registry::new().with_job(Arc::new(ObeyJob(gate.clone())));
        let wiring = Wiring {
            settings,
            internal: internal.unwrap(),
            files: None,
        };
        let node = Node::wired(database, wiring).await;
        node.run_internals().await;
        eventually("the job to be offered", async || {
            let job = node
                .store
                .job(FullName::new("@internal", "modifiers", "Obey"));
            job.await
                .unwrap()
                .is_some_and(|job| !job.workers.is_empty())
        })
        .await;
        Self { node, gate }
    }

    /// Submits a task as Ben, and returns its path.
    async fn submit(&self, what: &str) -> String {
        let body = json!({ "payload": { "do": what } }).to_string();
        let path = "POST /v1/joblib/rooms/r/tasks/@internal:modifiers:Obey";
        let submitted = self.node.send(path, &self.node.ben, &[], body).await;
        assert_eq!(submitted.status, StatusCode::ACCEPTED, "{submitted:?}");
        submitted.header("location").unwrap().to_owned()
    }

    async fn task(&self, task: &str, prefer: &str) -> Value {
        let what = format!("GET {task}");
        let headers = [("prefer", prefer)];
        let answer = self.node.send(&what, &self.node.ben, &headers, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }

    /// The status and the error of the task, once it has ended.
    async fn ended(&self, task: &str) -> (String, Value) {
        let task = self.task(task, "wait=9").await;
        (
            task["status"].as_str().unwrap().to_owned(),
            task["error"].clone(),
        )
    }

    async fn is_running(&self, task: &str) {
        eventually("the task to run", async || {
            self.task(task, "wait=0").await["status"] == "running"
        })
        .await;
    }
}

fn completed() -> (String, Value) {
    ("completed".to_owned(), Value::Null)
}

pub(crate) async fn the_server_works_on_its_own_jobs(database: Database) {
    let fixture = Fixture::new(&database, patient()).await;
    let (waiting, failing) = (fixture.submit("wait").await, fixture.submit("fail").await);
    let failed = ("failed".to_owned(), json!("no\u{fffd}pe"));
    assert_eq!(fixture.ended(&failing).await, failed);
    fixture.is_running(&waiting).await;
    fixture.gate.add_permits(1);
    assert_eq!(fixture.ended(&waiting).await, completed());
}

pub(crate) async fn an_internal_task_over_its_time_fails(database: Database) {
    let settings = Settings {
        internal_timeout: Duration::from_millis(50),
        ..patient()
    };
    let fixture = Fixture::new(&database, settings).await;
    let task = fixture.submit("wait").await;
    let failed = ("failed".to_owned(), json!("Internal worker timeout"));
    assert_eq!(fixture.ended(&task).await, failed);
    assert_eq!(fixture.ended(&fixture.submit("").await).await, completed());
}

/// Cancels the task in the moment of its claim.
const CANCELLED: (&str, &str) = (
    "CREATE TRIGGER cancelled AFTER UPDATE OF status ON jobs_task
    WHEN NEW.status = 1 AND NEW.payload LIKE '%cancel%' BEGIN
        UPDATE jobs_task SET status = 5, completed_at = 1 WHERE id = NEW.id;
    END",
    "CREATE FUNCTION wakeline.cancelled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE wakeline.jobs_task SET status = 5, completed_at = 1 WHERE id = NEW.id;
        RETURN NEW;
    END $$;
    CREATE TRIGGER cancelled AFTER UPDATE OF status ON wakeline.jobs_task FOR EACH ROW
    WHEN (NEW.status = 1 AND NEW.payload LIKE '%cancel%') EXECUTE FUNCTION wakeline.cancelled()",
);

pub(crate) async fn an_internal_task_cancelled_before_it_runs_is_skipped(database: Database) {
    database.run(CANCELLED.0, CANCELLED.1).await;
    let fixture = Fixture::new(&database, patient()).await;
    let waiting = fixture.submit("wait").await;
    fixture.is_running(&waiting).await;
    let cancelled = fixture.submit("cancel").await;
    assert_eq!(fixture.ended(&cancelled).await.0, "cancelled");
    assert_eq!(fixture.ended(&fixture.submit("").await).await, completed());
    fixture.gate.add_permits(1);
    assert_eq!(
        fixture.ended(&waiting).await,
        completed(),
        "its worker is still there"
    );
}

const REFUSED: (&str, &str) = (
    "CREATE TRIGGER refused BEFORE UPDATE OF status ON jobs_task
    WHEN NEW.status = 1 AND NEW.payload LIKE '%refuse%' BEGIN
        SELECT RAISE(ABORT, 'refused');
    END",
    "CREATE FUNCTION wakeline.refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'refused';
    END $$;
    CREATE TRIGGER refused BEFORE UPDATE OF status ON wakeline.jobs_task FOR EACH ROW
    WHEN (NEW.status = 1 AND NEW.payload LIKE '%refuse%') EXECUTE FUNCTION wakeline.refused()",
);
const LET_GO: (&str, &str) = (
    "DROP TRIGGER refused",
    "DROP TRIGGER refused ON wakeline.jobs_task",
);

pub(crate) async fn a_failed_claim_of_an_internal_task_is_repeated(database: Database) {
    database.run(REFUSED.0, REFUSED.1).await;
    let fixture = Fixture::new(&database, patient()).await;
    let waiting = fixture.submit("wait").await;
    fixture.is_running(&waiting).await;
    let refused = fixture.submit("refuse").await;
    // A successful claim would have been done by now.
    let pending = fixture.task(&refused, "wait=1").await;
    assert_eq!(pending["status"], "pending");
    database.run(LET_GO.0, LET_GO.1).await;
    assert_eq!(fixture.ended(&refused).await, completed());
    fixture.gate.add_permits(1);
    assert_eq!(
        fixture.ended(&waiting).await,
        completed(),
        "its worker is still there"
    );
}

pub(crate) async fn a_new_schema_of_an_internal_job_replaces_the_old_one(database: Database) {
    let stores = database.stores().await;
    let before = Node::new(&database).await;
    let me = before
        .send("GET /v1/auth/users/me", &before.anna, &[], "")
        .await;
    let earlier = NewJob {
        name: FullName::new("@internal", "modifiers", "Obey"),
        schema: r#"{"properties":{}}"#.to_owned(),
        max_retries: 0,
        user: me.id(),
        worker: None,
    };
    let store: &dyn Store = &*stores.store;
    let registered = store.register_job(earlier.clone()).done().await;
    assert!(matches!(registered, JobRegistration::Done { .. }));
    let fixture = Fixture::new(&database, patient()).await;
    eventually("the schema of this version", async || {
        let job = store.job(earlier.name.clone()).await.unwrap().unwrap();
        job.schema == SCHEMA
    })
    .await;
    assert_eq!(fixture.ended(&fixture.submit("").await).await, completed());
}
