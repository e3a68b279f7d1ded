//! Which tests a run has: `cargo xtask test [--full | CRATE… | nextest arguments]`.

use anyhow::{Result, bail};

use crate::workspace::Workspace;

#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    Everything {
        /// Every combination of client, store and Redis.
        full: bool,
    },
    /// The tests of these crates, and the clients that speak to them.
    Crates(Vec<String>),
    /// Only nextest, with these arguments.
    Nextest(Vec<String>),
}

/// The directory of a door's crate → the suite in `compat/` for that door.
const CLIENTS: [(&str, &str); 3] = [("queue", "queen"), ("jobs", "joblib"), ("feed", "jinaga")];
/// The crate that lets pages of a browser in, and the suite of that.
const BROWSER: (&str, &str) = ("server", "browser");

impl Choice {
    pub(crate) fn parse(arguments: &[String], workspace: &Workspace) -> Result<Choice> {
        Self::of(arguments, &workspace.crates())
    }

    fn of(arguments: &[String], crates: &[String]) -> Result<Choice> {
        match arguments {
            [] => Ok(Choice::Everything { full: false }),
            [flag] if flag == "--full" => Ok(Choice::Everything { full: true }),
            [first, ..] if first.starts_with('-') => Ok(Choice::Nextest(arguments.to_vec())),
            names => match names.iter().find(|name| !crates.contains(name)) {
                None => Ok(Choice::Crates(names.to_vec())),
                Some(name) => bail!("there is no crate `{name}`, only {}", crates.join(", ")),
            },
        }
    }

    pub(crate) fn is_everything(&self) -> bool {
        matches!(self, Choice::Everything { .. })
    }

    pub(crate) fn is_full(&self) -> bool {
        *self == Choice::Everything { full: true }
    }

    /// A filter for nextest; without one, everything.
    pub(crate) fn nextest(&self) -> Vec<String> {
        match self {
            Choice::Everything { .. } => Vec::new(),
            Choice::Nextest(arguments) => arguments.clone(),
            Choice::Crates(names) => {
                let filters: Vec<String> = names.iter().map(|name| filter(name)).collect();
                vec!["-E".to_owned(), filters.join(" | ")]
            }
        }
    }

    pub(crate) fn has_suite(&self, suite: &str) -> bool {
        match self {
            Choice::Everything { .. } => true,
            Choice::Nextest(_) => false,
            Choice::Crates(names) => CLIENTS
                .iter()
                .chain([&BROWSER])
                .any(|(of, found)| *found == suite && names.iter().any(|name| name == of)),
        }
    }

    pub(crate) fn has_schedules(&self) -> bool {
        match self {
            Choice::Everything { .. } => true,
            Choice::Nextest(_) => false,
            Choice::Crates(names) => names.iter().any(|name| name == "wake"),
        }
    }
}

/// The server's tests that use every door's routes: hang-ups, crashes, several nodes, outages,
/// stopping and bad input.
const OF_EVERY_DOOR: &str = "access|bad_input|crash|drain|hang_up|nodes|outage";

/// The crate's own tests, and those of the whole server that concern it.
fn filter(name: &str) -> String {
    match name {
        "cli" => "package(=wakeline)".to_owned(),
        "xtask" => "package(=xtask)".to_owned(),
        name if CLIENTS.iter().any(|(door, _)| *door == name) => format!(
            "package(=wakeline-{name}) | (package(=wakeline) & test(/^({name}|{OF_EVERY_DOOR})/))"
        ),
        name => format!("package(=wakeline-{name}) | (package(=wakeline) & test(/^{name}/))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Choice> {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let crates = ["cli", "queue", "server", "wake"].map(str::to_owned);
        Choice::of(&arguments, &crates)
    }

    #[test]
    fn arguments_name_crates_or_go_to_nextest() {
        assert_eq!(parse("").unwrap(), Choice::Everything { full: false });
        assert_eq!(parse("--full").unwrap(), Choice::Everything { full: true });
        assert_eq!(
            parse("queue").unwrap(),
            Choice::Crates(vec!["queue".into()])
        );
        let nextest = parse("-p wakeline-queue").unwrap();
        assert_eq!(nextest.nextest(), ["-p", "wakeline-queue"]);
        let error = parse("queue line").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no crate `line`, only cli, queue, server, wake"
        );
    }

    #[test]
    fn a_door_has_its_crate_its_part_of_the_server_and_its_client() {
        let queue = parse("queue").unwrap();
        assert_eq!(
            queue.nextest(),
            [
                "-E",
                "package(=wakeline-queue) | (package(=wakeline) & test(/^(queue|access|bad_input|crash|drain|hang_up|nodes|outage)/))"
            ]
        );
        assert!(queue.has_suite("queen") && !queue.has_suite("joblib"));
        assert!(!queue.has_suite("browser"));
        assert!(parse("server").unwrap().has_suite("browser"));
        assert!(!queue.has_schedules());
        assert!(parse("wake").unwrap().has_schedules());
    }
}
