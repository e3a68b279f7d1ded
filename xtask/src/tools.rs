//! The programs that the tests need. A missing one is installed, or the run fails and names it. No test
//! is skipped because a program is missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use wakeline_testbed::{find_postgres, find_program};

use crate::run::{Line, run, run_shown};
use crate::workspace::Workspace;

/// A tool that cargo can build, at a version the pinned toolchain compiles.
pub(crate) struct CargoTool {
    name: &'static str,
    version: &'static str,
}

pub(crate) const DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
};
pub(crate) const NEXTEST: CargoTool = CargoTool {
    name: "cargo-nextest",
    version: "0.9.143",
};

impl CargoTool {
    /// Any version on `PATH` will do; only an installation of our own is pinned.
    pub(crate) fn ensure(&self, workspace: &Workspace) -> Result<()> {
        let own = workspace.tools().join("bin").join(self.name);
        if own.is_file() || find_program(self.name).is_some() {
            return Ok(());
        }
        println!("{} is missing: building it (some minutes, once)", self.name);
        let root = workspace.tools();
        let mut install = workspace.cargo(&["install", self.name, "--locked"]);
        install
            .args(["--version", self.version, "--root"])
            .arg(&root);
        ensure!(
            run_shown(&mut install)?.success(),
            "{0} could not be built; install it yourself: cargo install {0} --locked --version {1}",
            self.name,
            self.version
        );
        Ok(())
    }
}

struct DebianPackage {
    name: &'static str,
    /// Whether what we need of it is there.
    is_present: fn() -> bool,
}

const SERVERS: [DebianPackage; 3] = [
    DebianPackage {
        name: "postgresql",
        is_present: || find_postgres().is_some(),
    },
    DebianPackage {
        name: "redis-server",
        is_present: || find_program("redis-server").is_some(),
    },
    DebianPackage {
        name: "pgbouncer",
        is_present: || find_program("pgbouncer").is_some(),
    },
];

/// Only for the clients under `compat/`, which live in virtual environments and need Python 3.11.
const PYTHON: DebianPackage = DebianPackage {
    name: "python3-venv",
    is_present: || {
        let needed = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
        succeeds("python3", &["-c", needed])
    },
};

/// Only for the clients under `compat/` that npm installs; they need Node.js 18.
const NODE: DebianPackage = DebianPackage {
    name: "nodejs",
    is_present: || {
        let needed = "process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)";
        succeeds("node", &["-e", needed])
    },
};
const NPM: DebianPackage = DebianPackage {
    name: "npm",
    is_present: || find_program("npm").is_some(),
};

/// For `compat/browser`.
const CHROMIUM: DebianPackage = DebianPackage {
    name: "chromium",
    is_present: || find_program("chromium").is_some(),
};

/// Installs everything but the browser, which is large and is installed while the compiler works
/// ([`ensure_browser`]). Where nothing can be installed, the error names the browser too.
pub(crate) fn ensure_packages(workspace: &Workspace) -> Result<()> {
    let mut needed: Vec<&DebianPackage> = SERVERS.iter().collect();
    let mut installed_later = Vec::new();
    if workspace.root.join("compat").is_dir() {
        needed.extend([&PYTHON, &NODE, &NPM]);
        installed_later.push(&CHROMIUM);
    }
    let missing = missing_of(&needed);
    if !can_install()? {
        let missing = [missing, missing_of(&installed_later)].concat();
        if !missing.is_empty() {
            bail!(
                "missing: {}. Install them, on Debian as root:\n\n    {}\n",
                missing.join(", "),
                by_hand(&missing)
            );
        }
    } else if !missing.is_empty() {
        println!("missing: {}. Installing", missing.join(", "));
        // Debian may start what it installs, on the usual ports. The tests start servers of their own
        // on other ports.
        for arguments in installation(&missing) {
            let status = run_shown(&mut apt_get(&arguments))?;
            ensure!(status.success(), "apt-get {} failed", arguments.join(" "));
        }
    }
    ensure_present(&needed)
}

/// Runs beside other phases, so what apt-get says is shown only if it fails.
pub(crate) fn ensure_browser() -> Result<()> {
    for arguments in installation(&missing_of(&[&CHROMIUM])) {
        let mut lines = Vec::new();
        let status = run(&mut apt_get(&arguments), |line| {
            let (Line::Out(line) | Line::Err(line)) = line;
            lines.push(line);
        })?;
        ensure!(
            status.success(),
            "apt-get {} failed:\n{}",
            arguments.join(" "),
            lines.join("\n")
        );
    }
    ensure_present(&[&CHROMIUM])
}

/// The commands of apt-get; none if nothing is missing.
fn installation<'a>(missing: &[&'a str]) -> Vec<Vec<&'a str>> {
    if missing.is_empty() {
        return Vec::new();
    }
    let install = ["install", "-y", "--no-install-recommends"];
    vec![vec!["update"], [&install, missing].concat()]
}

fn by_hand(missing: &[&str]) -> String {
    let commands = installation(missing);
    let commands = commands.iter().map(|arguments| arguments.join(" "));
    let commands: Vec<String> = commands.map(|text| format!("apt-get {text}")).collect();
    commands.join(" && ")
}

fn ensure_present(needed: &[&DebianPackage]) -> Result<()> {
    let missing = missing_of(needed);
    ensure!(
        missing.is_empty(),
        "apt-get succeeded, but {} is still missing; try: {}",
        missing.join(", "),
        by_hand(&missing)
    );
    Ok(())
}

fn can_install() -> Result<bool> {
    Ok(is_root()? && find_program("apt-get").is_some())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

fn missing_of(needed: &[&DebianPackage]) -> Vec<&'static str> {
    let missing = needed.iter().filter(|package| !(package.is_present)());
    missing.map(|package| package.name).collect()
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .current_dir(Path::new("/"));
    command
}

fn is_root() -> Result<bool> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .context("running id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_by_hand_does_what_root_does() {
        assert_eq!(
            by_hand(&["redis-server", "chromium"]),
            "apt-get update && apt-get install -y --no-install-recommends redis-server chromium"
        );
        assert!(installation(&[]).is_empty());
    }
}
