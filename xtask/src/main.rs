//! The project's own commands: `cargo xtask <command>`.

mod check;
mod fuzz;
mod interrupt;
mod run;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::interrupt::Interrupted;
use crate::workspace::Workspace;

const HELP: &str = "\
cargo xtask test                       everything: tools, check, build, all tests, real clients
cargo xtask test --full                the same, with every combination of client and store
cargo xtask test queue [jobs …]        only these crates, and the clients of these doors
cargo xtask test -p wakeline-queue …   only nextest, with these arguments
cargo xtask check [--advisories]       format, lints, licences, dependency arrows, docs;
                                       --advisories also asks the RustSec database (network)
cargo xtask fuzz [target …]            the parsers under random inputs, guided by coverage;
                                       --for 10m each, --jobs 1 at once
cargo xtask fuzz <target> <file>       one input again
cargo xtask help                       this text";

const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("interrupted");
            ExitCode::from(EXIT_INTERRUPTED)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(arguments: &[String]) -> Result<bool> {
    let (name, rest) = arguments
        .split_first()
        .map_or(("help", &[][..]), |(name, rest)| (name.as_str(), rest));
    match name {
        "test" => {
            interrupt::watch()?;
            test::test(&Workspace::load()?, rest)
        }
        "check" => {
            let advisories = match rest {
                [] => false,
                [flag] if flag == "--advisories" => true,
                _ => bail!("check takes only --advisories\n\n{HELP}"),
            };
            interrupt::watch()?;
            check::check(&Workspace::load()?, advisories)
        }
        "fuzz" => {
            interrupt::watch()?;
            fuzz::fuzz(&Workspace::load()?, rest)
        }
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        _ => bail!("there is no `{name}`\n\n{HELP}"),
    }
}
