//! The configuration: defaults, a TOML file, the environment, flags; later ones win.
//!
//! One table ([`SETTINGS`]) is the source of everything: the typed [`Config`], the reading of
//! values, the names in the environment and on the command line, `--print-config` and the table
//! in `docs/configuration.md`. To add a setting, add its row in `config/settings.rs`.
//!
//! Nothing here touches the process: [`load`] takes the file's text, the variables and the flags
//! as values, and reports all mistakes of all of them at once.

mod checks;
mod kind;
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
pub use mistake::{Mistake, Mistakes, Origin};
pub use print::docs_table;
pub use secret::{Secret, Url};
pub use settings::{
    Auth, Bus, Config, Durable, Http, Jobs, Jwt, Limits, Log, Postgres, Queue, SETTINGS, Setting,
    Sqlite, Wake,
};
pub use value::{Algorithm, LogFormat, Results, Store, Subscription, TimeoutStatus};

use sources::Given;
use value::Value;

/// Reads the configuration from its sources, or says everything that is wrong with them.
///
/// `file` is a path (for messages only) and the text found there; `env` may be the whole
/// environment; `flags` are pairs of a setting's key and its text, the last of a key wins.
///
/// A value that a later source overrides is checked all the same: otherwise its mistake would
/// come to light only on the day the later one is taken away.
pub fn load(
    file: Option<(PathBuf, String)>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: Vec<(String, String)>,
) -> Result<Config, Mistakes> {
    let mut mistakes = Vec::new();
    let mut given = Vec::new();
    let mut file_is_toml = true;
    if let Some((path, text)) = file {
        file_is_toml = sources::file(&path, &text, &mut given, &mut mistakes);
    }
    sources::environment(env, &mut given, &mut mistakes);
    sources::flags(flags, &mut given, &mut mistakes);

    let settled = Settled::from(given, &mut mistakes);
    let config = Config::build(&settled);
    // Half of a file is no ground for judging how settings fit together.
    if file_is_toml {
        checks::check(&config, &settled, &mut mistakes);
    }

    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(Mistakes::new(mistakes))
    }
}

/// Every setting's value and where it came from.
struct Settled {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// Settings whose last given value was a mistake; the default stands in for it.
    wrong: Vec<&'static str>,
}

impl Settled {
    fn from(given: Vec<Given>, mistakes: &mut Vec<Mistake>) -> Self {
        let defaults = SETTINGS.iter().map(|setting| {
            let value = setting.default_value();
            (setting.key, (value, Origin::Default))
        });
        let mut settled = Self {
            values: defaults.collect(),
            wrong: Vec::new(),
        };
        for Given {
            setting,
            origin,
            value,
        } in given
        {
            settled.wrong.retain(|key| *key != setting.key);
            match value {
                Ok(value) => {
                    settled.values.insert(setting.key, (value, origin));
                }
                Err(found) => {
                    settled.wrong.push(setting.key);
                    mistakes.push(Mistake::Value {
                        key: setting.key,
                        origin,
                        found,
                        expected: setting.kind.expected(),
                    });
                }
            }
        }
        settled
    }

    fn value(&self, key: &str) -> &Value {
        &self.values[key].0
    }

    fn origin(&self, key: &str) -> &Origin {
        &self.values[key].1
    }

    fn is_wrong(&self, key: &str) -> bool {
        self.wrong.contains(&key)
    }
}

impl Default for Config {
    fn default() -> Self {
        load(None, [], Vec::new()).expect("the defaults are a valid configuration")
    }
}
