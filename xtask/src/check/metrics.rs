//! Each metric is described in the crate that counts it, so that `/metrics` explains it.

use std::collections::BTreeSet;

use super::sources::Source;

const KINDS: [&str; 3] = ["counter", "gauge", "histogram"];

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut counted = BTreeSet::new();
    let mut described = BTreeSet::new();
    for source in sources
        .iter()
        .filter(|source| !source.is_test() && source.crate_name() != "xtask")
    {
        for (kind, is_description, name) in metrics(&source.text) {
            let known = if is_description {
                &mut described
            } else {
                &mut counted
            };
            known.insert((source.crate_name(), kind, name));
        }
    }
    let missing = counted.difference(&described);
    missing
        .map(|(crate_name, kind, name)| {
            format!("crates/{crate_name}: no `describe_{kind}!(\"{name}\", …)`")
        })
        .collect()
}

/// Each macro of a metric with its kind and the metric's name, and whether it is a description.
fn metrics(text: &str) -> Vec<(&'static str, bool, String)> {
    let text: String = text.split_whitespace().collect();
    let mut found = Vec::new();
    for kind in KINDS {
        let start = format!("{kind}!(\"");
        for (at, _) in text.match_indices(&start) {
            let name = text[at + start.len()..].split('"').next();
            let is_description = text[..at].ends_with("describe_");
            found.push((kind, is_description, name.unwrap_or_default().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_without_a_description_in_its_crate_is_a_failure() {
        let counts = Source::new(
            "crates/bus/src/a.rs",
            "metrics::counter!(\n  \"sent\", \"a\" => b)",
        );
        let elsewhere = Source::new(
            "crates/web/src/a.rs",
            "describe_counter!(\"sent\", \"Sent\")",
        );
        let here = Source::new(
            "crates/bus/src/b.rs",
            "describe_counter!(\"sent\", \"Sent\")",
        );
        let failures = |other| check(&[Source::new(&counts.path, &counts.text), other]);
        assert_eq!(
            failures(elsewhere),
            ["crates/bus: no `describe_counter!(\"sent\", …)`"]
        );
        assert_eq!(failures(here), [""; 0]);
    }
}
