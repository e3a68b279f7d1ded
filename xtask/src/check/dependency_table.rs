//! The table of dependencies in ARCHITECTURE.md has a row for each external crate of
//! `[workspace.dependencies]`, and no other rows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const DOCUMENT: &str = "ARCHITECTURE.md";

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
    let used = external_crates(&manifest)?;
    let Ok(document) = fs::read_to_string(root.join(DOCUMENT)) else {
        return Ok(vec![format!("{DOCUMENT} is missing")]);
    };
    Ok(differences(&used, &rows(&document)))
}

fn differences(used: &BTreeSet<String>, listed: &BTreeSet<String>) -> Vec<String> {
    let missing = used
        .difference(listed)
        .map(|name| format!("{DOCUMENT}: the dependency table has no row for `{name}`"));
    let stale = listed
        .difference(used)
        .map(|name| format!("{DOCUMENT}: `{name}` is no workspace dependency any more"));
    missing.chain(stale).collect()
}

fn external_crates(manifest: &str) -> Result<BTreeSet<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let dependencies = manifest["workspace"]
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .context("Cargo.toml has no [workspace.dependencies]")?;
    Ok(dependencies
        .iter()
        .filter(|(_, dependency)| dependency.get("path").is_none())
        .map(|(name, _)| name.clone())
        .collect())
}

/// The names in the first cell of rows that start with "| `", but only under a
/// heading about dependencies: other tables may name other things.
fn rows(document: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in document.lines() {
        if line.starts_with('#') {
            inside = line.to_lowercase().contains("dependencies");
        } else if inside && let Some(cells) = line.strip_prefix("| `") {
            let first = cells.split('|').next().unwrap_or_default();
            // Every second part lies between backquotes; the first one is open already.
            names.extend(
                first
                    .split('`')
                    .step_by(2)
                    .map(str::trim)
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn crates_of_our_own_are_not_external() {
        let manifest = "[workspace.dependencies]\n\
                        wakeline-wake = { path = \"crates/wake\" }\n\
                        bytes = \"1\"\n\
                        axum = { version = \"0.8\" }\n";
        assert_eq!(external_crates(manifest).unwrap(), set(&["axum", "bytes"]));
    }

    #[test]
    fn rows_are_read_only_under_the_heading() {
        let document = "# Map\n| `wake` | the engine |\n\
                        ## Dependencies\n| crate | why |\n|---|---|\n\
                        | `axum` | HTTP |\n| `http`, `http-body` | its types |\n\
                        ## Words\n| `door` | a crate |\n";
        assert_eq!(rows(document), set(&["axum", "http", "http-body"]));
    }

    #[test]
    fn a_missing_row_and_a_row_without_its_crate_are_failures() {
        let found = differences(&set(&["axum", "bytes"]), &set(&["axum", "rand"]));
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md: the dependency table has no row for `bytes`",
                "ARCHITECTURE.md: `rand` is no workspace dependency any more"
            ]
        );
    }
}
