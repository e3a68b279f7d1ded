//! The one build: all tests, and the server that they and the real clients start. clippy compiles
//! it, so the lints need no second build.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::board::Phase;
use super::counts::{Counts, plain};
use crate::run::{Line, run};
use crate::workspace::Workspace;

pub(crate) struct Build<'a> {
    workspace: &'a Workspace,
    clippy: PathBuf,
}

impl<'a> Build<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> Result<Build<'a>> {
        let output = workspace.rustc(&["--print", "sysroot"]).output();
        let sysroot = String::from_utf8(output.context("running rustc")?.stdout)?;
        let clippy = PathBuf::from(sysroot.trim()).join("bin/clippy-driver");
        ensure!(
            clippy.is_file(),
            "clippy is missing: rustup component add clippy"
        );
        Ok(Build { workspace, clippy })
    }

    /// A cargo that uses what `all` has built. Every command that compiles is one of these: with
    /// another wrapper or another choice of packages, cargo would build everything again.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.workspace.cargo(arguments);
        command.env("RUSTC_WORKSPACE_WRAPPER", &self.clippy);
        if env::var_os("CARGO_INCREMENTAL").is_none() {
            // Without increments a build takes a fifth less time and half the disk.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// A lint fails the phase, but the tests still run.
    pub(crate) fn all(&self, phase: &Phase<'_>) -> Result<Outcome> {
        let arguments = ["test", "--workspace", "--all-targets", "--no-run"];
        self.build(&arguments, phase)
    }

    /// The wake engine with shuttle's lock in it.
    pub(crate) fn schedules(&self, phase: &Phase<'_>) -> Result<Outcome> {
        self.build(&[&["test", "--no-run"][..], &SCHEDULES].concat(), phase)
    }

    /// The server as the README builds it, without the features that only the tests use.
    pub(crate) fn server(&self, phase: &Phase<'_>) -> Result<Counts> {
        let built = self.build(&["check", "--package", "wakeline"], phase)?;
        Ok(built.counts)
    }

    fn build(&self, arguments: &[&str], phase: &Phase<'_>) -> Result<Outcome> {
        let mut lines = Vec::new();
        let mut has_lints = false;
        let status = run(&mut self.cargo(arguments), |line| {
            let (Line::Out(line) | Line::Err(line)) = line;
            let text = plain(&line);
            if text.trim_start().starts_with("Compiling ") {
                phase.ended();
            } else if !text.trim_start().starts_with("Executable ") {
                has_lints |= is_summary_of_lints(&text);
                lines.push(line);
            }
        })?;
        if has_lints || !status.success() {
            phase.show(&lines);
        }
        Ok(Outcome {
            is_built: status.success(),
            counts: Counts::without_tests(status.success() && !has_lints),
        })
    }
}

/// The features of the whole workspace, so that only the engine is built again.
pub(crate) const SCHEDULES: [&str; 5] = [
    "--workspace",
    "--features",
    "wakeline-wake/shuttle",
    "--test",
    "shuttle",
];

pub(crate) struct Outcome {
    pub(crate) is_built: bool,
    pub(crate) counts: Counts,
}

/// Cargo prints it once for each target, also for targets that were built before:
/// ``warning: `wakeline-wake` (lib) generated 1 warning``
fn is_summary_of_lints(line: &str) -> bool {
    line.starts_with("warning: `") && line.contains(" generated ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_are_recognised_in_the_summary_of_cargo() {
        for line in [
            "warning: `wakeline-wake` (lib) generated 1 warning",
            "warning: `wakeline-jobs` (lib test) generated 3 warnings (2 duplicates)",
        ] {
            assert!(is_summary_of_lints(line), "{line}");
        }
        for line in [
            "warning: unused variable: `x`",
            "warning: the following packages contain code that will be rejected",
            "    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.43s",
        ] {
            assert!(!is_summary_of_lints(line), "{line}");
        }
    }
}
