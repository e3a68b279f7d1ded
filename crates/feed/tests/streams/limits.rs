//! The limits of the door, each with its setting.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;
use wakeline_feed::{
    http::{self, Door, Limits},
    service::Settings,
};
use wakeline_web::{Identity, Role};

use crate::{
    blog::{as_graph, as_json, posts, reference_json, request_text, site},
    database::Database,
    node::{GRAPH, JSON, Node, TEXT, settings},
};

const MAX: Limits = Limits {
    max_body: 1_000,
    max_graph: 2_000,
    body_timeout: Duration::from_secs(30),
};

async fn ask(node: &Node, route: &str, kind: &str, body: String) -> (u16, String) {
    let door = Door {
        feeds: node.feeds.clone(),
        login: None,
        limits: MAX,
    };
    let (router, _) = http::router(door).split_for_parts();
    let request = ::http::Request::post(format!("/jinaga/{route}"))
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

pub(crate) async fn a_refusal_names_the_exceeded_limit(database: Database) {
    let few = Settings {
        max_facts: 3,
        max_references: 2,
        ..settings()
    };
    let node = Node::with(&database, few).await;
    let home = site("home");
    let graph = |count: usize| {
        let facts = [vec![home.clone()], posts(&home, "post", count - 1)];
        as_graph(&facts.concat())
    };
    let sites = |count: usize| {
        let facts = (0..count).map(|number| as_json(&site(&number.to_string())));
        json!({ "facts": facts.collect::<Vec<_>>() }).to_string()
    };
    let references = |count: usize| {
        let one = reference_json(&home.reference);
        json!({ "references": vec![one; count] }).to_string()
    };
    let long = " ".repeat(MAX.max_body);
    let text = || request_text("(s: Site) { } => s", &[&home]);
    for (route, kind, body, setting) in [
        ("save", GRAPH, graph(3), ""),
        ("save", GRAPH, graph(4), "feeds.max_facts"),
        ("save", GRAPH, graph(3) + &long + &long, "feeds.max_graph"),
        ("save", JSON, sites(3), ""),
        ("save", JSON, sites(4), "feeds.max_facts"),
        ("save", JSON, sites(3) + &long, "feeds.max_body"),
        ("load", JSON, references(2), ""),
        ("load", JSON, references(3), "feeds.max_references"),
        ("load", JSON, references(2) + &long, "feeds.max_body"),
        ("feeds", TEXT, text(), ""),
        ("feeds", TEXT, text() + &long, "feeds.max_body"),
        ("read", TEXT, text() + &long, "feeds.max_body"),
    ] {
        let (status, answer) = ask(&node, route, kind, body).await;
        let expected = match (setting, route) {
            ("", "save") => 201,
            ("", _) => 200,
            _ => 413,
        };
        assert_eq!(status, expected, "{route}: {answer}");
        assert!(answer.contains(setting), "{route} {setting}: {answer}");
    }
}
