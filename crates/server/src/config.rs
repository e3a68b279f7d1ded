//! The configuration: defaults, a TOML file, the environment, flags; later ones win.
//!
//! One table ([`SETTINGS`]) is the source of everything: the typed [`Config`], the parsing of
//! values, the names in the environment and on the command line, `--print-config` and the table in
//! `docs/configuration.md`. To add a setting, add its row in `config/settings.rs`.
//!
//! Nothing here touches the process: [`load`] takes the file's text, the variables and the flags
//! as values, and reports all mistakes of all of them at once.

mod checks;
mod kind;
mod listen;
mod mistake;
mod mistyped;
mod print;
mod secret;
mod settings;
mod sources;
mod units;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use kind::Kind;
pub use listen::Listen;
pub use mistake::{Mistake, Mistakes, Origin};
pub use print::docs_table;
pub use secret::{Secret, Url};
pub use settings::{
    Auth, Bus, Config, Durable, Http, Jobs, Jwt, Limits, Log, Postgres, Queue, SETTINGS, Setting,
    Sqlite, Wake,
};
pub use value::{
    Algorithm, LogFormat, ResultBackend, Store, Subscription, TimeoutStatus, UnknownFields,
};

use sources::SourceValue;
use value::Value;

/// Reads the configuration from its sources, or reports all mistakes in them.
///
/// `file` is a path (for messages only) and the text found there; `env` may be the whole
/// environment; `flags` are pairs of a setting's key and its text, the last of a key wins.
///
/// A value that a later source overrides is checked all the same: otherwise its mistake would show
/// only when the later one is removed.
pub fn load(
    file: Option<(PathBuf, String)>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: Vec<(String, String)>,
) -> Result<Config, Mistakes> {
    let mut mistakes = Vec::new();
    let mut values = Vec::new();
    let mut file_is_toml = true;
    if let Some((path, text)) = file {
        file_is_toml = sources::file(&path, &text, &mut values, &mut mistakes);
    }
    sources::environment(env, &mut values, &mut mistakes);
    sources::flags(flags, &mut values, &mut mistakes);

    let resolved = ResolvedSettings::from(values, &mut mistakes);
    let config = Config::build(&resolved);
    // Without half of the file these checks would report mistakes that are none.
    if file_is_toml {
        checks::check(&config, &resolved, &mut mistakes);
    }

    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(Mistakes::new(mistakes))
    }
}

/// Every setting's value and its origin.
struct ResolvedSettings {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// Settings whose last value is a mistake; they have their default.
    mistaken: Vec<&'static str>,
}

impl ResolvedSettings {
    fn from(values: Vec<SourceValue>, mistakes: &mut Vec<Mistake>) -> Self {
        let defaults = SETTINGS.iter().map(|setting| {
            let value = setting.default_value();
            (setting.key, (value, Origin::Default))
        });
        let mut resolved = Self {
            values: defaults.collect(),
            mistaken: Vec::new(),
        };
        for SourceValue {
            setting,
            origin,
            value,
        } in values
        {
            resolved.mistaken.retain(|key| *key != setting.key);
            match value {
                Ok(value) => {
                    resolved.values.insert(setting.key, (value, origin));
                }
                Err(wrong) => {
                    resolved.mistaken.push(setting.key);
                    mistakes.push(Mistake::Value {
                        key: setting.key,
                        origin,
                        found: wrong,
                        expected: setting.kind.expected(),
                    });
                }
            }
        }
        resolved
    }

    fn value(&self, key: &str) -> &Value {
        &self.values[key].0
    }

    fn origin(&self, key: &str) -> &Origin {
        &self.values[key].1
    }

    fn is_mistaken(&self, key: &str) -> bool {
        self.mistaken.contains(&key)
    }
}

impl Default for Config {
    fn default() -> Self {
        load(None, [], Vec::new()).expect("the defaults are a valid configuration")
    }
}
