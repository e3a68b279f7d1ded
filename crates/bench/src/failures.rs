//! Requests that failed: how many, and what the first of them said.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Seen>);

#[derive(Debug, Default, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Seen {
    pub(crate) count: usize,
    pub(crate) first: Option<String>,
}

impl Failures {
    pub(crate) fn add(&self, request: &str, error: &impl Display) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count += 1;
        seen.first
            .get_or_insert_with(|| format!("{request}: {error}"));
    }

    pub(crate) fn seen(&self) -> Seen {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
