//! `deny.toml`: which crates may come in, from where, and under which licence. cargo-deny reads the
//! same file and knows more; building it takes minutes, so only `--advisories` needs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};
use toml::Table;

const FILE: &str = "deny.toml";
const REGISTRY: &str = "registry+";

/// The rules of the file that are checked here.
struct Rules {
    licences: Vec<Licensee>,
    banned: BTreeSet<String>,
    registries: BTreeSet<String>,
}

/// `metadata` is the whole graph: all features, for the platforms of the file.
pub(crate) fn check(root: &Path, metadata: &Value) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}"))?;
    failures(&Rules::read(&text)?, metadata)
}

/// The platforms whose dependencies are checked.
pub(crate) fn platforms(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}"))?;
    let table: Table = text.parse()?;
    strings(&table, "graph", "targets")
}

impl Rules {
    fn read(text: &str) -> Result<Rules> {
        let table: Table = text.parse()?;
        // A rule that only cargo-deny knows would never be checked.
        for (section, known) in [
            (
                "licenses",
                &[
                    "allow",
                    "confidence-threshold",
                    "private",
                    "unused-allowed-license",
                ][..],
            ),
            (
                "bans",
                &[
                    "allow-wildcard-paths",
                    "deny",
                    "multiple-versions",
                    "wildcards",
                ],
            ),
            (
                "sources",
                &[
                    "allow-git",
                    "allow-registry",
                    "unknown-git",
                    "unknown-registry",
                ],
            ),
        ] {
            let keys = table.get(section).and_then(toml::Value::as_table);
            for key in keys
                .with_context(|| format!("{FILE} has no [{section}]"))?
                .keys()
            {
                if !known.contains(&key.as_str()) {
                    bail!("{FILE}: xtask/src/check/dependencies.rs does not know {section}.{key}");
                }
            }
        }
        let licences = strings(&table, "licenses", "allow")?;
        let banned = table["bans"].get("deny").and_then(toml::Value::as_array);
        let banned = banned.into_iter().flatten();
        Ok(Rules {
            licences: licences
                .iter()
                .map(|name| Licensee::parse(name).with_context(|| format!("{FILE}: {name}")))
                .collect::<Result<_>>()?,
            banned: banned
                .filter_map(|entry| Some(entry.get("name")?.as_str()?.to_owned()))
                .collect(),
            registries: strings(&table, "sources", "allow-registry")?
                .into_iter()
                .collect(),
        })
    }
}

fn strings(table: &Table, section: &str, key: &str) -> Result<Vec<String>> {
    let found = table.get(section).and_then(|section| section.get(key));
    let found = found.and_then(toml::Value::as_array);
    let found = found.with_context(|| format!("{FILE} has no {section}.{key}"))?;
    let texts = found.iter().filter_map(toml::Value::as_str);
    Ok(texts.map(str::to_owned).collect())
}

fn failures(rules: &Rules, metadata: &Value) -> Result<Vec<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array();
    let nodes = nodes.context("metadata has no graph")?;
    let used: BTreeSet<&str> = nodes
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let packages = metadata["packages"].as_array();
    let packages = packages.context("metadata has no packages")?.iter();
    Ok(packages
        .filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)))
        .flat_map(|package| of_package(rules, package))
        .collect())
}

fn of_package(rules: &Rules, package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut failures = Vec::new();
    if rules.banned.contains(name) {
        failures.push(format!("{name} is banned by {FILE}"));
    }
    match package["license"].as_str() {
        None => failures.push(format!("{name} names no licence")),
        Some(licence) if !is_allowed(licence, &rules.licences) => {
            failures.push(format!("{name}: {FILE} does not allow `{licence}`"));
        }
        Some(_) => {}
    }
    match package["source"].as_str() {
        // A crate of ours; the table of arrows knows them all.
        None => {}
        Some(source)
            if source
                .strip_prefix(REGISTRY)
                .is_some_and(|registry| rules.registries.contains(registry)) => {}
        Some(source) => failures.push(format!("{name}: {FILE} does not allow {source}")),
    }
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    for dependency in dependencies.filter(|found| found["path"].is_null() && found["req"] == "*") {
        let other = dependency["name"].as_str().unwrap_or_default();
        // The crates that a dependency's own tests use are never built here.
        if package["source"].is_null() || dependency["kind"] != "dev" {
            failures.push(format!("{name} allows any version of {other}"));
        }
    }
    failures
}

fn is_allowed(licence: &str, allowed: &[Licensee]) -> bool {
    // Old crates write `/` for OR.
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|required| allowed.iter().any(|one| one.satisfies(required)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "BSD-3-Clause"]
        [bans]
        wildcards = "deny"
        deny = [{ name = "openssl", reason = "one TLS library" }]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#;
    const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut package = json!({
            "id": "one", "name": "one", "license": "MIT OR Apache-2.0", "source": CRATES_IO,
            "dependencies": [{"name": "other", "req": "^1", "kind": null, "path": null}],
        });
        change(&mut package);
        let metadata = json!({
            "resolve": {"nodes": [{"id": "one"}]},
            "packages": [package, {"id": "unused", "name": "unused", "license": "GPL-3.0"}],
        });
        failures(&Rules::read(RULES).unwrap(), &metadata).unwrap()
    }

    #[test]
    fn a_crate_from_the_registry_under_an_allowed_licence_is_allowed() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "MIT AND BSD-3-Clause",
        ] {
            let found = found(|package| package["license"] = json!(licence));
            assert_eq!(found, Vec::<String>::new(), "{licence}");
        }
    }

    #[test]
    fn a_licence_that_is_missing_or_not_allowed_is_a_failure() {
        for licence in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "no idea",
        ] {
            let found = found(|package| package["license"] = json!(licence));
            assert_eq!(
                found,
                [format!("one: deny.toml does not allow `{licence}`")]
            );
        }
        let found = found(|package| package["license"] = Value::Null);
        assert_eq!(found, ["one names no licence"]);
    }

    #[test]
    fn a_banned_crate_is_a_failure() {
        let found = found(|package| package["name"] = json!("openssl"));
        assert_eq!(found, ["openssl is banned by deny.toml"]);
    }

    #[test]
    fn a_source_that_is_not_allowed_is_a_failure() {
        let found = found(|package| package["source"] = json!("git+https://example.org/one"));
        assert_eq!(
            found,
            ["one: deny.toml does not allow git+https://example.org/one"]
        );
    }

    #[test]
    fn only_our_own_crates_are_used_in_any_version() {
        let any = |kind: &str, path: Value| json!([{"name": "other", "req": "*", "kind": kind, "path": path}]);
        let outside = found(|package| package["dependencies"] = any("build", Value::Null));
        assert_eq!(outside, ["one allows any version of other"]);
        let tests = found(|package| package["dependencies"] = any("dev", Value::Null));
        assert_eq!(tests, Vec::<String>::new());
        let ours = found(|package| package["dependencies"] = any("normal", json!("/crates/other")));
        assert_eq!(ours, Vec::<String>::new());
    }

    #[test]
    fn a_rule_that_is_not_checked_here_is_refused() {
        let text = RULES.replace("[bans]", "[bans]\nskip = []");
        let error = Rules::read(&text).err().unwrap().to_string();
        assert!(error.contains("bans.skip"), "{error}");
    }
}
