//! The configuration as text: `--print-config`, and the table in the docs.

use std::fmt::Write as _;
use std::path::Path;

use super::secret::{HIDDEN, mask};
use super::settings::{Config, SETTINGS, Setting};
use super::units::{show_duration, show_size};
use super::value::Value;
use super::{Origin, ResolvedSettings};

/// A setting as `--print-config` prints it. Made when the configuration is loaded, so that the
/// secrets need not be kept for it.
#[derive(Clone, Debug)]
pub(super) struct PrintedSetting {
    setting: &'static Setting,
    toml: String,
    origin: Origin,
}

impl PrintedSetting {
    pub(super) fn all(resolved: &ResolvedSettings) -> Vec<Self> {
        SETTINGS
            .iter()
            .map(|setting| Self {
                setting,
                toml: toml(resolved.value(setting.key), setting.secret),
                origin: resolved.origin(setting.key).clone(),
            })
            .collect()
    }
}

impl Config {
    /// The configuration as it was loaded, as TOML, with each value's origin and without secrets.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for PrintedSetting {
            setting,
            toml,
            origin,
        } in &self.printed
        {
            if setting.section != section {
                section = setting.section;
                let _ = writeln!(text, "\n[{section}]");
            }
            let _ = writeln!(text, "{} = {toml} # {origin}", setting.name());
        }
        text
    }
}

impl Config {
    /// The configuration file, if a secret in force is from it.
    #[must_use]
    pub fn secrets_file(&self) -> Option<&Path> {
        self.printed
            .iter()
            .find_map(|printed| match &printed.origin {
                Origin::File { path, .. } if printed.toml.contains(HIDDEN) => Some(path.as_path()),
                _ => None,
            })
    }
}

fn toml(value: &Value, secret: bool) -> String {
    let value = match value {
        // The number of secrets is shown: one too few is a common mistake.
        Value::List(items) if secret => vec![HIDDEN; items.len()].into(),
        // That there is none is no secret.
        Value::Text(text) if secret && text.is_empty() => "".into(),
        _ if secret => HIDDEN.into(),
        Value::Text(text) => text.clone().into(),
        Value::Url(url) => mask(url).into(),
        Value::Bool(value) => (*value).into(),
        Value::Integer(number) => return number.to_string(),
        Value::Bytes(number) => show_size(*number).into(),
        Value::Milliseconds(number) => show_duration(*number).into(),
        Value::Listen(listen) => listen.to_string().into(),
        Value::List(items) => items.clone().into(),
        Value::Path(path) => path.display().to_string().into(),
    };
    toml::Value::to_string(&value)
}

/// The table of all settings in Markdown, as it stands in `docs/configuration.md`.
#[must_use]
pub fn docs_table() -> String {
    let mut table = "| setting | variable | value | default | meaning |\n\
                     |---|---|---|---|---|\n"
        .to_owned();
    for setting in SETTINGS {
        let default = match setting.default {
            "" => "empty".to_owned(),
            default => format!("`{default}`"),
        };
        let _ = writeln!(
            table,
            "| `{}` | `{}` | {}{} | {default} | {} |",
            setting.key,
            setting.env(),
            setting.kind.expected(),
            if setting.secret { " (secret)" } else { "" },
            setting.help,
        );
    }
    table
}
