//! Bodies with a secret at the place of each field that a route has, made from the API's document.

use serde_json::{Value, json};

use super::planted::values::{NUMBER, TEXT};

/// Deeper than any body of the document.
const DEPTH: usize = 5;

/// Where no field is a payload, a password or a result, and a refusal repeats the body in FastAPI's
/// words, as the real client's server does.
const REPEATED: [&str; 3] = [
    "/v1/joblib/rooms/{room_id}/jobs",
    "/v1/joblib/rooms/{room_id}/providers",
    "/v1/joblib/tasks/claim",
];

/// A refusal may repeat these words: each has a fixed meaning, or is a name.
const WORDS: [&str; 2] = ["email", "type"];

pub(super) struct SpoiltBody {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: String,
}

pub(super) fn all(document: &Value) -> Vec<SpoiltBody> {
    let mut spoilt = Vec::new();
    let paths = document["paths"].as_object().expect("paths").iter();
    for (path, operations) in paths.filter(|(path, _)| !REPEATED.contains(&path.as_str())) {
        for (method, operation) in operations.as_object().expect("operations") {
            let content = &operation["requestBody"]["content"];
            if content.is_null() {
                continue;
            }
            let schema = &content["application/json"]["schema"];
            let bodies = unreadable().into_iter().chain(
                values(schema, document, DEPTH)
                    .into_iter()
                    .map(|body| body.to_string()),
            );
            spoilt.extend(bodies.map(|body| SpoiltBody {
                method: method.to_uppercase(),
                path: path.clone(),
                body,
            }));
        }
    }
    spoilt
}

fn unreadable() -> Vec<String> {
    vec![
        TEXT.to_owned(),
        format!("\"{TEXT}"),
        format!(r#"{{"payload":"{TEXT}",,}}"#),
        format!(r#"{{"password":"{TEXT}""#),
        format!(r#"{{"password":{TEXT}}}"#),
        format!(r#"{{"nonsense":"{TEXT}"}}"#),
        format!(r#"{{"nonsense":{NUMBER}}}"#),
        format!(r#"{{}} "{TEXT}""#),
        format!("password={TEXT}&payload={TEXT}%ff"),
    ]
}

/// A secret in place of the value that is described, and of each of its parts.
fn values(schema: &Value, document: &Value, depth: usize) -> Vec<Value> {
    let mut values = vec![
        json!(TEXT),
        json!(NUMBER),
        json!([TEXT]),
        json!({"nonsense": TEXT}),
    ];
    if depth == 0 {
        return values;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = document.pointer(&reference[1..]).expect("a schema");
        return self::values(schema, document, depth);
    }
    for parts in ["allOf", "oneOf", "anyOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            values.extend(self::values(part, document, depth - 1));
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let spoilt = properties.iter();
        for (name, property) in spoilt.filter(|(name, _)| !WORDS.contains(&name.as_str())) {
            let of_property = self::values(property, document, depth - 1);
            values.extend(of_property.into_iter().map(|value| json!({ name: value })));
        }
    }
    if schema["items"].is_object() {
        let of_item = self::values(&schema["items"], document, depth - 1);
        values.extend(of_item.into_iter().map(|value| json!([value])));
    }
    values
}
