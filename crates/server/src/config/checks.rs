//! How settings must fit together.

use wakeline_queue::seal::Sealer;

use super::mistake::Mistake;
use super::units::show_duration;
use super::value::{Algorithm, Results, Store};
use super::{Config, Jobs, Jwt, Settled};

struct Check {
    /// The settings it looks at. It is left out when one of them is itself a mistake.
    keys: &'static [&'static str],
    /// What is wrong, and every way out of it.
    broken: fn(&Config) -> Option<String>,
}

const CHECKS: &[Check] = &[
    Check {
        keys: &[
            "listen",
            "auth.tokens",
            "auth.jwt.secret",
            "auth.jwt.public_key",
            "auth.jwt.jwks_url",
            "insecure",
        ],
        broken: open_to_everybody,
    },
    Check {
        keys: &[
            "auth.jwt.algorithm",
            "auth.jwt.issuer",
            "auth.jwt.audience",
            "auth.jwt.secret",
            "auth.jwt.public_key",
            "auth.jwt.jwks_url",
        ],
        broken: rules_without_a_key,
    },
    Check {
        keys: &[
            "auth.jwt.algorithm",
            "auth.jwt.secret",
            "auth.jwt.public_key",
            "auth.jwt.jwks_url",
        ],
        broken: key_of_another_algorithm,
    },
    Check {
        keys: &[
            "auth.jwt.role_admin",
            "auth.jwt.role_read_write",
            "auth.jwt.role_read_only",
            "auth.jwt.role_write_only",
        ],
        broken: roles_of_one_name,
    },
    Check {
        keys: &["queue.encryption_key"],
        broken: no_encryption_key,
    },
    Check {
        keys: &["http.default_hold", "http.max_hold"],
        broken: default_hold_too_long,
    },
    Check {
        keys: &["bus.url", "store"],
        broken: bus_without_nodes,
    },
    Check {
        keys: &["jobs.admin_email", "jobs.admin_password"],
        broken: half_an_admin,
    },
    Check {
        keys: &["jobs.read_hold", "jobs.max_read_hold"],
        broken: default_read_hold_too_long,
    },
    Check {
        keys: &["jobs.results_by_category"],
        broken: no_place_for_answers,
    },
    Check {
        keys: &[
            "jobs.results",
            "jobs.results_by_category",
            "jobs.redis",
            "bus.url",
        ],
        broken: redis_without_a_url,
    },
    Check {
        keys: &["durable.schema", "durable.database", "store"],
        broken: durable_without_postgres,
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
    let is_open = !is_loopback && !config.asks_for_login() && !config.insecure;
    is_open.then(|| {
        format!(
            "{} is not a loopback address and no authentication is configured: \
             set auth.tokens or a key of auth.jwt, or set insecure = true to let everybody in",
            config.listen
        )
    })
}

impl Config {
    /// Whether callers must say who they are.
    #[must_use]
    pub fn asks_for_login(&self) -> bool {
        !self.auth.tokens.is_empty() || self.jwt.has_key()
    }
}

impl Jwt {
    /// Whether there is anything to check signatures with, without which signed tokens are off.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.secret.is_some() || self.has_public_key()
    }

    fn has_public_key(&self) -> bool {
        self.public_key.is_some() || self.jwks_url.is_some()
    }
}

fn rules_without_a_key(config: &Config) -> Option<String> {
    let jwt = &config.jwt;
    let has_rules =
        jwt.algorithm != Algorithm::Auto || jwt.issuer.is_some() || jwt.audience.is_some();
    (has_rules && !jwt.has_key()).then(|| {
        "there are rules for signed tokens, but no key to check them with: \
         set auth.jwt.secret, auth.jwt.public_key or auth.jwt.jwks_url, or leave the rules out"
            .to_owned()
    })
}

fn key_of_another_algorithm(config: &Config) -> Option<String> {
    let jwt = &config.jwt;
    let lacking = match jwt.algorithm {
        Algorithm::Auto => return None,
        // Said by rules_without_a_key.
        _ if !jwt.has_key() => return None,
        Algorithm::Hs256 if jwt.has_public_key() => {
            "HS256 is checked with a secret, not with a public key: \
             leave auth.jwt.public_key and auth.jwt.jwks_url empty, or set auth.jwt.algorithm to auto"
        }
        Algorithm::Rs256 | Algorithm::EdDsa if jwt.secret.is_some() => {
            "RS256 and EdDSA are checked with a public key, not with a secret: \
             leave auth.jwt.secret empty, or set auth.jwt.algorithm to auto"
        }
        Algorithm::Hs256 | Algorithm::Rs256 | Algorithm::EdDsa => return None,
    };
    Some(lacking.to_owned())
}

fn roles_of_one_name(config: &Config) -> Option<String> {
    let jwt = &config.jwt;
    let mut names = [
        &jwt.role_admin,
        &jwt.role_read_write,
        &jwt.role_read_only,
        &jwt.role_write_only,
    ];
    names.sort();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(format!(
        "two roles are called {:?}: each needs a name of its own",
        twice[0]
    ))
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

fn no_encryption_key(config: &Config) -> Option<String> {
    let key = config.queue.encryption_key.as_ref()?;
    Sealer::from_hex(key.expose()).is_none().then(|| {
        "not 64 hexadecimal digits (32 bytes); `openssl rand -hex 32` makes one".to_owned()
    })
}

fn half_an_admin(config: &Config) -> Option<String> {
    let jobs = &config.jobs;
    (jobs.admin_email.is_some() != jobs.admin_password.is_some()).then(|| {
        "a superuser has an email and a password: set both, or leave both empty".to_owned()
    })
}

fn default_read_hold_too_long(config: &Config) -> Option<String> {
    (config.jobs.read_hold > config.jobs.max_read_hold).then(|| {
        "the default hold of a read is longer than the longest: lower jobs.read_hold, or raise \
         jobs.max_read_hold"
            .to_owned()
    })
}

impl Jobs {
    /// Where answers of these categories are kept. An entry that says nothing of the kind is `None`.
    pub(crate) fn places(&self) -> Vec<Option<(String, Results)>> {
        let entries = self.results_by_category.iter();
        entries
            .map(|entry| {
                let (category, place) = entry.split_once('=')?;
                Some((category.trim().to_owned(), Results::parse(place.trim())?))
            })
            .collect()
    }

    /// Whether anything is kept there.
    pub(crate) fn keeps_in(&self, place: Results) -> bool {
        self.results == place
            || self
                .places()
                .iter()
                .flatten()
                .any(|(_, known)| *known == place)
    }
}

fn no_place_for_answers(config: &Config) -> Option<String> {
    let places = config.jobs.places();
    let entries = config.jobs.results_by_category.iter().zip(places);
    let wrong: Vec<&str> = entries
        .filter(|(_, place)| place.is_none())
        .map(|(entry, _)| entry.as_str())
        .collect();
    (!wrong.is_empty()).then(|| {
        format!(
            "{} is not a category and store, redis or files, as in frames=files",
            wrong.join(", ")
        )
    })
}

fn redis_without_a_url(config: &Config) -> Option<String> {
    let has_url = config.jobs.redis.is_some() || config.bus.url.is_some();
    (config.jobs.keeps_in(Results::Redis) && !has_url).then(|| {
        "answers are to be kept in Redis, but it is not said where it is: set jobs.redis or bus.url"
            .to_owned()
    })
}

fn durable_without_postgres(config: &Config) -> Option<String> {
    let durable = &config.durable;
    let is_nowhere = durable.database.is_none() && config.store == Store::Sqlite;
    (durable.schema.is_some() && is_nowhere).then(|| {
        "a durable schema is in PostgreSQL, and the store is SQLite: set durable.database to the \
         database that has it, or leave durable.schema empty"
            .to_owned()
    })
}
