//! The options of queues, and their defaults. On PostgreSQL a push creates queues with the defaults of
//! the columns in `postgres/001_tables.sql`; a test compares these
//! (`a_queue_without_configuration_has_the_default_options`), and another one `docs/queue.md`.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wakeline_web::Problem;

/// The largest time of an option, in the unit that the option has.
const MAX_TIME: i64 = 1_000_000_000;
const MAX_COUNT: i64 = 1_000_000_000_000;
const MAX_PRIORITY: i64 = 1_000_000;
const MAX_RETRIES: i64 = 1_000_000;

const ENCRYPTION: &str = "encryptionEnabled";

/// The options as they are stored. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `None`: the server's default.
    pub lease_ms: Option<i64>,
    pub retry_limit: i32,
    pub retry_delay_ms: i64,
    pub keeps_dead_letters: bool,
    pub priority: i32,
    pub delay_ms: i64,
    pub window_ms: i64,
    /// 0: no limit.
    pub max_size: i64,
    /// Older messages are not delivered any more.
    pub max_age_ms: Option<i64>,
    /// Whether the maximum age is how long a message may wait, and not how long it is retained.
    pub age_limits_waiting: bool,
    /// Messages that every group has consumed are swept when they are older.
    pub completed_retention_ms: Option<i64>,
    pub is_sealed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self::of(&defaults(Duration::ZERO), None)
    }
}

/// The options of a queue without configuration. `lease` is the server's setting.
fn defaults(lease: Duration) -> Map<String, Value> {
    let Value::Object(map) = json!({
        "leaseTime": lease.as_secs(), "retryLimit": 3, "retryDelay": 0, "maxSize": 0, "ttl": 0, "priority": 0,
        "delayedProcessing": 0, "windowBuffer": 0, "retentionEnabled": false,
        "retentionSeconds": 0, "completedRetentionSeconds": 0, "encryptionEnabled": false,
        "maxWaitTimeSeconds": 0, "deadLetterQueue": true, "dlqAfterMaxRetries": true,
        "minPopWaitTime": 0, "dedupWindowSeconds": 3600,
    }) else {
        unreachable!("an object was written")
    };
    map
}

/// The options by which a queue works: those that were configured, the others at their defaults.
/// `lease` is the server's setting, for a queue without a `leaseTime`.
#[must_use]
pub fn effective(
    given: &Map<String, Value>,
    lease_ms: Option<i64>,
    lease: Duration,
) -> Map<String, Value> {
    let mut all = defaults(lease);
    for (name, value) in given {
        if name != "leaseTime" {
            all.insert(name.clone(), value.clone());
        }
    }
    if let Some(lease_ms) = lease_ms {
        all.insert("leaseTime".into(), (lease_ms / 1_000).into());
    }
    all
}

/// What a call changes of a queue's options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptionChanges {
    /// By name; null restores the default.
    named: Map<String, Value>,
    /// Options that are not named get their defaults, instead of keeping their values.
    resets_others: bool,
}

impl OptionChanges {
    pub fn read(named: Map<String, Value>, resets_others: bool) -> Result<Self, Problem> {
        read(named.clone())?;
        Ok(Self {
            named,
            resets_others,
        })
    }

    /// Whether the outcome depends on the options that the queue has.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        !self.resets_others
    }

    /// The given options afterwards.
    #[must_use]
    pub fn apply(&self, before: &Map<String, Value>) -> Map<String, Value> {
        let mut given = match self.resets_others {
            true => Map::new(),
            false => before.clone(),
        };
        for (name, value) in &self.named {
            match value {
                Value::Null => given.remove(name),
                value => given.insert(name.clone(), value.clone()),
            };
        }
        given
    }

    #[must_use]
    pub fn asks_for_encryption(&self) -> bool {
        self.named.get(ENCRYPTION) == Some(&Value::Bool(true))
    }
}

/// Reads the options of a request. Returns all options, and those that were given.
pub fn read(asked: Map<String, Value>) -> Result<(Options, Map<String, Value>), Problem> {
    let mut all = defaults(Duration::ZERO);
    let mut given = Map::new();
    for (name, value) in asked {
        // Unknown options are ignored: clients send some that are for other servers.
        if let Some(known) = all.get_mut(&name)
            && !value.is_null()
        {
            check(&name, known, &value)?;
            *known = value.clone();
            given.insert(name, value);
        }
    }
    if all["minPopWaitTime"].as_i64() > Some(0) {
        return Err(Problem::invalid(
            "options.minPopWaitTime",
            "not supported: a pop here is answered as soon as there is a message; use windowBuffer \
             to collect messages",
        ));
    }
    // Zero seconds mean the server's default too.
    let lease = given.get("leaseTime").and_then(Value::as_i64);
    let lease_ms = lease
        .filter(|seconds| *seconds > 0)
        .map(|seconds| seconds * 1_000);
    Ok((Options::of(&all, lease_ms), given))
}

impl Options {
    /// From all options, each given or at its default, except the lease.
    fn of(all: &Map<String, Value>, lease_ms: Option<i64>) -> Self {
        let number = |name: &str| all[name].as_i64().unwrap_or_default();
        let flag = |name: &str| all[name].as_bool().unwrap_or_default();
        let seconds = |name: &str| number(name) * 1_000;
        let retained = flag("retentionEnabled");
        // The shortest counts.
        let age = [
            (true, "ttl"),
            (true, "maxWaitTimeSeconds"),
            (retained, "retentionSeconds"),
        ]
        .into_iter()
        .filter(|(counts, name)| *counts && number(name) > 0)
        .map(|(_, name)| (seconds(name), name != "retentionSeconds"))
        .min();
        let completed = seconds("completedRetentionSeconds");
        Self {
            lease_ms,
            retry_limit: i32::try_from(number("retryLimit")).unwrap_or(i32::MAX),
            // In milliseconds already.
            retry_delay_ms: number("retryDelay"),
            keeps_dead_letters: flag("deadLetterQueue") && flag("dlqAfterMaxRetries"),
            priority: i32::try_from(number("priority")).unwrap_or(i32::MAX),
            delay_ms: seconds("delayedProcessing"),
            window_ms: seconds("windowBuffer"),
            max_size: number("maxSize"),
            max_age_ms: age.map(|(max_age_ms, _)| max_age_ms),
            age_limits_waiting: age.is_some_and(|(_, age_limits_waiting)| age_limits_waiting),
            completed_retention_ms: (retained && completed > 0).then_some(completed),
            is_sealed: flag("encryptionEnabled"),
        }
    }
}

fn check(name: &str, default: &Value, value: &Value) -> Result<(), Problem> {
    let field = format!("options.{name}");
    if default.is_boolean() {
        return match value {
            Value::Bool(_) => Ok(()),
            _ => Err(Problem::invalid(&field, "must be true or false")),
        };
    }
    let (least, most) = match name {
        "priority" => (-MAX_PRIORITY, MAX_PRIORITY),
        "retryLimit" => (0, MAX_RETRIES),
        "maxSize" => (0, MAX_COUNT),
        _ => (0, MAX_TIME),
    };
    match value.as_i64() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => Err(Problem::invalid(
            &field,
            format!("must be a whole number from {least} to {most}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(json: Value) -> Map<String, Value> {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn an_omitted_option_has_the_servers_default() {
        let (options, stored) = read(given(json!({"leaseTime": null, "retryLimit": 3}))).unwrap();
        assert_eq!(options, Options::default());
        assert_eq!(stored, given(json!({"retryLimit": 3})));
        for lease in [7, 8] {
            let lease = Duration::from_secs(lease);
            let shown = effective(&stored, options.lease_ms, lease);
            assert_eq!(shown, defaults(lease));
            assert_eq!(shown["leaseTime"], lease.as_secs());
        }
    }

    #[test]
    fn the_docs_have_the_default_of_each_option() {
        let docs = include_str!("../../../docs/queue.md");
        let (_, table) = docs.split_once("| option | meaning | default |").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        // Rows whose default is a number or a flag; the others describe it in words.
        let rows = table.lines().filter_map(|line| {
            let cells: Vec<_> = line.strip_prefix("| `")?.split(" | ").collect();
            let default = cells.last()?.strip_suffix(" |")?;
            Some((cells[0].to_owned(), default.parse::<Value>().ok()?))
        });
        let mut listed = 0;
        for (names, default) in rows {
            for name in names.split("`, `") {
                let name = name.trim_end_matches('`');
                assert_eq!(defaults(Duration::ZERO).get(name), Some(&default), "{name}");
                listed += 1;
            }
        }
        assert_eq!(listed, 8);
    }

    #[test]
    fn a_change_keeps_resets_or_restores_the_other_options() {
        let before = given(json!({"ttl": 5, "retryLimit": 1}));
        for (named, resets_others, after) in [
            (
                json!({"priority": 2}),
                false,
                json!({"ttl": 5, "retryLimit": 1, "priority": 2}),
            ),
            (
                json!({"ttl": null, "retryLimit": 4}),
                false,
                json!({"retryLimit": 4}),
            ),
            (
                json!({"priority": 2, "ttl": null}),
                true,
                json!({"priority": 2}),
            ),
            (json!({}), true, json!({})),
        ] {
            let changes = OptionChanges::read(given(named), resets_others).unwrap();
            assert_eq!(changes.apply(&before), given(after));
        }
        assert!(OptionChanges::read(given(json!({"ttl": "soon"})), false).is_err());
    }

    #[test]
    fn a_lease_of_no_seconds_is_the_servers_default() {
        let (options, stored) = read(given(json!({"leaseTime": 0}))).unwrap();
        assert_eq!(options.lease_ms, None);
        let shown = effective(&stored, options.lease_ms, Duration::from_secs(7));
        assert_eq!(shown["leaseTime"], 7);
    }

    #[test]
    fn the_shortest_maximum_age_applies() {
        let (options, _) = read(given(json!({
            "ttl": 50, "maxWaitTimeSeconds": 20, "retentionSeconds": 10, "retentionEnabled": false
        })))
        .unwrap();
        assert_eq!(options.max_age_ms, Some(20_000));
        let (options, _) = read(given(json!({
            "retentionSeconds": 10, "retentionEnabled": true, "completedRetentionSeconds": 5
        })))
        .unwrap();
        assert_eq!(options.max_age_ms, Some(10_000));
        assert_eq!(options.completed_retention_ms, Some(5_000));
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_options_name() {
        for (bad, field) in [
            (json!({"leaseTime": "abc"}), "options.leaseTime"),
            (json!({"leaseTime": -1}), "options.leaseTime"),
            (json!({"encryptionEnabled": 1}), "options.encryptionEnabled"),
            (json!({"minPopWaitTime": 5}), "options.minPopWaitTime"),
            (json!({"ttl": 1.5}), "options.ttl"),
        ] {
            let problem = read(given(bad)).unwrap_err();
            assert!(problem.detail().contains(field), "{}", problem.detail());
        }
    }
}
