//! `cargo xtask check`: what is true of the sources without running them.
//! Everything is looked at; the failures are shown together at the end.

mod arrows;
mod dependency_table;
mod links;
mod places;
mod rust_text;
mod size;
mod sources;

use anyhow::Result;

use crate::run::run;
use crate::tools;
use crate::workspace::Workspace;

/// Returns whether all is well. An error means that we could not look.
pub(crate) fn check(workspace: &Workspace, advisories: bool) -> Result<bool> {
    let mut failures = Vec::new();

    let mut cargo = |arguments: &str| -> Result<()> {
        println!("cargo {arguments}");
        let words: Vec<&str> = arguments.split(' ').collect();
        if !run(&mut workspace.cargo(&words), |_| {})?.success() {
            failures.push(format!("cargo {arguments}"));
        }
        Ok(())
    };
    cargo("fmt --all --check")?;
    cargo("clippy --workspace --all-targets -- -D warnings")?;
    tools::DENY.ensure(workspace)?;
    cargo("deny check bans licenses sources")?;
    // The RustSec database is a git repository, out of reach for machines that
    // only see package registries: so only on request.
    if advisories {
        cargo("deny check advisories")?;
    }

    let sources = sources::rust(&workspace.root)?;
    failures.extend(arrows::check(&workspace.metadata)?);
    failures.extend(places::check(&sources));
    failures.extend(links::check(&workspace.root)?);
    failures.extend(dependency_table::check(&workspace.root)?);
    for long in size::over_limit(&sources) {
        println!("warning: {long}");
    }

    if failures.is_empty() {
        println!("check: all is well");
        return Ok(true);
    }
    eprintln!("\ncheck: {} found", failures.len());
    for failure in &failures {
        eprintln!("  {failure}");
    }
    Ok(false)
}
