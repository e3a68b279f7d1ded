//! The report: what was measured, for a person or as JSON.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::REFERENCE;
use super::args::{DurableArgs, WITH_PEERS};
use super::contestant::Contestant;
use super::targets;
use crate::failures::Seen;
use crate::figure::{Figure, Row};
use crate::target::{self, Target};
use crate::units::{as_millis, show_count, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    postgres: String,
    #[serde(rename = "idleMs", serialize_with = "as_millis")]
    idle: Duration,
    workflows: usize,
    timers: usize,
    #[serde(rename = "timeMs", serialize_with = "as_millis")]
    time: Duration,
    in_flight: usize,
    providers: Vec<&'static str>,
    rows: Vec<Row>,
    targets: Vec<Target>,
    /// For each provider.
    failures: Vec<Seen>,
    #[serde(skip)]
    has_peers: bool,
}

impl Report {
    /// `has_peers` says whether this program has any, measured or not.
    pub(super) fn new(
        args: &DurableArgs,
        providers: &[&'static str],
        postgres: String,
        has_peers: bool,
    ) -> Self {
        Self {
            postgres,
            idle: args.idle,
            workflows: args.workflows,
            timers: args.timers,
            time: args.seconds,
            in_flight: args.in_flight,
            providers: providers.to_vec(),
            rows: Vec::new(),
            targets: Vec::new(),
            failures: vec![Seen::default(); providers.len()],
            has_peers,
        }
    }

    pub(super) fn add(&mut self, provider: usize, figures: Vec<Figure>) {
        Row::add(&mut self.rows, figures, provider, self.providers.len());
    }

    pub(super) fn finish(&mut self, contestants: &[Contestant]) {
        self.failures = contestants.iter().map(|one| one.failures.seen()).collect();
        self.targets = targets::judge(&self.providers, &self.rows);
    }

    /// What spoils the numbers.
    pub(super) fn trouble(&self) -> Option<String> {
        let (provider, seen) = self
            .providers
            .iter()
            .zip(&self.failures)
            .find(|(_, seen)| seen.count > 0)?;
        let first = seen.first.as_deref().unwrap_or_default();
        Some(format!(
            "{} orchestrations failed at {provider}; the first: {first}",
            seen.count
        ))
    }

    fn row(&self, f: &mut Formatter<'_>, row: &Row, reference: Option<usize>) -> Result {
        let mut line = format!("{:<50}{:<17}", row.shown(), row.unit.name());
        for (place, value) in row.values.iter().enumerate() {
            let shown = value.map_or("-".to_owned(), |value| row.unit.show(value));
            line += &format!("{shown:>18}");
            if let Some(reference) = reference.filter(|reference| *reference != place) {
                let ratio = row
                    .ratio(place, reference)
                    .map_or(String::new(), |ratio| format!("{ratio:.2}x"));
                line += &format!("{ratio:>8}");
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "PostgreSQL {}; idle for {}, {} workflows, {} timers, {} in flight for {}\n",
            self.postgres,
            show_duration(self.idle),
            show_count(self.workflows),
            show_count(self.timers),
            show_count(self.in_flight),
            show_duration(self.time)
        )?;
        let reference = self.providers.iter().position(|name| *name == REFERENCE);
        write!(f, "{:<67}", "")?;
        for (place, provider) in self.providers.iter().enumerate() {
            write!(f, "{provider:>18}")?;
            let has_ratio = reference.is_some_and(|reference| reference != place);
            // No spaces at the end of a line.
            if has_ratio && place + 1 < self.providers.len() {
                write!(f, "{:8}", "")?;
            }
        }
        writeln!(f)?;
        for row in &self.rows {
            self.row(f, row, reference)?;
        }
        for (provider, seen) in self.providers.iter().zip(&self.failures) {
            if let Some(first) = &seen.first {
                let count = show_count(seen.count);
                writeln!(f, "\nFAILED at {provider}: {count}; the first: {first}")?;
            }
        }
        target::show(&self.targets, f)?;
        if !self.has_peers {
            writeln!(f, "\nbeside duroxide-pg and duroxide-pg-opt: {WITH_PEERS}")?;
        }
        Ok(())
    }
}
