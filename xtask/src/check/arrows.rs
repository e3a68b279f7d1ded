//! Which crate may depend on which. A crate or a dependency that is not in the table is a failure.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

const PREFIX: &str = "wakeline-";
/// Its package is the binary's name, `wakeline`.
const CLI: &str = "cli";

const DOORS: [&str; 4] = ["queue", "jobs", "feed", "durable"];
const FOR_DOORS: &[&str] = &["web", "store", "bus", "wake"];
/// Any crate's tests may use these.
const FOR_TESTS: [&str; 4] = ["testbed", "testkit", "client", "store"];

/// `None` for a crate the table does not know.
fn allowed(name: &str) -> Option<Vec<&'static str>> {
    let crates: &[&'static str] = match name {
        "wake" | "store" | "client" | "testbed" => &[],
        "bus" => &["wake", "store"],
        "web" => &["wake"],
        "testkit" => &["bus", "store", "wake"],
        "server" => return Some([&DOORS, FOR_DOORS].concat()),
        "bench" => &["client", "durable", "store", "testbed", "wake"],
        CLI => &["server", "client", "durable"],
        "fuzz" => &["server", "queue", "jobs", "feed", "web"],
        "xtask" => &["testbed"],
        door if DOORS.contains(&door) => FOR_DOORS,
        _ => return None,
    };
    Some(crates.to_vec())
}

pub(crate) fn check(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"]
        .as_array()
        .context("metadata has no packages")?;
    let members: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut failures = Vec::new();
    for package in packages {
        let from = crate_name(package["name"].as_str().unwrap_or_default());
        let Some(allowed) = allowed(from) else {
            failures.push(format!("crate `{from}` is not in the table of arrows"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            // A path is a crate of ours even where the workspace leaves it out.
            if !members.contains(name) && dependency["path"].is_null() {
                continue;
            }
            let to = crate_name(name);
            let in_tests = dependency["kind"] == "dev";
            let is_allowed =
                allowed.contains(&to) || (in_tests && (FOR_TESTS.contains(&to) || to == from));
            if !is_allowed {
                let kind = if in_tests {
                    "dev-dependency"
                } else {
                    "dependency"
                };
                failures.push(format!(
                    "{kind} {from} → {to} is not in the table of arrows"
                ));
            }
        }
    }
    Ok(failures)
}

fn crate_name(package: &str) -> &str {
    match package {
        "wakeline" => CLI,
        other => other.strip_prefix(PREFIX).unwrap_or(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failures(edges: &[(&str, &[(&str, &str)])]) -> Vec<String> {
        let packages: Vec<Value> = edges
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<Value> = dependencies
                    .iter()
                    .map(|(name, kind)| {
                        let kind = (!kind.is_empty()).then_some(kind);
                        let path = name.starts_with("wakeline").then_some("/somewhere");
                        json!({ "name": name, "kind": kind, "path": path })
                    })
                    .collect();
                json!({ "name": name, "dependencies": dependencies })
            })
            .collect();
        check(&json!({ "packages": packages })).unwrap()
    }

    #[test]
    fn the_dependencies_of_the_table_are_allowed() {
        let found = failures(&[
            ("wakeline-wake", &[("serde", "")]),
            (
                "wakeline-queue",
                &[("wakeline-web", ""), ("wakeline-wake", "")],
            ),
            (
                "wakeline-server",
                &[("wakeline-queue", ""), ("wakeline-store", "")],
            ),
            (
                "wakeline",
                &[("wakeline-server", ""), ("wakeline-testbed", "dev")],
            ),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_door_may_not_use_another_door_even_in_tests() {
        let found = failures(&[(
            "wakeline-queue",
            &[("wakeline-jobs", ""), ("wakeline-feed", "dev")],
        )]);
        assert_eq!(
            found,
            [
                "dependency queue → jobs is not in the table of arrows",
                "dev-dependency queue → feed is not in the table of arrows"
            ]
        );
    }

    #[test]
    fn a_crate_that_is_only_for_tests_is_no_dependency() {
        let found = failures(&[("wakeline-wake", &[("wakeline-store", "")])]);
        assert_eq!(
            found,
            ["dependency wake → store is not in the table of arrows"]
        );
    }

    #[test]
    fn a_build_dependency_is_a_dependency() {
        let found = failures(&[("wakeline-web", &[("wakeline-store", "build")])]);
        assert_eq!(
            found,
            ["dependency web → store is not in the table of arrows"]
        );
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_a_failure() {
        let found = failures(&[("wakeline-types", &[])]);
        assert_eq!(found, ["crate `types` is not in the table of arrows"]);
    }
}
