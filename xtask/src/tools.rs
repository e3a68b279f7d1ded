//! The programs that the tests need. A missing one is installed, or the run fails and names it. No test
//! is skipped because a program is missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use wakeline_testbed::{find_postgres, find_program};

use crate::run::run_shown;
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

pub(crate) fn ensure_packages(workspace: &Workspace) -> Result<()> {
    let mut needed: Vec<&DebianPackage> = SERVERS.iter().collect();
    if workspace.root.join("compat").is_dir() {
        needed.extend([&PYTHON, &NODE, &NPM]);
    }
    let missing = missing_of(&needed);
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
    if !is_root()? || find_program("apt-get").is_none() {
        bail!(
            "missing: {}. Install them, on Debian as root:\n\n    {by_hand}\n",
            missing.join(", ")
        );
    }
    println!("missing: {}. Installing", missing.join(", "));
    // Debian may start what it installs, on the usual ports. The tests start servers of their own on
    // other ports.
    apt_get(&["update"])?;
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    apt_get(&install)?;
    let still = missing_of(&needed);
    ensure!(
        still.is_empty(),
        "apt-get succeeded, but {} is still missing; try: {by_hand}",
        still.join(", ")
    );
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

fn missing_of(needed: &[&DebianPackage]) -> Vec<&'static str> {
    let missing = needed.iter().filter(|package| !(package.is_present)());
    missing.map(|package| package.name).collect()
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .current_dir(Path::new("/"));
    ensure!(
        run_shown(&mut command)?.success(),
        "apt-get {} failed",
        arguments.join(" ")
    );
    Ok(())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .context("running id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}
