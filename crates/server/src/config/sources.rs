//! The three sources of values: the file, the environment, the flags.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, Origin};
use super::mistyped::similar_settings;
use super::settings::{ENV_PREFIX, SETTINGS, Setting, setting};
use super::value::Value;

/// A setting's value in one source, or a description of the wrong value there.
pub(super) struct SourceValue {
    pub(super) setting: &'static Setting,
    pub(super) origin: Origin,
    pub(super) value: Result<Value, String>,
}

impl SourceValue {
    fn text(setting: &'static Setting, origin: Origin, text: &str) -> Self {
        let value = setting.kind.read_text(text);
        Self {
            setting,
            origin,
            value: value.map_err(|wrong| setting.describe(wrong)),
        }
    }
}

/// Returns false when the text is not TOML. Its values are then ignored, because the parser can only
/// guess the rest of a broken file.
pub(super) fn file(
    path: &Path,
    text: &str,
    values: &mut Vec<SourceValue>,
    mistakes: &mut Vec<Mistake>,
) -> bool {
    let file = File { path, text };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        file.walk("", table.get_ref(), values, mistakes);
        return true;
    }
    let mut seen = BTreeSet::new();
    for error in errors {
        // One mistake can make several errors on the same line.
        let origin = file.origin(error.span().map_or(text.len(), |span| span.start));
        if seen.insert(origin.clone()) {
            // Only the parser's message: its full display quotes the line, which may hold a secret.
            let message = error.message().to_owned();
            mistakes.push(Mistake::Syntax { origin, message });
        }
    }
    false
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn walk(
        &self,
        above: &str,
        table: &DeTable<'_>,
        values: &mut Vec<SourceValue>,
        mistakes: &mut Vec<Mistake>,
    ) {
        for (name, value) in table {
            let key = join(above, name.get_ref());
            let origin = self.origin(name.span().start);
            self.entry(key, origin, value, values, mistakes);
        }
    }

    fn entry(
        &self,
        key: String,
        origin: Origin,
        value: &Spanned<DeValue<'_>>,
        values: &mut Vec<SourceValue>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let is_section = SETTINGS.iter().any(|setting| setting.section == key);
        match (setting(&key), value.get_ref()) {
            (Some(setting), value) => values.push(SourceValue {
                setting,
                origin,
                value: setting
                    .kind
                    .read_toml(value)
                    .map_err(|wrong| setting.describe(wrong)),
            }),
            (None, DeValue::Table(table)) if is_section || !table.is_empty() => {
                self.walk(&key, table, values, mistakes);
            }
            (None, _) if is_section => mistakes.push(Mistake::Section { name: key, origin }),
            (None, _) => {
                let similar = similar_settings(&key.replace('.', "_"));
                mistakes.push(Mistake::Unknown {
                    name: key,
                    origin,
                    suggestions: similar
                        .iter()
                        .map(|setting| setting.key.to_owned())
                        .collect(),
                });
            }
        }
    }

    fn origin(&self, at: usize) -> Origin {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        Origin::File {
            path: self.path.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    }
}

/// A quoted name stays quoted: `"http.max_body"` at the top is not `max_body` of `http`.
fn join(above: &str, name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    if above.is_empty() {
        name
    } else {
        format!("{above}.{name}")
    }
}

pub(super) fn environment(
    variables: impl IntoIterator<Item = (String, String)>,
    values: &mut Vec<SourceValue>,
    mistakes: &mut Vec<Mistake>,
) {
    for (name, text) in variables {
        let Some(flat) = name.strip_prefix(ENV_PREFIX) else {
            continue;
        };
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.env() == name) {
            values.push(SourceValue::text(setting, Origin::Environment(name), &text));
        } else if !is_not_ours(flat) && !is_from_kubernetes(flat, &text) {
            let similar = similar_settings(&flat.to_lowercase());
            mistakes.push(Mistake::Unknown {
                name: name.clone(),
                origin: Origin::Environment(name),
                suggestions: similar.iter().map(|setting| setting.env()).collect(),
            });
        }
    }
}

/// Variables of the project's tests, and those of the commands that call a server.
fn is_not_ours(flat: &str) -> bool {
    flat.starts_with("TEST_") || matches!(flat, "BIN" | "URL" | "TOKEN")
}

/// Kubernetes sets variables for every service in every pod. Those of a service called `wakeline` or
/// `wakeline-redis` must not keep the server from starting.
fn is_from_kubernetes(flat: &str, text: &str) -> bool {
    let is_link = || {
        ["tcp://", "udp://", "sctp://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    };
    let flat = format!("_{flat}");
    let is_numbered_port = || {
        let Some((_, port)) = flat.rsplit_once("_PORT_") else {
            return false;
        };
        let number = port.split('_').next().unwrap_or_default();
        !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
    };
    flat.ends_with("_SERVICE_HOST")
        || flat.ends_with("_SERVICE_PORT")
        || flat.contains("_SERVICE_PORT_")
        || is_numbered_port()
        || (flat.ends_with("_PORT") && is_link())
}

pub(super) fn flags(
    flags: Vec<(String, String)>,
    values: &mut Vec<SourceValue>,
    mistakes: &mut Vec<Mistake>,
) {
    for (key, text) in flags {
        if let Some(setting) = setting(&key) {
            values.push(SourceValue::text(
                setting,
                Origin::Flag(setting.flag()),
                &text,
            ));
        } else {
            let similar = similar_settings(&key.replace(['.', '-'], "_"));
            mistakes.push(Mistake::Unknown {
                origin: Origin::Flag(format!("--{}", key.replace(['.', '_'], "-"))),
                name: key,
                suggestions: similar
                    .iter()
                    .map(|setting| setting.key.to_owned())
                    .collect(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_kubernetes_services_are_told_from_ours() {
        for (flat, text) in [
            ("SERVICE_HOST", "10.0.0.1"),
            ("SERVICE_PORT", "6632"),
            ("SERVICE_PORT_HTTP", "6632"),
            ("PORT", "tcp://10.0.0.1:6632"),
            ("PORT_6632_TCP", "tcp://10.0.0.1:6632"),
            ("PORT_6632_TCP_ADDR", "10.0.0.1"),
            ("REDIS_SERVICE_HOST", "10.0.0.2"),
            ("REDIS_PORT_6379_TCP_PROTO", "tcp"),
        ] {
            assert!(is_from_kubernetes(flat, text), "{flat}={text}");
        }
        for (flat, text) in [("PORT", "80"), ("HOST", "10.0.0.1"), ("SERVICE", "x")] {
            assert!(!is_from_kubernetes(flat, text), "{flat}={text}");
        }
    }
}
