//! What can be set for a queue.

use serde_json::{Map, Value, json};
use wakeline_web::Problem;

/// The largest time an option may say, in seconds: about thirty years.
const MAX_SECONDS: i64 = 1_000_000_000;
const MAX_COUNT: i64 = 1_000_000_000_000;
const MAX_PRIORITY: i64 = 1_000_000;
const MAX_RETRIES: i64 = 1_000_000;

/// As the stores keep them. Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `None`: the server's default.
    pub lease_ms: Option<i64>,
    pub retry_limit: i32,
    pub retry_delay_ms: i64,
    pub keeps_dead: bool,
    pub priority: i32,
    pub delay_ms: i64,
    pub window_ms: i64,
    /// 0: no limit.
    pub max_size: i64,
    /// What is older is not handed out any more.
    pub age_ms: Option<i64>,
    /// Whether that is how long a message may wait, and not how long it is retained.
    pub evicts: bool,
    /// What every group has consumed is swept when it is older.
    pub completed_ms: Option<i64>,
    pub is_sealed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease_ms: None,
            retry_limit: 3,
            retry_delay_ms: 0,
            keeps_dead: true,
            priority: 0,
            delay_ms: 0,
            window_ms: 0,
            max_size: 0,
            age_ms: None,
            evicts: false,
            completed_ms: None,
            is_sealed: false,
        }
    }
}

/// The options of a queue that nobody configured, as they are shown.
#[must_use]
pub fn defaults() -> Map<String, Value> {
    let Value::Object(map) = json!({
        "leaseTime": 300, "retryLimit": 3, "retryDelay": 0, "maxSize": 0, "ttl": 0, "priority": 0,
        "delayedProcessing": 0, "windowBuffer": 0, "retentionEnabled": false,
        "retentionSeconds": 0, "completedRetentionSeconds": 0, "encryptionEnabled": false,
        "maxWaitTimeSeconds": 0, "deadLetterQueue": true, "dlqAfterMaxRetries": true,
        "minPopWaitTime": 0, "dedupWindowSeconds": 3600,
    }) else {
        unreachable!("an object was written")
    };
    map
}

/// Reads what a caller gave. Gives the options and how they are shown: with the defaults.
pub fn read(given: &Map<String, Value>) -> Result<(Options, Map<String, Value>), Problem> {
    let mut shown = defaults();
    for (name, value) in given {
        // Unknown ones are for newer servers; clients send some.
        if let Some(known) = shown.get_mut(name)
            && !value.is_null()
        {
            check(name, known, value)?;
            *known = value.clone();
        }
    }
    let number = |name: &str| shown[name].as_i64().unwrap_or_default();
    let flag = |name: &str| shown[name].as_bool().unwrap_or_default();
    let seconds = |name: &str| number(name) * 1_000;
    if number("minPopWaitTime") > 0 {
        return Err(Problem::invalid(
            "options.minPopWaitTime",
            "not supported: a pop here is answered as soon as there is something; use windowBuffer \
             to gather messages",
        ));
    }
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
    let options = Options {
        lease_ms: given
            .get("leaseTime")
            .filter(|given| !given.is_null())
            .map(|_| seconds("leaseTime"))
            .filter(|time| *time > 0),
        retry_limit: i32::try_from(number("retryLimit")).unwrap_or(i32::MAX),
        // In milliseconds already.
        retry_delay_ms: number("retryDelay"),
        keeps_dead: flag("deadLetterQueue") && flag("dlqAfterMaxRetries"),
        priority: i32::try_from(number("priority")).unwrap_or(i32::MAX),
        delay_ms: seconds("delayedProcessing"),
        window_ms: seconds("windowBuffer"),
        max_size: number("maxSize"),
        age_ms: age.map(|(age_ms, _)| age_ms),
        evicts: age.is_some_and(|(_, evicts)| evicts),
        completed_ms: (retained && completed > 0).then_some(completed),
        is_sealed: flag("encryptionEnabled"),
    };
    Ok((options, shown))
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
        _ => (0, MAX_SECONDS),
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
    fn nothing_given_is_the_default() {
        let (options, shown) = read(&Map::new()).unwrap();
        assert_eq!(options, Options::default());
        assert_eq!(shown, defaults());
    }

    #[test]
    fn the_shortest_age_counts() {
        let (options, _) = read(&given(json!({
            "ttl": 50, "maxWaitTimeSeconds": 20, "retentionSeconds": 10, "retentionEnabled": false
        })))
        .unwrap();
        assert_eq!(options.age_ms, Some(20_000));
        let (options, _) = read(&given(json!({
            "retentionSeconds": 10, "retentionEnabled": true, "completedRetentionSeconds": 5
        })))
        .unwrap();
        assert_eq!(options.age_ms, Some(10_000));
        assert_eq!(options.completed_ms, Some(5_000));
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (bad, field) in [
            (json!({"leaseTime": "abc"}), "options.leaseTime"),
            (json!({"leaseTime": -1}), "options.leaseTime"),
            (json!({"encryptionEnabled": 1}), "options.encryptionEnabled"),
            (json!({"minPopWaitTime": 5}), "options.minPopWaitTime"),
            (json!({"ttl": 1.5}), "options.ttl"),
        ] {
            let problem = read(&given(bad)).unwrap_err();
            assert!(problem.detail().contains(field), "{}", problem.detail());
        }
    }
}
