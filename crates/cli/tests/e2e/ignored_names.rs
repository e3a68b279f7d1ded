//! The tables of names that clients send without a meaning here: each row is for a route of the API,
//! where the name is not known. That each is needed is seen by `compat/`, which counts what arrives.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{fixture::Fixture, server::Server};

/// How often each row was met, by place and name.
async fn rows(server: &Server) -> BTreeMap<(String, String), u64> {
    let text = server.get("/metrics").await.text();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("wakeline_ignored_fields_total{"));
    let label = |row: &str, name: &str| {
        let (_, rest) = row.split_once(&format!("{name}=\"")).expect("a label");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let row = |row: &str| {
        let (_, count) = row.rsplit_once(' ').expect("a count");
        let key = (label(row, "of"), label(row, "name"));
        (key, count.parse().expect("a number"))
    };
    rows.map(row).collect()
}

/// The names of what a route or a body has.
fn names(of: &Value) -> Vec<&str> {
    let operations = of.as_object().into_iter().flat_map(|item| item.values());
    let parameters = operations.filter_map(|operation| operation["parameters"].as_array());
    let parameters = parameters.flatten().filter_map(|one| one["name"].as_str());
    let fields = of["properties"].as_object().into_iter().flatten();
    parameters
        .chain(fields.map(|(name, _)| name.as_str()))
        .collect()
}

#[tokio::test]
async fn ignored_names_have_a_place_in_the_api_and_no_meaning_there() {
    let server = Fixture::sqlite().serve().start().await;
    let document = server.get("/openapi.json").await.json();
    let rows = rows(&server).await;
    assert!(!rows.is_empty());
    for (of, name) in rows.keys() {
        let place = match of.starts_with('/') {
            true => &document["paths"][of],
            false => &document["components"]["schemas"][of],
        };
        assert!(place.is_object(), "the API has no {of}");
        let known = names(place);
        assert!(!known.contains(&name.as_str()), "{of} has `{name}`");
    }
}

#[tokio::test]
async fn ignored_names_are_counted() {
    let server = Fixture::sqlite().serve().start().await;
    let popped = server.get("/api/v1/pop/queue/q?frames=1&namespace=n").await;
    assert_eq!(popped.status, 204, "{}", popped.text());
    let of_queue = |name: &str| ("/api/v1/pop/queue/{queue}".to_owned(), name.to_owned());
    let rows = rows(&server).await;
    assert_eq!(rows[&of_queue("frames")], 1);
    assert_eq!(rows[&of_queue("namespace")], 1);
    assert_eq!(rows[&of_queue("task")], 0);
}
