//! What a command prints: its report for a person, or as JSON.

use std::fmt::{Display, Formatter, Result};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use crate::comparison::Comparison;

/// The report of a benchmark that compares.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) settings: Settings,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
    #[serde(skip)]
    pub(crate) note: Option<String>,
}

/// The settings of a run: the head of its report.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    #[serde(skip)]
    pub(crate) text: String,
    /// An object.
    #[serde(flatten)]
    pub(crate) json: Value,
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}\n\n{}", self.settings.text, self.comparison)?;
        match &self.note {
            Some(note) => writeln!(f, "\n{note}"),
            None => Ok(()),
        }
    }
}

/// Prints a report to standard output, then fails with `trouble`: what spoils the numbers.
pub(crate) fn print(
    report: &(impl Serialize + Display),
    json: bool,
    trouble: Option<String>,
) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print!("{report}");
    }
    match trouble {
        Some(trouble) => bail!(trouble),
        None => Ok(()),
    }
}
