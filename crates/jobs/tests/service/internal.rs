//! Providers of `@internal`, read through the routes.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::StatusCode;
use serde_json::{Value, json};
use wakeline_jobs::{
    internal::{Failure, InternalProvider, Registry},
    job::NewJob,
    name::FullName,
    provider::NewProvider,
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    database::Database,
    node::{Node, OneNode, Wiring},
};

/// A provider that echoes its parameter `say`.
#[derive(Debug)]
struct Echo {
    name: &'static str,
    superusers_only: bool,
}

impl InternalProvider for Echo {
    fn category(&self) -> &str {
        "own"
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema(&self) -> Value {
        json!({ "properties": { "say": { "type": "string" } }, "additionalProperties": false })
    }

    fn content_type(&self) -> &str {
        "text/plain"
    }

    fn superusers_only(&self) -> bool {
        self.superusers_only
    }

    fn read(&self, params: BTreeMap<String, String>) -> BoxFuture<'_, Result<Bytes, Failure>> {
        async move {
            let said = params.get("say").cloned();
            said.map(Bytes::from)
                .ok_or_else(|| Failure::new("say: what?"))
        }
        .boxed()
    }
}

const CLOSED: &str = "GET /v1/joblib/rooms/r/providers/@internal:own:Closed";
const OPEN: &str = "GET /v1/joblib/rooms/r/providers/@internal:own:Open";

/// A node with an internal provider for superusers and one for all users, and a superuser's token.
async fn node(database: &Database) -> (Node, String) {
    let closed = Echo {
        name: "Closed",
        superusers_only: true,
    };
    let open = Echo {
        name: "Open",
        superusers_only: false,
    };
    let internal = Registry::new().with_provider(Arc::new(closed)).unwrap();
    let wiring = Wiring {
        internal: internal.with_provider(Arc::new(open)).unwrap(),
        ..Wiring::default()
    };
    let node = Node::wired(database, wiring).await;
    node.run_internals().await;
    let names = ["Closed", "Open"].map(|name| FullName::new("@internal", "own", name));
    eventually("them to be offered", async || {
        let found = node.store.find_providers(names.to_vec()).await.unwrap();
        found.iter().all(Option::is_some)
    })
    .await;
    let superuser = node.superuser().await;
    (node, superuser)
}

async fn listed(node: &Node, token: &str, room: &str) -> Vec<String> {
    let what = format!("GET /v1/joblib/rooms/{room}/providers");
    let answer = node.send(&what, token, &[], "").await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let page = answer.json();
    let items = page["items"].as_array().unwrap();
    assert_eq!(page["total"], items.len());
    let names = items.iter().map(|item| item["full_name"].as_str().unwrap());
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort();
    names
}

pub(crate) async fn the_server_answers_reads_of_its_internal_providers(database: Database) {
    let (node, superuser) = node(&database).await;
    for said in ["a", "b", "a"] {
        let what = format!("{CLOSED}?say={said}");
        let answer = node.send(&what, &superuser, &[], "").await;
        assert_eq!(
            (answer.status, &answer.body[..]),
            (StatusCode::OK, said.as_bytes())
        );
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("text/plain; charset=utf-8"));
    }
    let invalid = node
        .send(&format!("{CLOSED}?other=1"), &superuser, &[], "")
        .await;
    assert_eq!(invalid.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        invalid.json()["detail"][0]["loc"],
        json!(["query", "other"])
    );
}

pub(crate) async fn a_failed_internal_read_is_answered_with_its_reason(database: Database) {
    let (node, superuser) = node(&database).await;
    let answer = node.send(CLOSED, &superuser, &[], "").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["type"], "/v1/problems/provider-execution-failed");
    assert_eq!(problem["detail"], "say: what?");
}

pub(crate) async fn superusers_only(database: Database) {
    let (node, superuser) = node(&database).await;
    for what in [format!("{CLOSED}?say=a"), format!("{CLOSED}/info")] {
        let answer = node.send(&what, &node.ben, &[], "").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what} {answer:?}");
        let answer = node.send(&what, &superuser, &[], "").await;
        assert_eq!(answer.status, StatusCode::OK, "{what} {answer:?}");
    }
    // Not even a cached answer.
    let answer = node
        .send(&format!("{CLOSED}?say=a"), &node.ben, &[], "")
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

pub(crate) async fn internal_providers_are_listed_for_callers_that_may_read_them(
    database: Database,
) {
    let (node, superuser) = node(&database).await;
    node.register("a").await;
    let open = "@internal:own:Open";
    for room in ["r", "@internal"] {
        let own = if room == "r" { &["r:fs:a"][..] } else { &[] };
        let all = [&["@internal:own:Closed", open], own].concat();
        assert_eq!(listed(&node, &superuser, room).await, all);
        for token in [node.ben.as_str(), ""] {
            let some = [&[open], own].concat();
            assert_eq!(listed(&node, token, room).await, some, "{token}");
        }
    }
    let answer = node
        .send(&format!("{OPEN}?say=a"), &node.ben, &[], "")
        .await;
    answer.is_ok("a");
    // Without a provider for all users the list is empty.
    let other = Node::new(&database).await;
    let what = "GET /v1/joblib/rooms/@internal/providers";
    let answer = other.send(what, &other.ben, &[], "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
}

pub(crate) async fn internal_providers_cannot_be_registered_or_removed(database: Database) {
    let (node, superuser) = node(&database).await;
    let info = node
        .send(&format!("{CLOSED}/info"), &superuser, &[], "")
        .await;
    let body = json!({ "category": "own", "name": "Closed" }).to_string();
    let remove = format!("DELETE /v1/joblib/providers/{}", info.id());
    for token in [&superuser, &node.ben] {
        for what in ["PUT /v1/joblib/rooms/@internal/providers", &remove] {
            let answer = node.send(what, token, &[], body.clone()).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what} {answer:?}");
        }
    }
    let answer = node
        .send(&format!("{CLOSED}?say=a"), &superuser, &[], "")
        .await;
    answer.is_ok("a");
}

pub(crate) async fn an_internal_provider_that_this_server_does_not_run_is_unavailable(
    node: OneNode,
) {
    let superuser = node.superuser().await;
    let me = node
        .send("GET /v1/auth/users/me", &superuser, &[], "")
        .await;
    // A provider and a job that another node, or an earlier version of this one, has registered.
    let provider = NewProvider {
        name: FullName::new("@internal", "own", "Gone"),
        schema: "{}".to_owned(),
        content_type: "text/plain".to_owned(),
        user: me.id(),
        is_superuser: true,
        worker: None,
        ttl: None,
    };
    node.store.register_provider(provider).done().await;
    let job = NewJob {
        name: FullName::new("@internal", "modifiers", "Gone"),
        schema: "{}".to_owned(),
        max_retries: 0,
        user: me.id(),
        worker: None,
    };
    node.store.register_job(job).done().await;
    for what in [
        "GET /v1/joblib/rooms/r/providers/@internal:own:Gone",
        "POST /v1/joblib/rooms/r/tasks/@internal:modifiers:Gone",
    ] {
        let answer = node.send(what, &superuser, &[], "{}").await;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{what} {answer:?}"
        );
        let kind = &answer.json()["type"];
        assert_eq!(kind, "/v1/problems/internal-job-not-configured", "{what}");
    }
}
