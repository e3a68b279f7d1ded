//! Bodies with one thing wrong, made from the API's document and a good body per route.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::cases::{Case, filled, invalid};
use crate::wire::post;

const UUID: &str = "2dfa3891-d7e1-4c8a-8630-4e74ab943073";
const TIME: &str = "2026-01-31T12:00:00Z";
const TOO_LONG: usize = 256;
/// Keys of a stream's state may be longer.
const TOO_LONG_KEY: usize = 1_001;

/// Routes that accept a request without a body.
const MAY_BE_EMPTY: [&str; 2] = [
    "/api/v1/lease/{leaseId}/extend",
    "/api/v1/messages/{partitionId}/{transactionId}/dlq",
];
/// Routes that answer each item by itself, in a list.
const ITEM_BY_ITEM: &str = "/api/v1/ack/batch";

/// A good body with every field of the document, to be made wrong field by field.
fn good(path: &str) -> Value {
    let item = json!({
        "queue": "q", "partition": "p", "payload": 1, "transactionId": "t", "traceId": UUID,
    });
    let ack = json!({
        "transactionId": "t", "partitionId": UUID, "leaseId": UUID, "status": "completed",
        "consumerGroup": "g", "error": "none",
    });
    match path {
        "/api/v1/push" => json!({"items": [item]}),
        "/api/v1/ack" => ack,
        ITEM_BY_ITEM => json!({"acknowledgments": [ack], "consumerGroup": "g"}),
        "/api/v1/transaction" => {
            let mut acks = ack;
            acks["type"] = json!("ack");
            let operations = json!([{"type": "push", "items": [item]}, acks]);
            json!({"operations": operations, "requiredLeases": [UUID]})
        }
        "/api/v1/configure" => json!({
            "queue": "configured", "namespace": "n", "task": "t", "mode": "merge", "options": {
                "leaseTime": 1, "retryLimit": 1, "retryDelay": 1, "deadLetterQueue": true,
                "dlqAfterMaxRetries": true, "priority": 1, "delayedProcessing": 1,
                "windowBuffer": 1, "maxSize": 1, "ttl": 1, "maxWaitTimeSeconds": 1,
                "retentionEnabled": true, "retentionSeconds": 1, "completedRetentionSeconds": 1,
                "encryptionEnabled": false,
            },
        }),
        "/api/v1/lease/{leaseId}/extend" => json!({"seconds": 60}),
        "/api/v1/messages/{partitionId}/{transactionId}/dlq" => {
            json!({"consumerGroup": "g", "error": "none"})
        }
        "/api/v1/consumer-groups/{group}/subscription" => json!({"subscriptionTimestamp": TIME}),
        _ if path.ends_with("/seek") => json!({"timestamp": TIME, "toEnd": false}),
        _ if path.contains("/system/maintenance") => json!({"enabled": false}),
        "/internal/api/notify" => json!({"queue": "q", "partition": "p"}),
        "/api/v1/traces" => json!({
            "transactionId": "t", "partitionId": UUID, "consumerGroup": "g", "eventType": "info",
            "data": {}, "traceNames": ["n"],
        }),
        "/streams/v1/queries" => json!({
            "name": "n", "source_queue": "q", "sink_queue": "s", "config_hash": "h",
            "reset": false,
        }),
        "/streams/v1/cycle" => json!({
            "query_id": UUID, "partition_id": UUID, "consumer_group": "g",
            "state_ops": [{"type": "upsert", "key": "k", "value": 1}], "push_items": [item],
            "ack": {
                "transactionId": "t", "leaseId": UUID, "status": "completed", "count": 1,
                "error": "none",
            },
            "release_lease": true,
        }),
        "/streams/v1/state/get" => json!({
            "query_id": UUID, "partition_id": UUID, "keys": ["k"], "key_prefix": "k",
            "ripe_at_or_before": 1,
        }),
        other => panic!("a good body for {other} is missing here"),
    }
}

struct Spoiler<'a> {
    cases: &'a mut Vec<Case>,
    path: &'a str,
    good: Value,
    document: &'a Value,
}

pub(super) fn all(cases: &mut Vec<Case>, path: &str, operation: &Value, document: &Value) {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut spoiler = Spoiler {
        cases,
        path,
        good: good(path),
        document,
    };
    spoiler.unreadable(schema);
    let good = spoiler.good.clone();
    spoiler.members(&good, schema, "");
}

impl Spoiler<'_> {
    fn unreadable(&mut self, schema: &Value) {
        let nested = "[".repeat(100_000);
        let malformed: [&[u8]; 20] = [
            b"",
            b" ",
            b"{",
            b"}",
            b"nul",
            b"null",
            b"5",
            b"\"text\"",
            b"true",
            b"[]",
            b"{}",
            b"{\"items\"",
            b"{\"items\":[,]}",
            b"{\"a\":1,}",
            b"{\"\xff\":1}",
            b"\xef\xbb\xbf{}",
            b"\0",
            b"{} {}",
            b"{'a':1}",
            nested.as_bytes(),
        ];
        let url = filled(self.path);
        for body in malformed {
            let is_good = match body {
                b"" => MAY_BE_EMPTY.contains(&self.path),
                b"{}" => self.shape(schema, &json!({})).1.is_empty(),
                _ => false,
            };
            if !is_good {
                let shown: String = String::from_utf8_lossy(body).chars().take(30).collect();
                let what = format!("{url} {shown:?}");
                let case = invalid(post(&url, body.to_vec()), "body", &what);
                self.cases.push(match body {
                    // The first field that it lacks or that no route knows, or where it is too deep.
                    [b'{', _, ..] | [b'[', b'[', ..] => Case {
                        field: None,
                        ..case
                    },
                    _ => case,
                });
            }
        }
        // serde could read a struct from a list of its values, in an order that is not promised.
        let members = self.good.as_object().expect("an object");
        let listed = Value::Array(members.values().cloned().collect());
        let what = format!("{url} {listed}");
        let request = post(&url, listed.to_string());
        self.cases.push(invalid(request, "body", &what));
    }

    /// The fields of an object of this schema, and its required fields. Of alternatives, the one
    /// that `part` is.
    fn shape(&self, schema: &Value, part: &Value) -> (Map<String, Value>, BTreeSet<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let schema = self.document.pointer(&reference[1..]).expect("a schema");
            return self.shape(schema, part);
        }
        let several = schema["allOf"].as_array().into_iter().flatten();
        let fits = |one: &&Value| {
            let (properties, _) = self.shape(one, part);
            let kind = properties.get("type").map(|kind| &kind["enum"][0]);
            one["type"] != "null" && kind.is_none_or(|kind| kind.is_null() || *kind == part["type"])
        };
        let alternatives = schema["oneOf"].as_array().into_iter().flatten();
        let mut properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let required = schema["required"].as_array().into_iter().flatten();
        let mut required: BTreeSet<String> = required
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect();
        for part_of_it in several.chain(alternatives.filter(fits).take(1)) {
            let (more, must) = self.shape(part_of_it, part);
            properties.extend(more);
            required.extend(must);
        }
        (properties, required)
    }

    /// Puts each wrong value in the place of each field below `part`.
    fn members(&mut self, part: &Value, schema: &Value, pointer: &str) {
        let members = part.as_object().expect("an object");
        let (properties, required) = self.shape(schema, part);
        for name in properties.keys() {
            assert!(
                members.contains_key(name),
                "{}: {pointer}/{name} is not in the good body",
                self.path
            );
        }
        for (name, value) in members {
            let inner = format!("{pointer}/{name}");
            if required.contains(name) {
                self.put(&inner, json!(null));
                self.remove(pointer, name);
            }
            let schema = properties.get(name).unwrap_or(&Value::Null);
            self.value(name, value, schema, &inner);
        }
    }

    fn value(&mut self, name: &str, value: &Value, schema: &Value, pointer: &str) {
        if matches!(name, "payload" | "data" | "value") {
            return;
        }
        let wrong: Vec<Value> = match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.item(name, item, &schema["items"], &format!("{pointer}/{index}"));
                }
                vec![json!(5), json!({}), json!(true)]
            }
            Value::Object(_) => {
                self.members(value, schema, pointer);
                vec![
                    json!(5),
                    json!("x"),
                    json!(true),
                    json!([]),
                    // As a stream's acknowledgement could be read from a list.
                    json!(["t", UUID, "completed", 1, "none"]),
                ]
            }
            Value::String(_) => {
                self.texts(name, pointer);
                let huge = Value::Number(serde_json::Number::from_f64(1e308).expect("finite"));
                vec![
                    json!(5),
                    json!(-1),
                    json!(u64::MAX),
                    huge,
                    json!(true),
                    json!([]),
                    json!({}),
                ]
            }
            Value::Number(_) => vec![
                json!("x"),
                json!(1.5),
                json!(u64::MAX),
                json!(i64::MIN),
                json!(true),
                json!([]),
                json!({}),
            ],
            Value::Bool(_) => vec![json!(5), json!("x"), json!([]), json!({})],
            Value::Null => panic!("{}: {pointer} has no value", self.path),
        };
        for wrong in wrong {
            // The earliest of all times, and only an echo of the caller's own number.
            let is_good = match name {
                "ripe_at_or_before" => wrong == json!(i64::MIN),
                "count" => wrong == json!(u64::MAX),
                _ => false,
            };
            if !is_good {
                self.put(pointer, wrong);
            }
        }
        // One name is as good as a list of one.
        if value.is_array() && name != "traceNames" {
            self.put(pointer, json!("x"));
        }
    }

    fn item(&mut self, name: &str, item: &Value, schema: &Value, pointer: &str) {
        for wrong in [json!(5), json!(null), json!([])] {
            self.put(pointer, wrong);
        }
        if item.is_object() {
            // And these as an item to be pushed, and as a change of a stream's state.
            let listed = [json!(["q", "p", 1, "t", null]), json!(["upsert", "k", 1])];
            for wrong in listed.into_iter().chain([json!("x")]) {
                self.put(pointer, wrong);
            }
            self.members(item, schema, pointer);
        } else {
            self.put(pointer, json!({}));
            self.texts(name, pointer);
        }
    }

    /// Texts that are invalid for the field of this name.
    fn texts(&mut self, name: &str, pointer: &str) {
        let long = "x".repeat(TOO_LONG);
        let long_key = "x".repeat(TOO_LONG_KEY);
        let bad: &[&str] = match name {
            "queue" | "partition" | "transactionId" | "consumerGroup" | "consumer_group"
            | "name" | "source_queue" | "sink_queue" | "config_hash" | "eventType"
            | "traceNames" => &["", "\0", "a\0b", &long],
            "key" | "keys" => &["", "\0", "a\0b", &long_key],
            // An empty text means that the field is not given.
            "namespace" | "task" => &["\0", "a\0b", &long],
            "key_prefix" => &["\0", "a\0b", &long_key],
            "traceId" | "partitionId" | "partition_id" | "query_id" => {
                &["", "zzz", "\0", "2dfa3891-d7e1-4c8a-8630", &long]
            }
            "timestamp" | "subscriptionTimestamp" => {
                &["", "yesterday", "2026-13-01T00:00:00Z", "\0", &long]
            }
            "status" => &["", "weird", "COMPLETED", "\0", &long],
            "type" => &["", "weird", "PUSH", "\0", &long],
            "mode" => &["", "weird", "REPLACE", "\0", &long],
            // An unknown lease counts as lost, and an error may be any text.
            "leaseId" | "requiredLeases" | "error" => &[],
            other => panic!("no bad texts are known for {other}"),
        };
        for text in bad {
            self.put(pointer, json!(text));
        }
        // Not UTF-8, which no JSON value can be made of.
        let mut body = self.good.clone();
        *body.pointer_mut(pointer).expect("the field") = json!("spoilt");
        let text = body.to_string();
        let at = text.find("spoilt").expect("the value");
        let mut bytes = text.into_bytes();
        bytes[at] = 0xff;
        let url = filled(self.path);
        let what = format!("{url} {pointer} is not UTF-8");
        self.cases.push(Case {
            field: None,
            ..invalid(post(&url, bytes), "", &what)
        });
    }

    fn put(&mut self, pointer: &str, wrong: Value) {
        let mut body = self.good.clone();
        let change = format!("{pointer} = {wrong}");
        *body.pointer_mut(pointer).expect("the field") = wrong;
        self.send(pointer, &body, &change);
    }

    fn remove(&mut self, pointer: &str, name: &str) {
        let mut body = self.good.clone();
        let members = body.pointer_mut(pointer).and_then(Value::as_object_mut);
        members.expect("an object").remove(name);
        let pointer = format!("{pointer}/{name}");
        self.send(&pointer, &body, &format!("without {pointer}"));
    }

    /// A body whose field at `pointer` is wrong.
    fn send(&mut self, pointer: &str, body: &Value, change: &str) {
        let url = filled(self.path);
        let what = format!("{url} {change}");
        let case = invalid(post(&url, body.to_string()), &field(pointer), &what);
        let is_of_item = self.path == ITEM_BY_ITEM && pointer.starts_with("/acknowledgments/");
        self.cases.push(Case {
            status: if is_of_item { 200 } else { case.status },
            ..case
        });
    }
}

/// `/items/0/queue` as a problem names it: `items[0].queue`.
fn field(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.fold(String::new(), |field, part| match part {
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{field}[{number}]"),
        name if field.is_empty() => name.to_owned(),
        name => format!("{field}.{name}"),
    })
}
