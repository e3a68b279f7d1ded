//! A JSON document as lines that a reviewer can read in a diff.

use serde_json::Value;

/// The longest array or object that stands on a line of its own.
const LINE: usize = 160;

/// Every value of the document, in its order: the path to it, and the value as compact JSON. An
/// array or an object that is longer than a line is replaced by what it contains.
pub(crate) fn outline(document: &Value) -> String {
    let mut lines = Vec::new();
    add_lines("", document, &mut lines);
    lines.join("\n")
}

fn add_lines(path: &str, value: &Value, lines: &mut Vec<String>) {
    let compact = value.to_string();
    match value {
        Value::Object(members) if compact.len() > LINE => {
            for (name, member) in members {
                add_lines(&format!("{path} {name}"), member, lines);
            }
        }
        Value::Array(items) if compact.len() > LINE => {
            for (index, item) in items.iter().enumerate() {
                add_lines(&format!("{path} {index}"), item, lines);
            }
        }
        _ => lines.push(format!("{}: {compact}", path.trim_start())),
    }
}
