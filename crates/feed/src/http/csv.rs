//! Results as comma-separated values: flat projections only.

use std::sync::Arc;

use crate::{
    error::Error,
    json,
    reading::Value,
    specification::{Component, Projection, SingleProjection, Specification},
};

/// The names of the columns, if a result is a row.
pub(super) fn columns(specification: &Specification) -> Result<Vec<Arc<str>>, Error> {
    let unfit = |errors: &[String]| {
        Error::Invalid(format!(
            "Specification is not compatible with CSV format:\n\n{}\n\nHint: CSV requires flat \
             projections with single-valued fields. Avoid nested specifications.",
            errors.join("\n\n")
        ))
    };
    let Projection::Composite(components) = &specification.projection else {
        let error = "Specification projection must be composite for CSV export";
        return Err(unfit(&[error.to_owned()]));
    };
    if components.is_empty() {
        let error = "Specification must have a projection for CSV export";
        return Err(unfit(&[error.to_owned()]));
    }
    let is_flat = |component: &Component| {
        matches!(
            component,
            Component::Single(
                SingleProjection::Field { .. }
                    | SingleProjection::Hash(_)
                    | SingleProjection::Time(_)
            )
        )
    };
    let errors: Vec<String> = components
        .iter()
        .filter(|(_, component)| !is_flat(component))
        .map(|(name, _)| {
            format!(
                "Unsupported projection type of field '{name}' for CSV export. Only flat field \
                 projections are allowed."
            )
        })
        .collect();
    if errors.is_empty() {
        Ok(components.iter().map(|(name, _)| name.clone()).collect())
    } else {
        Err(unfit(&errors))
    }
}

pub(super) fn header(columns: &[Arc<str>]) -> String {
    let mut line = String::new();
    for (index, column) in columns.iter().enumerate() {
        cell(&mut line, index, column);
    }
    line.push('\n');
    line
}

pub(super) fn row(text: &mut String, columns: &[Arc<str>], value: &Value) {
    let members: &[(Arc<str>, Value)] = match value {
        Value::Object(members) => members,
        _ => &[],
    };
    for (index, column) in columns.iter().enumerate() {
        let found = members.iter().find(|(name, _)| name == column);
        cell(
            text,
            index,
            &found.map_or_else(String::new, |(_, value)| shown(value)),
        );
    }
    text.push('\n');
}

fn shown(value: &Value) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Text(text) => text.clone(),
        Value::Json(raw) => match json::parse(raw.get()) {
            Ok(json::Value::Null) => String::new(),
            Ok(json::Value::String(text)) => text.to_lossy().into_owned(),
            _ => raw.get().to_owned(),
        },
        Value::Object(_) | Value::Array(_) => serde_json::to_string(value).unwrap_or_default(),
    }
}

fn cell(line: &mut String, index: usize, text: &str) {
    if index > 0 {
        line.push(',');
    }
    if text.contains([',', '"', '\n', '\r']) {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
}
