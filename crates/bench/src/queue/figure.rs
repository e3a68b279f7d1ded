//! One measured number, with its name and unit.

use std::time::Duration;

use serde::Serialize;

use crate::units::show_count;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    /// The same for every server, so that rows can be made of them.
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "messages/s")]
    MessagesPerSecond,
    #[serde(rename = "requests/s")]
    RequestsPerSecond,
    #[serde(rename = "statements/s")]
    StatementsPerSecond,
    #[serde(rename = "ms")]
    Millis,
}

impl Figure {
    pub(super) fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
        }
    }

    pub(super) fn time(name: impl Into<String>, time: Duration) -> Self {
        Self::new(name, Unit::Millis, time.as_secs_f64() * 1e3)
    }
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MessagesPerSecond => "messages/s",
            Self::RequestsPerSecond => "requests/s",
            Self::StatementsPerSecond => "statements/s",
            Self::Millis => "ms",
        }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::MessagesPerSecond | Self::RequestsPerSecond => {
                show_count(value.round().max(0.0) as usize)
            }
            Self::StatementsPerSecond | Self::Millis => format!("{value:.2}"),
        }
    }
}
