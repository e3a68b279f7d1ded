//! Bodies as JSON: how deep they are, and the field that a refusal names.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use wakeline_web::{Object, json, json_at};

/// `http.max_depth`, as it is by default.
const MAX_DEPTH: usize = 128;
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the reading is tested")]
struct Push {
    items: Vec<Object<Item>>,
    required_leases: Option<Vec<String>>,
    by_name: Option<BTreeMap<String, i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the reading is tested")]
struct Item {
    queue: String,
    partition: Option<String>,
    payload: Option<Box<RawValue>>,
    trace_id: Option<uuid::Uuid>,
    kind: Option<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(dead_code, reason = "only the reading is tested")]
enum Kind {
    Push { count: u32 },
    Ack,
}

pub fn run(input: &[u8]) {
    let read = json::<Push>(input);
    check(read.err().as_ref().map(wakeline_web::Problem::detail), "");
    let read = json_at::<Item>("items[3]", input);
    let refused = read.err();
    let refused = refused.as_ref().map(wakeline_web::Problem::detail);
    check(refused, "items[3]");
    match json::<BTreeMap<String, Value>>(input) {
        Ok(read) => {
            assert!(depth(&Value::Object(read.into_iter().collect())) <= MAX_DEPTH);
        }
        Err(problem) => check(Some(problem.detail()), ""),
    }
}

/// A refusal names a place.
fn check(detail: Option<&str>, at: &str) {
    let Some(detail) = detail else { return };
    // The place may be a name with a colon.
    let (place, text) = detail.rsplit_once(": ").expect("a place and a text");
    assert!(!place.is_empty() && !text.is_empty(), "{detail}");
    assert!(detail.starts_with(at), "{detail}");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
