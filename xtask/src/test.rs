//! `cargo xtask test`: from a bare machine to one line, `N passed, N failed`.

mod board;
mod build;
mod choice;
mod compat;
mod counts;
mod nextest;
mod scratch;
mod servers;

use std::thread::{self, ScopedJoinHandle};

use anyhow::Result;

use self::board::Board;
use self::build::{Build, SCHEDULES};
use self::choice::Choice;
use self::compat::Suite;
use self::counts::Counts;
use self::nextest::run_nextest;
use self::servers::Servers;
use crate::workspace::Workspace;
use crate::{check, tools};

/// Returns whether all went well.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    let choice = Choice::parse(arguments, workspace)?;
    let board = Board::new();
    let run = Run {
        workspace,
        build: Build::new(workspace)?,
        suites: compat::suites(&workspace.root)
            .into_iter()
            .filter(|suite| choice.has_suite(&suite.name))
            .collect(),
        choice,
        board: &board,
    };
    board.while_reporting(|| run.phases())?;
    board.print();
    let total = board.total();
    // A filter that fits no test, or a summary that could not be read, proves nothing.
    Ok(total.failed == Some(0) && total.passed > Some(0))
}

struct Run<'a> {
    workspace: &'a Workspace,
    choice: Choice,
    suites: Vec<Suite>,
    build: Build<'a>,
    board: &'a Board,
}

impl Run<'_> {
    /// An error is only an interruption; every failure is on the board. Each phase runs even when
    /// another failed, unless it cannot without it.
    fn phases(&self) -> Result<()> {
        let tools = self.board.phase("tools", |_| {
            tools::ensure_packages(self.workspace)?;
            tools::NEXTEST.ensure(self.workspace)?;
            Ok(Counts::none())
        })?;
        if !tools {
            return Ok(());
        }
        // While the compiler works, other phases can wait for the network and the disk.
        let (servers, built) = thread::scope(|scope| {
            let phases = [scope.spawn(|| self.check()), scope.spawn(|| self.clients())];
            let servers = scope.spawn(|| self.servers());
            let built = self.compile();
            join_all(phases)?;
            anyhow::Ok((join(servers)?, built?))
        })?;
        let Some(servers) = servers.filter(|_| built) else {
            return Ok(());
        };
        // At the same time: most tests and nearly all cases of clients wait rather than work.
        thread::scope(|scope| {
            let phases = [
                scope.spawn(|| self.suites(&servers)),
                scope.spawn(|| self.schedules_and_doc_tests(&servers)),
            ];
            self.tests(&servers)?;
            join_all(phases)
        })
    }

    fn check(&self) -> Result<()> {
        if self.choice.is_everything() {
            self.board.phase("check", |phase| {
                let failures = check::without_lints(self.workspace)?;
                if !failures.is_empty() {
                    phase.show(&failures);
                }
                Ok(Counts::without_tests(failures.is_empty()))
            })?;
        }
        Ok(())
    }

    fn clients(&self) -> Result<()> {
        if !self.suites.is_empty() {
            self.board.phase("clients", |_| {
                for suite in &self.suites {
                    if suite.needs_browser() {
                        tools::ensure_browser()?;
                    }
                    suite.install(self.workspace)?;
                }
                Ok(Counts::none())
            })?;
        }
        Ok(())
    }

    fn servers(&self) -> Result<Option<Servers>> {
        let mut servers = None;
        self.board.phase("servers", |_| {
            servers = Some(Servers::start()?);
            Ok(Counts::none())
        })?;
        Ok(servers)
    }

    /// Returns whether the tests can run: a lint is a failure, but does not stop them.
    fn compile(&self) -> Result<bool> {
        if let Choice::Nextest(_) = self.choice {
            // nextest itself builds the packages that its arguments name.
            return Ok(true);
        }
        let mut built = false;
        self.board.phase("build", |phase| {
            let all = self.build.all(phase)?;
            built = all.is_built;
            let mut counts = all.counts;
            if built && self.choice.has_schedules() {
                let schedules = self.build.schedules(phase)?;
                built = schedules.is_built;
                counts = counts.and(Some(schedules.counts));
            }
            Ok(counts)
        })?;
        Ok(built)
    }

    fn tests(&self, servers: &Servers) -> Result<()> {
        self.board.phase("tests", |phase| {
            let mut command = self.build.cargo(&["nextest", "run"]);
            command.args(nextest::ARGUMENTS);
            let filter = self.choice.nextest();
            if !names_packages(&filter) {
                command.arg("--workspace");
            }
            command.args(filter);
            run_nextest(servers.pass_to(&mut command), phase)
        })?;
        Ok(())
    }

    /// One after the other: each has many cases under way at once.
    fn suites(&self, servers: &Servers) -> Result<()> {
        for suite in &self.suites {
            self.board
                .phase(&format!("compat/{}", suite.name), |phase| {
                    suite.run(self.workspace, servers, self.choice.is_full(), phase)
                })?;
        }
        Ok(())
    }

    fn schedules_and_doc_tests(&self, servers: &Servers) -> Result<()> {
        if self.choice.is_everything() {
            // The tests' server is built with the features of the whole workspace; a user builds
            // `wakeline` alone.
            self.board
                .phase("wakeline alone", |phase| self.build.server(phase))?;
        }
        if self.choice.has_schedules() {
            self.board.phase("schedules", |phase| {
                let mut command = self.build.cargo(&["nextest", "run"]);
                command.args(SCHEDULES).args(nextest::ARGUMENTS);
                run_nextest(servers.pass_to(&mut command), phase)
            })?;
        }
        if self.choice.is_everything() {
            self.board.phase("doc tests", |phase| {
                let arguments = ["test", "--workspace", "--doc", "--no-fail-fast"];
                let mut command = self.build.cargo(&arguments);
                phase.run(servers.pass_to(&mut command), |line, counts| {
                    *counts = counts.and(counts::of_libtest(line));
                    true
                })
            })?;
        }
        Ok(())
    }
}

/// `--workspace` would override the packages.
fn names_packages(filter: &[String]) -> bool {
    filter
        .iter()
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}

fn join_all<const N: usize>(handles: [ScopedJoinHandle<'_, Result<()>>; N]) -> Result<()> {
    handles.into_iter().try_for_each(join)
}

fn join<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
