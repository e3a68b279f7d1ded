//! `cargo xtask test`: from a bare machine to one line, `N passed, N failed`.

mod compat;
mod counts;
mod report;
mod scratch;
mod servers;

use std::process::Command;

use anyhow::Result;

use self::counts::Counts;
use self::report::Report;
use self::servers::Servers;
use crate::run::{Line, run};
use crate::workspace::Workspace;
use crate::{check, tools};

/// Returns whether all went well. With `filter`, only nextest runs.
pub(crate) fn test(workspace: &Workspace, filter: &[String]) -> Result<bool> {
    let mut report = Report::default();
    phases(workspace, filter, &mut report)?;
    report.print();
    Ok(report.total().failed == Some(0))
}

/// An error is only an interruption; every failure is in the report. Each
/// phase runs even when one before it failed, unless it cannot without it.
fn phases(workspace: &Workspace, filter: &[String], report: &mut Report) -> Result<()> {
    let everything = filter.is_empty();

    let tools = report.phase("tools", || {
        tools::ensure_packages(workspace)?;
        tools::NEXTEST.ensure(workspace)?;
        Ok(Counts::none())
    })?;
    if !tools {
        return Ok(());
    }
    if everything {
        report.phase("check", || {
            let well = check::check(workspace, false)?;
            Ok(Counts::without_tests(well))
        })?;
    }

    let mut servers = None;
    report.phase("servers", || {
        servers = Some(Servers::start()?);
        Ok(Counts::none())
    })?;
    let Some(servers) = servers else {
        return Ok(());
    };

    // The end-to-end tests start the real binary.
    let built = report.phase("build", || {
        let status = run(&mut workspace.cargo(&["build", "-p", "wakeline"]), |_| {})?;
        Ok(Counts::without_tests(status.success()))
    })?;
    if !built {
        return Ok(());
    }

    report.phase("nextest", || {
        let mut command = workspace.cargo(&["nextest", "run", "--no-fail-fast"]);
        if !names_packages(filter) {
            command.arg("--workspace");
        }
        command.args(filter);
        nextest(servers.pass_to(&mut command))
    })?;
    if !everything {
        return Ok(());
    }

    report.phase("doc tests", || {
        let mut command = workspace.cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]);
        let mut counts = Counts::none();
        let status = run(servers.pass_to(&mut command), |line| {
            if let Line::Out(line) = line {
                counts = counts.and(counts::of_libtest(&line));
            }
        })?;
        Ok(counts.settled(status))
    })?;

    if workspace
        .root
        .join("crates/wake/tests/shuttle.rs")
        .is_file()
    {
        report.phase("schedules", || {
            let arguments =
                "nextest run --no-fail-fast -p wakeline-wake --features shuttle --test shuttle";
            let arguments: Vec<&str> = arguments.split(' ').collect();
            nextest(servers.pass_to(&mut workspace.cargo(&arguments)))
        })?;
    }

    for suite in compat::suites(&workspace.root) {
        report.phase(&suite.name, || suite.run(workspace, &servers))?;
    }
    Ok(())
}

fn nextest(command: &mut Command) -> Result<Counts> {
    let mut counts = Counts::none();
    let status = run(command, |line| {
        // The last summary wins: a failed test may have printed one of its own.
        if let Line::Err(line) = line {
            counts = counts::of_nextest(&line).unwrap_or(counts);
        }
    })?;
    Ok(counts.settled(status))
}

/// `--workspace` would override them.
fn names_packages(filter: &[String]) -> bool {
    filter
        .iter()
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}
