//! Tasks: submitted, claimed, changed and waited for.

use std::sync::atomic::Ordering;

use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{Body, JobsState, header, ok, whole};

impl JobsState {
    pub(super) fn submit(&self, job: &str) -> Response<Body> {
        let task = json!({"id": self.id("t"), "job_name": job, "status": "pending"});
        self.tasks.lock().unwrap().push(task.clone());
        self.changed();
        ok(&task)
    }

    pub(super) async fn claim(&self, head: &Parts) -> Response<Body> {
        let found = || {
            let mut tasks = self.tasks.lock().unwrap();
            let task = tasks.iter_mut().find(|task| task["status"] == "pending")?;
            task["status"] = json!("claimed");
            Some(task.clone())
        };
        let holds =
            header(head, "prefer").is_some() && !self.holds_no_claims.load(Ordering::SeqCst);
        let task = if holds {
            self.held_claims.fetch_add(1, Ordering::SeqCst);
            self.hold(head, found).await
        } else {
            found()
        };
        ok(&json!({"task": task}))
    }

    pub(super) fn change(&self, id: &str, body: &Value) -> Response<Body> {
        if self.refuses_changes.load(Ordering::SeqCst) {
            return whole(StatusCode::CONFLICT, "not now");
        }
        let mut tasks = self.tasks.lock().unwrap();
        let task = tasks.iter_mut().find(|task| task["id"] == id).unwrap();
        let change = (task["status"].as_str(), body["status"].as_str());
        assert!(matches!(
            change,
            (Some("claimed"), Some("running")) | (Some("running"), Some("completed"))
        ));
        task["status"] = body["status"].clone();
        let task = task.clone();
        drop(tasks);
        self.changed();
        ok(&task)
    }

    pub(super) async fn wait_for_task(&self, id: &str, head: &Parts) -> Response<Body> {
        let task = || {
            let tasks = self.tasks.lock().unwrap();
            tasks.iter().find(|task| task["id"] == id).unwrap().clone()
        };
        let ended = || Some(task()).filter(|task| task["status"] == "completed");
        let ended = self.hold(head, ended).await;
        ok(&ended.unwrap_or_else(task))
    }
}
