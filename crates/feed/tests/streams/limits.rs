//! The limits of the door, each with the setting that it is.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;
use wakeline_feed::{
    fact::Fact,
    http::{self, Door, Limits, Origins},
    service::Settings,
};
use wakeline_web::{Identity, Role};

use crate::{
    database::Database,
    facts::{as_graph, posts, site},
    node::{Node, settings},
};

const GRAPH: &str = "application/x-jinaga-graph-v1";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// Room for these.
const MAX: Limits = Limits {
    max_body: 1_000,
    max_graph: 2_000,
    body_timeout: Duration::from_secs(30),
};

async fn ask(node: &Node, path: &str, kind: &str, body: String) -> (u16, String) {
    let door = Door {
        feeds: node.feeds.clone(),
        login: None,
        origins: Origins::Any,
        limits: MAX,
    };
    let (router, _) = http::router(door).split_for_parts();
    let request = ::http::Request::post(path)
        .header("Content-Type", kind)
        .extension(Identity {
            subject: None,
            role: Role::Admin,
        });
    let request = request.body(Body::from(body)).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn as_json(facts: &[Fact]) -> String {
    let facts = facts.iter().map(|fact| {
        json!({
            "type": &*fact.reference.kind,
            "hash": fact.reference.hash.to_string(),
            "predecessors": {},
            "fields": serde_json::from_str::<serde_json::Value>(&fact.fields).unwrap(),
        })
    });
    json!({ "facts": facts.collect::<Vec<_>>() }).to_string()
}

pub(crate) async fn what_is_too_large_is_refused_by_the_name_of_its_limit(database: Database) {
    let few = Settings {
        max_facts: 3,
        max_references: 2,
        ..settings()
    };
    let node = Node::with(&database, few).await;
    let home = site("home");
    let graph = |count: usize| {
        let mut facts = vec![home.clone()];
        facts.extend(posts(&home, "post", count - 1));
        as_graph(&facts)
    };
    let sites: Vec<Fact> = ["a", "b", "c", "d"].map(site).into();
    let references = |count: usize| {
        let one = json!({ "type": "Site", "hash": home.reference.hash.to_string() });
        json!({ "references": vec![one; count] }).to_string()
    };
    let long = " ".repeat(MAX.max_body);
    let text = "(s: Site) { } => s".to_owned();
    let declared = format!("let s: Site = #{}\n{text}", home.reference.hash);
    for (path, kind, body, status, setting) in [
        ("/jinaga/save", GRAPH, graph(3), 201, ""),
        ("/jinaga/save", GRAPH, graph(4), 413, "feeds.max_facts"),
        (
            "/jinaga/save",
            GRAPH,
            graph(3) + &long + &long,
            413,
            "feeds.max_graph",
        ),
        ("/jinaga/save", JSON, as_json(&sites[..3]), 201, ""),
        (
            "/jinaga/save",
            JSON,
            as_json(&sites),
            413,
            "feeds.max_facts",
        ),
        (
            "/jinaga/save",
            JSON,
            as_json(&sites[..3]) + &long,
            413,
            "feeds.max_body",
        ),
        ("/jinaga/load", JSON, references(2), 200, ""),
        (
            "/jinaga/load",
            JSON,
            references(3),
            413,
            "feeds.max_references",
        ),
        (
            "/jinaga/load",
            JSON,
            references(2) + &long,
            413,
            "feeds.max_body",
        ),
        ("/jinaga/feeds", TEXT, declared.clone(), 200, ""),
        (
            "/jinaga/feeds",
            TEXT,
            declared.clone() + &long,
            413,
            "feeds.max_body",
        ),
        (
            "/jinaga/read",
            TEXT,
            declared + &long,
            413,
            "feeds.max_body",
        ),
    ] {
        let (answered, said) = ask(&node, path, kind, body).await;
        assert_eq!(answered, status, "{path} {setting}: {said}");
        assert!(said.contains(setting), "{path} {setting}: {said}");
    }
}
