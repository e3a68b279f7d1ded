//! Rules over several settings.

use anyhow::{Context, Result, bail};
use wakeline_queue::seal::Sealer;

use super::mistake::Mistake;
use super::units::show_duration;
use super::value::{Algorithm, ResultBackend, Store};
use super::{Config, Jobs, Jwt, ResolvedSettings};
use crate::callers::Network;

/// The default of `jobs.min_password` beyond loopback, where strangers may guess passwords.
const MIN_PASSWORD_BEYOND: usize = 8;

struct Check {
    /// The settings of the rule. It is skipped when one of them is itself a mistake.
    keys: &'static [&'static str],
    /// What is wrong, and each way to mend it.
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
        broken: open_without_login,
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
        broken: token_rules_without_key,
    },
    Check {
        keys: &[
            "auth.jwt.algorithm",
            "auth.jwt.secret",
            "auth.jwt.public_key",
            "auth.jwt.jwks_url",
        ],
        broken: key_for_other_algorithm,
    },
    Check {
        keys: &[
            "auth.jwt.role_admin",
            "auth.jwt.role_read_write",
            "auth.jwt.role_read_only",
            "auth.jwt.role_write_only",
        ],
        broken: duplicate_role_names,
    },
    Check {
        keys: &["queue.encryption_key"],
        broken: invalid_encryption_key,
    },
    Check {
        keys: &["http.default_hold", "http.max_hold"],
        broken: default_hold_too_long,
    },
    Check {
        keys: &["http.allowed_origins"],
        broken: origin_that_is_none,
    },
    Check {
        keys: &["http.trusted_proxies"],
        broken: network_that_is_none,
    },
    Check {
        keys: &["bus.url", "store"],
        broken: bus_without_nodes,
    },
    Check {
        keys: &["jobs.admin_email", "jobs.admin_password"],
        broken: incomplete_admin,
    },
    Check {
        keys: &["jobs.admin_password", "jobs.min_password", "listen"],
        broken: admin_password_too_short,
    },
    Check {
        keys: &["jobs.read_hold", "jobs.max_read_hold"],
        broken: default_read_hold_too_long,
    },
    Check {
        keys: &["jobs.results_by_category"],
        broken: unknown_result_backend,
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

pub(super) fn check(config: &Config, resolved: &ResolvedSettings, mistakes: &mut Vec<Mistake>) {
    for Check { keys, broken } in CHECKS {
        if keys.iter().any(|key| resolved.is_mistaken(key)) {
            continue;
        }
        // A name has no addresses yet; `Config::resolve` applies these rules.
        if keys.contains(&"listen") && config.listen.addresses().is_empty() {
            continue;
        }
        if let Some(message) = broken(config) {
            let keys = keys.iter().map(|key| (*key, resolved.origin(key).clone()));
            let keys = keys.collect();
            mistakes.push(Mistake::Conflict { keys, message });
        }
    }
}

fn open_without_login(config: &Config) -> Option<String> {
    let open = config.listen.open_address()?;
    (!config.asks_for_login() && !config.insecure).then(|| {
        format!(
            "{open} is not a loopback address and no authentication is configured: \
             set auth.tokens or a key of auth.jwt, or set insecure = true to allow every caller"
        )
    })
}

impl Config {
    /// At the start: looks the name of `listen` up, and applies the rules over its addresses.
    pub(crate) async fn resolve(&mut self) -> Result<()> {
        let looked_up = self.listen.resolve().await;
        looked_up
            .with_context(|| format!("listen: the addresses of {} cannot be found", self.listen))?;
        for Check { keys, broken } in CHECKS {
            if keys.contains(&"listen")
                && let Some(message) = broken(self)
            {
                bail!("listen: {}: {message}", self.listen);
            }
        }
        Ok(())
    }

    /// Characters that a user's password has at least.
    pub(crate) fn min_password(&self) -> usize {
        match self.jobs.min_password {
            0 if self.listen.is_loopback() => 1,
            0 => MIN_PASSWORD_BEYOND,
            fewest => fewest,
        }
    }

    /// Whether callers need a token.
    #[must_use]
    pub fn asks_for_login(&self) -> bool {
        !self.auth.tokens.is_empty() || self.jwt.has_key()
    }
}

impl Jwt {
    /// Whether there is a key to verify signatures with. Without one, signed tokens are off.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.secret.is_some() || self.has_public_key()
    }

    fn has_public_key(&self) -> bool {
        self.public_key.is_some() || self.jwks_url.is_some()
    }
}

fn network_that_is_none(config: &Config) -> Option<String> {
    let mut networks = config.http.trusted_proxies.iter();
    let wrong = networks.find(|text| Network::parse(text).is_none())?;
    Some(format!(
        "{wrong:?} is no network: write an address, or a network such as 10.0.0.0/8"
    ))
}

fn origin_that_is_none(config: &Config) -> Option<String> {
    let is_origin = |text: &str| {
        let host = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        text == "*" || host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
    };
    let wrong = config
        .http
        .allowed_origins
        .iter()
        .find(|text| !is_origin(text))?;
    Some(format!(
        "{wrong:?} is no origin: write a scheme and a host without a path, such as \
         https://app.example.com"
    ))
}

fn token_rules_without_key(config: &Config) -> Option<String> {
    let jwt = &config.jwt;
    let has_rules =
        jwt.algorithm != Algorithm::Auto || jwt.issuer.is_some() || jwt.audience.is_some();
    (has_rules && !jwt.has_key()).then(|| {
        "there are rules for signed tokens, but no key to verify them with: \
         set auth.jwt.secret, auth.jwt.public_key or auth.jwt.jwks_url, or leave the rules out"
            .to_owned()
    })
}

fn key_for_other_algorithm(config: &Config) -> Option<String> {
    let jwt = &config.jwt;
    let lacking = match jwt.algorithm {
        Algorithm::Auto => return None,
        // Said by token_rules_without_key.
        _ if !jwt.has_key() => return None,
        Algorithm::Hs256 if jwt.has_public_key() => {
            "HS256 is verified with a secret, not with a public key: \
             leave auth.jwt.public_key and auth.jwt.jwks_url empty, or set auth.jwt.algorithm to auto"
        }
        Algorithm::Rs256 | Algorithm::EdDsa if jwt.secret.is_some() => {
            "RS256 and EdDSA are verified with a public key, not with a secret: \
             leave auth.jwt.secret empty, or set auth.jwt.algorithm to auto"
        }
        Algorithm::Hs256 | Algorithm::Rs256 | Algorithm::EdDsa => return None,
    };
    Some(lacking.to_owned())
}

fn duplicate_role_names(config: &Config) -> Option<String> {
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
        "a SQLite file belongs to one node, so there are no other nodes for a bus: \
         leave bus.url empty, or set store to the URL of a PostgreSQL database"
            .to_owned()
    })
}

fn invalid_encryption_key(config: &Config) -> Option<String> {
    let key = config.queue.encryption_key.as_ref()?;
    Sealer::from_hex(key.expose()).is_none().then(|| {
        "not 64 hexadecimal digits (32 bytes), nor at most 16 such keys separated by commas; \
         `openssl rand -hex 32` makes one"
            .to_owned()
    })
}

fn incomplete_admin(config: &Config) -> Option<String> {
    let jobs = &config.jobs;
    (jobs.admin_email.is_some() != jobs.admin_password.is_some()).then(|| {
        "the superuser needs an email and a password: set both, or leave both empty".to_owned()
    })
}

fn admin_password_too_short(config: &Config) -> Option<String> {
    let (given, fewest) = (config.jobs.admin_password.as_ref()?, config.min_password());
    (given.expose().chars().count() < fewest).then(|| {
        format!(
            "the superuser's password has fewer than {fewest} characters: lengthen \
             jobs.admin_password, or lower jobs.min_password (by default {MIN_PASSWORD_BEYOND} \
             where the server listens beyond loopback)"
        )
    })
}

fn default_read_hold_too_long(config: &Config) -> Option<String> {
    (config.jobs.read_hold > config.jobs.max_read_hold).then(|| {
        "the default hold of a read is longer than the longest hold: lower jobs.read_hold, or raise \
         jobs.max_read_hold"
            .to_owned()
    })
}

impl Jobs {
    /// The entries of `results_by_category`. One that cannot be parsed is `None`.
    pub(crate) fn result_backends(&self) -> Vec<Option<(String, ResultBackend)>> {
        let entries = self.results_by_category.iter();
        entries
            .map(|entry| {
                let (category, backend) = entry.split_once('=')?;
                Some((
                    category.trim().to_owned(),
                    ResultBackend::parse(backend.trim())?,
                ))
            })
            .collect()
    }

    /// Whether any results are kept in this backend.
    pub(crate) fn keeps_in(&self, backend: ResultBackend) -> bool {
        self.results == backend
            || self
                .result_backends()
                .iter()
                .flatten()
                .any(|(_, listed)| *listed == backend)
    }
}

fn unknown_result_backend(config: &Config) -> Option<String> {
    let backends = config.jobs.result_backends();
    let entries = config.jobs.results_by_category.iter().zip(backends);
    let wrong: Vec<&str> = entries
        .filter(|(_, backend)| backend.is_none())
        .map(|(entry, _)| entry.as_str())
        .collect();
    (!wrong.is_empty()).then(|| {
        format!(
            "{}: expected a category and store, redis or files, as in frames=files",
            wrong.join(", ")
        )
    })
}

fn redis_without_a_url(config: &Config) -> Option<String> {
    let has_url = config.jobs.redis.is_some() || config.bus.url.is_some();
    (config.jobs.keeps_in(ResultBackend::Redis) && !has_url).then(|| {
        "results are to be kept in Redis, but no Redis is configured: set jobs.redis or bus.url"
            .to_owned()
    })
}

fn durable_without_postgres(config: &Config) -> Option<String> {
    let durable = &config.durable;
    let is_nowhere = durable.database.is_none() && config.store == Store::Sqlite;
    (durable.schema.is_some() && is_nowhere).then(|| {
        "a durable schema is in PostgreSQL, but the store is SQLite: set durable.database to the \
         database that has it, or leave durable.schema empty"
            .to_owned()
    })
}
