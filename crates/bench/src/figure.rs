//! One measured number, with its name and unit; and a row of them.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::load::Throughput;
use crate::percentiles::Percentiles;
use crate::units::{millis, show_count};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// The same for all contestants, so that rows can be made of them.
    pub(crate) name: String,
    pub(crate) unit: Unit,
    /// Nothing where it could not be measured.
    pub(crate) value: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    /// How many decimals are shown; large numbers without any have separators.
    decimals: usize,
}

impl Unit {
    pub(crate) const MESSAGES_PER_SECOND: Self = Self::of("messages/s", 0);
    pub(crate) const REQUESTS_PER_SECOND: Self = Self::of("requests/s", 0);
    pub(crate) const STATEMENTS_PER_SECOND: Self = Self::of("statements/s", 2);
    pub(crate) const TRANSACTIONS_PER_SECOND: Self = Self::of("transactions/s", 2);
    pub(crate) const READS_PER_SECOND: Self = Self::of("reads/s", 0);
    pub(crate) const TASKS_PER_SECOND: Self = Self::of("tasks/s", 1);
    pub(crate) const SAVES_PER_SECOND: Self = Self::of("saves/s", 0);
    pub(crate) const FACTS_PER_SECOND: Self = Self::of("facts/s", 0);
    pub(crate) const TUPLES_PER_SECOND: Self = Self::of("tuples/s", 0);
    pub(crate) const STATEMENTS_PER_MINUTE: Self = Self::of("statements/min", 1);
    pub(crate) const TIMES: Self = Self::of("times", 2);
    pub(crate) const ORCHESTRATIONS_PER_SECOND: Self = Self::of("orchestrations/s", 1);
    pub(crate) const ORCHESTRATIONS: Self = Self::of("orchestrations", 0);
    pub(crate) const READS: Self = Self::of("reads", 0);
    pub(crate) const POPS: Self = Self::of("pops", 0);
    pub(crate) const POPS_PER_SECOND: Self = Self::of("pops/s", 0);
    pub(crate) const WRITES: Self = Self::of("writes", 1);
    pub(crate) const WRITES_PER_SECOND: Self = Self::of("writes/s", 0);
    pub(crate) const PERCENT_OF_A_CORE: Self = Self::of("% of a core", 2);
    pub(crate) const STATEMENTS: Self = Self::of("statements", 1);
    pub(crate) const BYTES: Self = Self::of("bytes", 0);
    pub(crate) const MILLIS: Self = Self::of("ms", 2);

    const fn of(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals }
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self.decimals {
            0 => show_count(value.round().max(0.0) as usize),
            decimals => format!("{value:.decimals$}"),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, value: impl Into<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            unit,
            value: value.into(),
        }
    }

    pub(crate) fn time(name: impl Into<String>, time: Duration) -> Self {
        Self::new(name, Unit::MILLIS, time.as_secs_f64() * 1e3)
    }

    /// A rate, and below it how long `what` took each time.
    pub(crate) fn rate(name: &str, unit: Unit, what: &str, measured: Throughput) -> Vec<Self> {
        let mut figures = vec![Self::new(name, unit, measured.per_second)];
        figures.extend(Self::details(&format!("{name}, {what}"), measured.times));
        figures
    }

    /// Below another figure.
    pub(crate) fn details(name: &str, times: Vec<Duration>) -> Vec<Self> {
        let Some(times) = Percentiles::of(times) else {
            return Vec::new();
        };
        vec![
            Self::time(format!("  {name} p50"), times.p50),
            Self::time(format!("  {name} p99"), times.p99),
        ]
    }

    /// The median under the name, and how bad it gets below it.
    pub(crate) fn times(name: &str, times: Vec<Duration>) -> Vec<Self> {
        let Some(times) = Percentiles::of(times) else {
            return Vec::new();
        };
        vec![
            Self::time(format!("{name}, p50"), times.p50),
            Self::time(format!("  {name}, p99"), times.p99),
        ]
    }

    /// How long a wake took, `from` such as "push sent"; not measured where nothing was woken.
    pub(crate) fn wakes(name: &str, from: &str, times: Vec<Duration>) -> Vec<Self> {
        let times = Percentiles::of(times);
        let times = times.map(|times| [times.p50, times.p90, times.p99, times.max]);
        let figure = |(number, which)| {
            let time = times.map(|times| millis(times[number]));
            Self::new(format!("{name} {which}, from {from}"), Unit::MILLIS, time)
        };
        let shown = ["p50", "p90", "p99", "max"];
        shown.into_iter().enumerate().map(figure).collect()
    }
}

/// One figure of all contestants.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    /// One for each contestant; nothing where it could not be measured.
    pub(crate) values: Vec<Option<f64>>,
}

impl Row {
    /// Below its figure, a detail needs only the end of its name.
    pub(crate) fn label(&self) -> String {
        match self.name.strip_prefix("  ") {
            Some(detail) => format!("  {}", detail.rsplit(", ").next().unwrap_or(detail)),
            None => self.name.clone(),
        }
    }

    pub(crate) fn value(&self, column: usize) -> Option<f64> {
        self.values.get(column).copied().flatten()
    }

    /// How many times the value of one contestant is that of the other.
    pub(crate) fn ratio(&self, one: usize, other: usize) -> Option<f64> {
        let other = self.value(other).filter(|other| *other > 0.0)?;
        Some(self.value(one)? / other)
    }
}
