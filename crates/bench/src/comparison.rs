//! Servers side by side: a row for each figure, what failed, and the targets.

use std::fmt::{Display, Formatter, Result};

use serde::Serialize;

use crate::contestant::Contestant;
use crate::failures::Seen;
use crate::figure::{Figure, Row};
use crate::target::{self, Target};
use crate::units::show_count;

/// Of a row's name, at the least.
const NAME_WIDTH: usize = 44;

#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) servers: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) targets: Vec<Target>,
    /// For each server.
    pub(crate) failures: Vec<Seen>,
}

impl Comparison {
    pub(crate) fn of(servers: Vec<String>) -> Self {
        Self {
            failures: vec![Seen::default(); servers.len()],
            servers,
            rows: Vec::new(),
            targets: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, server: usize, figures: Vec<Figure>) {
        Row::add(&mut self.rows, figures, server, self.servers.len());
    }

    pub(crate) fn finish<'a>(
        &mut self,
        contestants: impl Iterator<Item = &'a Contestant>,
        judge: impl FnOnce(&[String], &[Row]) -> Vec<Target>,
    ) {
        for (failures, one) in self.failures.iter_mut().zip(contestants) {
            *failures = one.failures.seen();
        }
        self.targets = judge(&self.servers, &self.rows);
    }

    /// What spoils the numbers.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (server, seen) = self
            .servers
            .iter()
            .zip(&self.failures)
            .find(|(_, seen)| seen.count > 0)?;
        let first = seen.first.as_deref().unwrap_or_default();
        Some(format!(
            "{} requests failed at {server}; the first: {first}",
            seen.count
        ))
    }

    fn row(&self, f: &mut Formatter<'_>, row: &Row, width: usize) -> Result {
        let mut line = format!("{:<width$}{:<13}", row.shown(), row.unit.name());
        for (place, value) in row.values.iter().enumerate() {
            let shown = value.map_or("-".to_owned(), |value| row.unit.show(value));
            line += &format!("{shown:>22}");
            if place > 0 {
                let ratio = row.ratio(place, 0).map(show_ratio).unwrap_or_default();
                line += &format!("{ratio:>7}");
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

fn show_ratio(ratio: f64) -> String {
    if ratio < 0.095 {
        format!("{ratio:.3}x")
    } else {
        format!("{ratio:.1}x")
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let longest = self.rows.iter().map(|row| row.shown().chars().count() + 2);
        let width = longest.max().unwrap_or_default().max(NAME_WIDTH);
        write!(f, "{:<width$}{:<13}", "", "")?;
        for (place, server) in self.servers.iter().enumerate() {
            write!(f, "{server:>0$}", if place == 0 { 22 } else { 29 })?;
        }
        writeln!(f)?;
        for row in &self.rows {
            self.row(f, row, width)?;
        }
        for (server, seen) in self.servers.iter().zip(&self.failures) {
            if let Some(first) = &seen.first {
                let count = show_count(seen.count);
                writeln!(f, "\nFAILED at {server}: {count}; the first: {first}")?;
            }
        }
        target::show(&self.targets, f)
    }
}
