//! One measured number, with its name and unit; and a row of them.

use std::time::Duration;

use serde::Serialize;

use crate::percentiles::Percentiles;
use crate::units::show_count;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// The same for all that are compared, so that rows can be made of them.
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "messages/s")]
    MessagesPerSecond,
    #[serde(rename = "requests/s")]
    RequestsPerSecond,
    #[serde(rename = "statements/s")]
    StatementsPerSecond,
    #[serde(rename = "transactions/s")]
    TransactionsPerSecond,
    #[serde(rename = "reads/s")]
    ReadsPerSecond,
    #[serde(rename = "tasks/s")]
    TasksPerSecond,
    #[serde(rename = "saves/s")]
    SavesPerSecond,
    #[serde(rename = "facts/s")]
    FactsPerSecond,
    #[serde(rename = "tuples/s")]
    TuplesPerSecond,
    #[serde(rename = "statements/min")]
    StatementsPerMinute,
    #[serde(rename = "times")]
    Times,
    #[serde(rename = "orchestrations/s")]
    OrchestrationsPerSecond,
    #[serde(rename = "orchestrations")]
    Orchestrations,
    #[serde(rename = "reads")]
    Reads,
    #[serde(rename = "statements")]
    Statements,
    #[serde(rename = "bytes")]
    Bytes,
    #[serde(rename = "ms")]
    Millis,
}

/// One figure of all that are compared.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    /// In their order; nothing where it could not be measured.
    pub(crate) values: Vec<Option<f64>>,
}

impl Row {
    /// Puts the figures of the one at `place` among `of` into its rows, and makes those that are
    /// missing.
    pub(crate) fn add(rows: &mut Vec<Self>, figures: Vec<Figure>, place: usize, of: usize) {
        for figure in figures {
            let known = rows.iter().position(|row| row.name == figure.name);
            let row = known.unwrap_or_else(|| {
                rows.push(Self {
                    name: figure.name,
                    unit: figure.unit,
                    values: vec![None; of],
                });
                rows.len() - 1
            });
            rows[row].values[place] = Some(figure.value);
        }
    }

    /// A detail stands below its figure and needs only the end of its name.
    pub(crate) fn shown(&self) -> String {
        match self.name.strip_prefix("  ") {
            Some(detail) => format!("  {}", detail.rsplit(", ").next().unwrap_or(detail)),
            None => self.name.clone(),
        }
    }

    /// How many times the value of one is that of another.
    pub(crate) fn ratio(&self, one: usize, other: usize) -> Option<f64> {
        let value = |place: usize| self.values.get(place).copied().flatten();
        value(one)
            .zip(value(other))
            .filter(|(_, other)| *other > 0.0)
            .map(|(one, other)| one / other)
    }
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
        }
    }

    pub(crate) fn time(name: impl Into<String>, time: Duration) -> Self {
        Self::new(name, Unit::Millis, time.as_secs_f64() * 1e3)
    }

    /// Below a figure: how long its requests took.
    pub(crate) fn details(name: &str, times: Vec<Duration>) -> Vec<Self> {
        let Some(found) = Percentiles::of(times) else {
            return Vec::new();
        };
        vec![
            Self::time(format!("  {name} p50"), found.p50),
            Self::time(format!("  {name} p99"), found.p99),
        ]
    }

    /// The median under the name, and how bad it gets below it.
    pub(crate) fn times(name: &str, times: Vec<Duration>) -> Vec<Self> {
        let Some(found) = Percentiles::of(times) else {
            return Vec::new();
        };
        vec![
            Self::time(format!("{name}, p50"), found.p50),
            Self::time(format!("  {name}, p99"), found.p99),
        ]
    }
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MessagesPerSecond => "messages/s",
            Self::RequestsPerSecond => "requests/s",
            Self::StatementsPerSecond => "statements/s",
            Self::TransactionsPerSecond => "transactions/s",
            Self::ReadsPerSecond => "reads/s",
            Self::TasksPerSecond => "tasks/s",
            Self::SavesPerSecond => "saves/s",
            Self::FactsPerSecond => "facts/s",
            Self::TuplesPerSecond => "tuples/s",
            Self::StatementsPerMinute => "statements/min",
            Self::Times => "times",
            Self::OrchestrationsPerSecond => "orchestrations/s",
            Self::Orchestrations => "orchestrations",
            Self::Reads => "reads",
            Self::Statements => "statements",
            Self::Bytes => "bytes",
            Self::Millis => "ms",
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::MessagesPerSecond
            | Self::RequestsPerSecond
            | Self::ReadsPerSecond
            | Self::SavesPerSecond
            | Self::FactsPerSecond
            | Self::TuplesPerSecond
            | Self::Orchestrations
            | Self::Reads
            | Self::Bytes => show_count(value.round().max(0.0) as usize),
            Self::TasksPerSecond
            | Self::OrchestrationsPerSecond
            | Self::StatementsPerMinute
            | Self::Statements => format!("{value:.1}"),
            Self::StatementsPerSecond
            | Self::TransactionsPerSecond
            | Self::Times
            | Self::Millis => format!("{value:.2}"),
        }
    }
}
