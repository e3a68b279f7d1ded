//! `cargo xtask check`: rules that the sources must keep, checked without running them. All rules are
//! checked; the failures are shown together at the end.

mod arrows;
mod dependencies;
mod dependency_table;
mod document_names;
mod links;
mod locks;
mod metrics;
mod names;
mod places;
mod rust_text;
mod size;
mod sources;
mod syncing;

use anyhow::Result;

use crate::run::{Line, run, run_shown};
use crate::tools;
use crate::workspace::Workspace;

/// `cargo xtask check`. Returns whether no rule is broken. An error means that a rule could not be
/// checked.
pub(crate) fn check(workspace: &Workspace, advisories: bool) -> Result<bool> {
    let mut failures = Vec::new();

    let mut cargo = |arguments: &str| -> Result<()> {
        println!("cargo {arguments}");
        let words: Vec<&str> = arguments.split(' ').collect();
        if !run_shown(&mut workspace.cargo(&words))?.success() {
            failures.push(format!("cargo {arguments}"));
        }
        Ok(())
    };
    cargo("clippy --workspace --all-targets -- -D warnings")?;
    // Only on request: the RustSec database is a git repository, which machines that reach only
    // package registries cannot read.
    if advisories {
        tools::DENY.ensure(workspace)?;
        cargo("deny check advisories")?;
    }
    failures.extend(without_lints(workspace)?);

    if failures.is_empty() {
        println!("check: no failures");
        return Ok(true);
    }
    eprintln!("\ncheck: {} failures", failures.len());
    for failure in &failures {
        eprintln!("  {failure}");
    }
    Ok(false)
}

/// The checks that need no compiler. `cargo xtask test` has its lints from the build of the tests.
pub(crate) fn without_lints(workspace: &Workspace) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let mut format = workspace.cargo(&["fmt", "--all", "--check"]);
    let status = run(&mut format, |line| {
        if let Line::Out(line) = line
            && let Some(place) = line.strip_prefix("Diff in ")
        {
            failures.push(format!("{place} is not formatted; cargo fmt --all does it"));
        }
    })?;
    if !status.success() && failures.is_empty() {
        failures.push("cargo fmt --all --check".to_owned());
    }
    let sources = sources::rust(&workspace.root)?;
    let graph = workspace.graph(&dependencies::platforms(&workspace.root)?)?;
    failures.extend(dependencies::check(&workspace.root, &graph)?);
    failures.extend(arrows::check(&workspace.metadata)?);
    failures.extend(places::check(&sources));
    failures.extend(locks::check(&sources));
    failures.extend(metrics::check(&sources));
    failures.extend(names::check(&sources));
    failures.extend(names::check(&sources::sql(&workspace.root)?));
    failures.extend(syncing::check(&sources));
    failures.extend(links::check(&workspace.root)?);
    let documents = sources::markdown(&workspace.root)?;
    failures.extend(document_names::check(&documents, &sources));
    failures.extend(dependency_table::check(&workspace.root)?);
    for long in size::over_limit(&sources) {
        println!("warning: {long}");
    }
    Ok(failures)
}
