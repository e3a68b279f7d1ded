//! The real clients: every executable `compat/<client>/run`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::board::Phase;
use super::counts::{self, Counts};
use super::servers::Servers;
use crate::run::{Line, run};
use crate::workspace::Workspace;

#[derive(Debug)]
pub(crate) struct Suite {
    /// `queen` of `compat/queen/run`.
    pub(crate) name: String,
    program: PathBuf,
}

/// A line that a suite prints about its cases.
#[derive(Debug, PartialEq)]
enum SuiteLine<'a> {
    /// `12 cases`: so many more follow.
    Cases(u64),
    /// `passed on sqlite: a_case [1.2 s]`, or `FAILED …`
    Ended {
        passed: bool,
        name: &'a str,
        seconds: f64,
    },
}

pub(crate) fn suites(root: &Path) -> Vec<Suite> {
    let mut suites: Vec<Suite> = fs::read_dir(root.join("compat"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| Suite {
            name: entry.file_name().to_string_lossy().into_owned(),
            program: entry.path().join("run"),
        })
        .filter(|suite| is_executable(&suite.program))
        .collect();
    suites.sort_by(|a, b| a.name.cmp(&b.name));
    suites
}

impl Suite {
    pub(crate) fn needs_browser(&self) -> bool {
        self.name == "browser"
    }

    /// Installs the packages of its client, so that the run needs no network.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<()> {
        let mut lines = Vec::new();
        let status = run(self.command(workspace).arg("--install"), |line| {
            let (Line::Out(line) | Line::Err(line)) = line;
            lines.push(line);
        })?;
        ensure!(
            status.success(),
            "compat/{} could not be installed:\n{}",
            self.name,
            lines.join("\n")
        );
        Ok(())
    }

    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        servers: &Servers,
        full: bool,
        phase: &Phase<'_>,
    ) -> Result<Counts> {
        let mut command = self.command(workspace);
        if full {
            command.arg("--full");
        }
        let mut expected = 0;
        phase.run(servers.pass_to(&mut command), |line, counts| {
            match suite_line(line) {
                Some(SuiteLine::Cases(more)) => {
                    expected += more;
                    phase.expect(expected);
                }
                Some(SuiteLine::Ended {
                    passed,
                    name,
                    seconds,
                }) => phase.test(name, seconds, passed),
                // The last line has the counts.
                None if !line.is_empty() => {
                    *counts = counts::of_suite(line).unwrap_or(Counts::none());
                    return true;
                }
                None => {}
            }
            false
        })
    }

    fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("WAKELINE_BIN", workspace.target.join("debug/wakeline"))
            .current_dir(&workspace.root);
        command
    }
}

fn suite_line(line: &str) -> Option<SuiteLine<'_>> {
    if let Some(count) = line.strip_suffix(" cases") {
        return count.parse().ok().map(SuiteLine::Cases);
    }
    let (status, rest) = line.split_once(' ')?;
    let passed = match status {
        "passed" => true,
        "FAILED" => false,
        _ => return None,
    };
    let (name, time) = rest.strip_suffix(" s]")?.rsplit_once(" [")?;
    Some(SuiteLine::Ended {
        passed,
        name,
        seconds: time.parse().ok()?,
    })
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_run_files_are_suites() {
        let root = tempfile::tempdir().unwrap();
        for (name, mode) in [("queen", 0o755), ("joblib", 0o755), ("notes", 0o644)] {
            let dir = root.path().join("compat").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("run"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let names: Vec<String> = suites(root.path())
            .into_iter()
            .map(|suite| suite.name)
            .collect();
        assert_eq!(names, ["joblib", "queen"]);
    }

    #[test]
    fn without_the_directory_there_are_no_suites() {
        let root = tempfile::tempdir().unwrap();
        assert!(suites(root.path()).is_empty());
    }

    #[test]
    fn a_suite_prints_the_number_of_its_cases_and_the_end_of_each() {
        assert_eq!(suite_line("12 cases"), Some(SuiteLine::Cases(12)));
        let name = "on sqlite: cases/pop.py::one[a b]";
        let passed = |passed, seconds| {
            Some(SuiteLine::Ended {
                passed,
                name,
                seconds,
            })
        };
        assert_eq!(
            suite_line(&format!("passed {name} [1.2 s]")),
            passed(true, 1.2)
        );
        assert_eq!(
            suite_line(&format!("FAILED {name} [0.0 s]")),
            passed(false, 0.0)
        );
        for other in [
            "12 passed, 1 failed",
            "passed by [a while]",
            "some cases",
            "",
        ] {
            assert_eq!(suite_line(other), None, "{other}");
        }
    }
}
