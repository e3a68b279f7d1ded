//! Replaces ids and times, which differ in every run, before a comparison with a snapshot.

use serde_json::Value;

/// Ids are numbered in the order in which they appear, so that it shows which are the same.
pub(crate) fn redacted(value: &Value) -> Value {
    let mut seen = Vec::new();
    redact(value, &mut seen)
}

fn redact(value: &Value, seen: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) if is_uuid(text) => {
            let known = seen.iter().position(|known| known == text);
            let number = known.unwrap_or_else(|| {
                seen.push(text.clone());
                seen.len() - 1
            });
            format!("<id {}>", number + 1).into()
        }
        Value::String(text) if is_time(text) => "<time>".into(),
        Value::Array(items) => items.iter().map(|item| redact(item, seen)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, member)| (name.clone(), redact(member, seen)))
                .collect()
        }
        other => other.clone(),
    }
}

fn is_uuid(text: &str) -> bool {
    has_form(text, "00000000-0000-0000-0000-000000000000")
}

/// With microseconds, as Queen has it.
fn is_time(text: &str) -> bool {
    has_form(text, "0000-00-00T00:00:00.000000Z")
}

/// A `0` stands for any digit, everything else for itself.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, form)| match form {
                b'0' => byte.is_ascii_hexdigit(),
                other => byte == other,
            })
}
