//! Requests that failed: how many, and what the first of them said.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<FailureSummary>);

#[derive(Debug, Default, Clone, PartialEq, serde::Serialize)]
pub(crate) struct FailureSummary {
    pub(crate) count: usize,
    pub(crate) first: Option<String>,
}

impl Failures {
    pub(crate) fn add(&self, request: &str, error: &impl Display) {
        let mut summary = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        summary.count += 1;
        summary
            .first
            .get_or_insert_with(|| format!("{request}: {error}"));
    }

    /// With all its causes.
    pub(crate) fn add_error(&self, request: &str, error: &anyhow::Error) {
        self.add(request, &format!("{error:#}"));
    }

    pub(crate) fn summary(&self) -> FailureSummary {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl FailureSummary {
    /// For a report, of what has failed such as "requests"; nothing if nothing has.
    pub(crate) fn describe(&self, what: &str) -> Option<String> {
        let first = self.first.as_deref()?;
        Some(format!("{} {what}; the first: {first}", self.count))
    }
}
