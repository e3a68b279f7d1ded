//! How settings must fit together.

use super::mistake::Mistake;
use super::units::show_duration;
use super::value::Store;
use super::{Config, Settled};

struct Check {
    /// The settings it looks at. It is left out when one of them is itself a mistake.
    keys: &'static [&'static str],
    /// What is wrong, and every way out of it.
    broken: fn(&Config) -> Option<String>,
}

const CHECKS: &[Check] = &[
    Check {
        keys: &["listen", "auth.tokens", "insecure"],
        broken: open_to_everybody,
    },
    Check {
        keys: &["http.default_hold", "http.max_hold"],
        broken: default_hold_too_long,
    },
    Check {
        keys: &["bus.url", "store"],
        broken: bus_without_nodes,
    },
];

pub(super) fn check(config: &Config, settled: &Settled, mistakes: &mut Vec<Mistake>) {
    for Check { keys, broken } in CHECKS {
        if keys.iter().any(|key| settled.is_wrong(key)) {
            continue;
        }
        if let Some(message) = broken(config) {
            let keys = keys.iter().map(|key| (*key, settled.origin(key).clone()));
            let keys = keys.collect();
            mistakes.push(Mistake::Conflict { keys, message });
        }
    }
}

fn open_to_everybody(config: &Config) -> Option<String> {
    // Canonical, so that ::ffff:127.0.0.1 counts as the loopback address that it is.
    let is_loopback = config.listen.ip().to_canonical().is_loopback();
    let is_open = !is_loopback && config.auth.tokens.is_empty() && !config.insecure;
    is_open.then(|| {
        format!(
            "{} is not a loopback address and no authentication is configured: \
             set auth.tokens, or set insecure = true to let everybody in",
            config.listen
        )
    })
}

fn default_hold_too_long(config: &Config) -> Option<String> {
    let show = |duration: std::time::Duration| {
        show_duration(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    };
    (config.http.default_hold > config.http.max_hold).then(|| {
        format!(
            "the default hold of {} is longer than the longest hold of {}: \
             lower http.default_hold, or raise http.max_hold",
            show(config.http.default_hold),
            show(config.http.max_hold)
        )
    })
}

fn bus_without_nodes(config: &Config) -> Option<String> {
    (config.bus.url.is_some() && config.store == Store::Sqlite).then(|| {
        "a SQLite file belongs to one node; a bus has nobody to reach: \
         leave bus.url empty, or set store to the URL of a PostgreSQL database"
            .to_owned()
    })
}
