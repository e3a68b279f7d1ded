//! The report: what happened, and what was wrong with it.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::args::VerifyArgs;
use super::check::{Violation, ViolationKind};
use super::history::{AckOutcome, Effect, History, PushOutcome};
use super::run::{EventCounts, OfferedRoutes};
use crate::args::StoreKind;
use crate::failures::FailureSummary;
use crate::units::{as_millis, show_count, show_duration};

/// So many violations of each kind are shown.
const MAX_SHOWN: usize = 5;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) store: StoreKind,
    pub(super) nodes: usize,
    #[serde(rename = "timeMs", serialize_with = "as_millis")]
    pub(super) time: Duration,
    /// Routes that the server does not offer, and that the run therefore did not try.
    not_tried: Vec<&'static str>,
    happened: BTreeMap<&'static str, u64>,
    /// Events that should have happened, and did not.
    missing: Vec<&'static str>,
    unexpected: FailureSummary,
    violations: BTreeMap<ViolationKind, u64>,
    first_violations: Vec<Violation>,
}

impl Report {
    pub(super) fn new(
        args: &VerifyArgs,
        seed: u64,
        routes: OfferedRoutes,
        history: &History,
        events: &EventCounts,
        planned: &[&'static str],
    ) -> Self {
        let mut not_tried = Vec::new();
        let mut expected = vec![
            "pushes acknowledged",
            "messages delivered",
            "messages delivered again",
            "acks that counted",
            "given back",
            "hang-ups",
            "stalls",
        ];
        expected.extend(planned);
        for (offered, route, what) in [
            (routes.ack_batch, "ack/batch", "batch acks"),
            (routes.transaction, "transaction", "transactions"),
        ] {
            match offered {
                true => expected.push(what),
                false => not_tried.push(route),
            }
        }
        let mut happened = counts(history);
        for (what, count) in &events.0 {
            *happened.entry(what).or_default() += count;
        }
        let missing = expected
            .into_iter()
            .filter(|what| happened.get(what).is_none_or(|count| *count == 0))
            .collect();
        Self {
            seed,
            store: args.store,
            nodes: args.nodes,
            time: args.time(),
            not_tried,
            happened,
            missing,
            unexpected: FailureSummary::default(),
            violations: BTreeMap::new(),
            first_violations: Vec::new(),
        }
    }

    pub(super) fn judge(&mut self, violations: Vec<Violation>, unexpected: FailureSummary) {
        self.unexpected = unexpected;
        for violation in violations {
            let count = self.violations.entry(violation.kind).or_default();
            *count += 1;
            if *count <= MAX_SHOWN as u64 {
                self.first_violations.push(violation);
            }
        }
    }

    /// Why the run has not proved the promises.
    pub(super) fn trouble(&self) -> Option<String> {
        let seed = self.seed;
        if !self.violations.is_empty() {
            let count: u64 = self.violations.values().sum();
            return Some(format!("{count} violations; repeat with --seed {seed}"));
        }
        if let Some(unexpected) = self.unexpected.describe("answers were not understood") {
            return Some(unexpected);
        }
        if !self.missing.is_empty() {
            let missing = self.missing.join(", ");
            return Some(format!(
                "too little happened to prove anything: no {missing}"
            ));
        }
        None
    }
}

fn counts(history: &History) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut add =
        |what: &'static str, count: usize| *counts.entry(what).or_default() += count as u64;
    for push in &history.pushes {
        match push.outcome {
            PushOutcome::Stored => {
                add("pushes acknowledged", 1);
                add("messages acknowledged", push.items.len());
            }
            PushOutcome::Refused => add("pushes refused", 1),
            PushOutcome::Unknown => add("pushes of unknown outcome", 1),
        }
    }
    add("duplicates pushed", history.repeats.len());
    let mut seen = HashSet::new();
    for delivery in &history.deliveries {
        add("pops with messages", 1);
        add("messages delivered", delivery.messages.len());
        for (number, _) in &delivery.messages {
            let again = !seen.insert((delivery.group, *number));
            add("messages delivered again", usize::from(again));
        }
    }
    for ack in &history.acks {
        match (ack.outcome, ack.effect) {
            (AckOutcome::Done { dead: true, .. }, _) => add("dead letters", 1),
            (AckOutcome::Done { .. }, Effect::GivesBack) => add("given back", 1),
            (AckOutcome::Done { .. }, _) => add("acks that counted", 1),
            (AckOutcome::Refused, _) => add("acks refused", 1),
            (AckOutcome::Unknown, _) => add("acks of unknown outcome", 1),
        }
    }
    counts
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let nodes = match self.nodes {
            1 => "one node".to_owned(),
            count => format!("{count} nodes"),
        };
        let store = match self.store {
            StoreKind::Sqlite => "SQLite",
            StoreKind::Postgres => "PostgreSQL",
        };
        let time = show_duration(self.time);
        writeln!(f, "{nodes} on {store} for {time}, seed {}\n", self.seed)?;
        for (what, count) in &self.happened {
            writeln!(f, "{what:<28}{:>12}", show_count(*count as usize))?;
        }
        if !self.not_tried.is_empty() {
            writeln!(
                f,
                "\nnot tried, the server has no {}",
                self.not_tried.join(", ")
            )?;
        }
        writeln!(f)?;
        for (kind, count) in &self.violations {
            writeln!(
                f,
                "{:<28}{:>12}",
                format!("{kind:?}"),
                show_count(*count as usize)
            )?;
        }
        for violation in &self.first_violations {
            writeln!(f, "  {violation}")?;
        }
        match self.trouble() {
            None => writeln!(f, "nothing lost, nothing out of order, nothing twice"),
            Some(trouble) => writeln!(f, "NOT PROVED: {trouble}"),
        }
    }
}
