//! The checker: from a history alone, what was promised and not kept.
//!
//! Every rule is conservative: it speaks only when no order of the moments that the calls leave
//! open would make the history right.

mod arrival;
mod finish;
mod leases;
mod order;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::history::{Delivery, History, NEVER, Number, PushOutcome, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    /// Acknowledged to its producer, and not delivered to a group.
    Lost,
    /// Delivered, not completed, and not delivered again.
    Forgotten,
    /// Two groups, or a group and the producers, see different orders.
    Reordered,
    /// Delivered while another lease on the partition was alive.
    Overlap,
    /// Delivered after it, or a later one, was acknowledged.
    AfterAck,
    /// An acknowledgement counted although its lease had passed to another.
    Unfenced,
    /// Delivered twice where once is the most.
    Twice,
    /// A repeated push that was not called a duplicate.
    NotDuplicate,
    /// Delivered, but never pushed there, or refused.
    Invented,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Violation {
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// Everything that is wrong with a history; nothing, if it keeps the promises.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let known = Known::of(history);
    let mut found = Vec::new();
    arrival::check(&known, &mut found);
    let orders = order::check(&known, &mut found);
    leases::check(&known, &mut found);
    finish::check(&known, &orders, &mut found);
    found
}

/// A history, looked up by number, place and group.
struct Known<'a> {
    history: &'a History,
    pushed: HashMap<Number, Pushed>,
    /// For each group and place, in the order of their answers.
    deliveries: HashMap<(usize, usize), Vec<&'a Delivery>>,
}

#[derive(Debug, Clone, Copy)]
struct Pushed {
    place: usize,
    begin: Time,
    /// Never, if nobody knows whether it was stored.
    end: Time,
    outcome: PushOutcome,
    /// Which push, and where in it.
    push: usize,
    item: usize,
}

impl<'a> Known<'a> {
    fn of(history: &'a History) -> Self {
        let mut pushed = HashMap::new();
        for (index, push) in history.pushes.iter().enumerate() {
            for (item, &(place, number)) in push.items.iter().enumerate() {
                let one = Pushed {
                    place,
                    begin: push.begin,
                    end: match push.outcome {
                        PushOutcome::Stored => push.end,
                        PushOutcome::Refused | PushOutcome::Unknown => NEVER,
                    },
                    outcome: push.outcome,
                    push: index,
                    item,
                };
                pushed.insert(number, one);
            }
        }
        let mut deliveries: HashMap<_, Vec<&Delivery>> = HashMap::new();
        for delivery in &history.deliveries {
            let key = (delivery.group, delivery.place);
            deliveries.entry(key).or_default().push(delivery);
        }
        for list in deliveries.values_mut() {
            list.sort_by_key(|delivery| delivery.end);
        }
        Self {
            history,
            pushed,
            deliveries,
        }
    }

    fn deliveries(&self, group: usize, place: usize) -> &[&'a Delivery] {
        self.deliveries
            .get(&(group, place))
            .map_or(&[], Vec::as_slice)
    }

    fn places(&self) -> std::ops::Range<usize> {
        0..self.history.places.len()
    }

    /// Groups with leases.
    fn leased_groups(&self) -> impl Iterator<Item = usize> {
        self.groups(false)
    }

    fn auto_ack_groups(&self) -> impl Iterator<Item = usize> {
        self.groups(true)
    }

    fn groups(&self, auto_ack: bool) -> impl Iterator<Item = usize> {
        let groups = self.history.groups.iter().enumerate();
        groups
            .filter(move |(_, group)| group.auto_ack == auto_ack)
            .map(|(index, _)| index)
    }

    /// The messages were claimed no earlier than this: after the pop was sent, and after they
    /// were pushed.
    fn claimed_from(&self, delivery: &Delivery) -> Time {
        let pushed = delivery
            .messages
            .iter()
            .filter_map(|(number, _)| Some(self.pushed.get(number)?.begin));
        pushed.fold(delivery.begin, Time::max)
    }

    fn name(&self, group: usize, place: usize) -> String {
        let (group, place) = (&self.history.groups[group], &self.history.places[place]);
        format!("{place} for {}", group.name)
    }
}

/// For a person: seconds of the run.
fn at(time: Time) -> String {
    format!("{:.6}", time as f64 / 1e6)
}
