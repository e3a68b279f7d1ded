//! The real clients: every executable `compat/<client>/run`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::counts::{self, Counts};
use super::servers::Servers;
use crate::run::{Line, run};
use crate::workspace::Workspace;

pub(crate) struct Suite {
    pub(crate) name: String,
    program: PathBuf,
}

pub(crate) fn suites(root: &Path) -> Vec<Suite> {
    let mut suites: Vec<Suite> = fs::read_dir(root.join("compat"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| Suite {
            name: format!("compat/{}", entry.file_name().display()),
            program: entry.path().join("run"),
        })
        .filter(|suite| is_executable(&suite.program))
        .collect();
    suites.sort_by(|a, b| a.name.cmp(&b.name));
    suites
}

impl Suite {
    pub(crate) fn run(&self, workspace: &Workspace, servers: &Servers) -> Result<Counts> {
        let mut command = Command::new(&self.program);
        command
            .env("WAKELINE_BIN", workspace.target.join("debug/wakeline"))
            .current_dir(&workspace.root);
        let mut last = None;
        let status = run(servers.pass_to(&mut command), |line| {
            if let Line::Out(line) = line
                && !line.is_empty()
            {
                last = counts::of_suite(&line);
            }
        })?;
        match last {
            Some(counts) => Ok(counts.settled(status)),
            None => bail!("the last line is not `N passed, N failed` ({status})"),
        }
    }
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
        assert_eq!(names, ["compat/joblib", "compat/queen"]);
    }

    #[test]
    fn without_the_directory_there_are_no_suites() {
        let root = tempfile::tempdir().unwrap();
        assert!(suites(root.path()).is_empty());
    }
}
