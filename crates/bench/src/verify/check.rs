//! The checker: from a history alone, which promises were not kept.
//!
//! Every rule is conservative: it reports a violation only if no possible ordering of the calls
//! explains the history.

mod arrival;
mod finish;
mod leases;
mod order;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::history::{Delivery, History, MessageNumber, NEVER, PushOutcome, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ViolationKind {
    /// Acknowledged to its producer, and not delivered to a group.
    Lost,
    /// Delivered, not completed, and not delivered again.
    Forgotten,
    /// Two groups, or a group and the producers, see different orders.
    Reordered,
    /// Delivered while another lease on the partition was alive.
    Overlap,
    /// Delivered after it, or a later message, was acknowledged.
    AfterAck,
    /// An acknowledgement succeeded although its lease had passed to another consumer.
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
    pub(super) kind: ViolationKind,
    pub(super) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, kind: ViolationKind, text: String) {
        self.0.push(Violation { kind, text });
    }
}

/// Everything that is wrong with a history; nothing, if it keeps the promises.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let lookup = HistoryLookup::of(history);
    let mut found = Violations::default();
    arrival::check(&lookup, &mut found);
    let orders = order::check(&lookup, &mut found);
    leases::check(&lookup, &mut found);
    finish::check(&lookup, &orders, &mut found);
    found.0
}

/// A history with what is looked up in it.
struct HistoryLookup<'a> {
    history: &'a History,
    pushed: HashMap<MessageNumber, PushedMessage>,
    /// For each group and partition, in the order of their answers.
    deliveries: HashMap<(usize, usize), Vec<&'a Delivery>>,
}

#[derive(Debug, Clone, Copy)]
struct PushedMessage {
    partition: usize,
    begin: Time,
    /// Never, if it is not known whether the message was stored.
    end: Time,
    outcome: PushOutcome,
    /// Index of the push, and of the item in it.
    push: usize,
    item: usize,
}

impl<'a> HistoryLookup<'a> {
    fn of(history: &'a History) -> Self {
        let mut pushed = HashMap::new();
        for (index, push) in history.pushes.iter().enumerate() {
            for (item, &(partition, number)) in push.items.iter().enumerate() {
                let message = PushedMessage {
                    partition,
                    begin: push.begin,
                    end: match push.outcome {
                        PushOutcome::Stored => push.end,
                        PushOutcome::Refused | PushOutcome::Unknown => NEVER,
                    },
                    outcome: push.outcome,
                    push: index,
                    item,
                };
                pushed.insert(number, message);
            }
        }
        let mut deliveries: HashMap<_, Vec<&Delivery>> = HashMap::new();
        for delivery in &history.deliveries {
            let key = (delivery.group, delivery.partition);
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

    fn partitions(&self) -> std::ops::Range<usize> {
        0..self.history.partitions.len()
    }

    /// The deliveries of a partition by group, for the groups with leases or for those without.
    fn views(&self, partition: usize, auto_ack: bool) -> impl Iterator<Item = GroupView<'_>> {
        let groups = self.history.groups.iter().enumerate();
        groups
            .filter(move |(_, group)| group.auto_ack == auto_ack)
            .map(move |(group, _)| self.view(group, partition))
    }

    fn leased_views(&self) -> impl Iterator<Item = GroupView<'_>> {
        let partitions = self.partitions();
        partitions.flat_map(|partition| self.views(partition, false))
    }

    fn view(&self, group: usize, partition: usize) -> GroupView<'_> {
        GroupView {
            lookup: self,
            group,
            partition,
        }
    }
}

/// The deliveries of one partition to one group.
#[derive(Clone, Copy)]
struct GroupView<'a> {
    lookup: &'a HistoryLookup<'a>,
    group: usize,
    partition: usize,
}

impl<'a> GroupView<'a> {
    fn deliveries(&self) -> &'a [&'a Delivery] {
        let key = (self.group, self.partition);
        self.lookup.deliveries.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The messages were claimed no earlier than this: after the pop was sent, and after they
    /// were pushed.
    fn claimed_from(&self, delivery: &Delivery) -> Time {
        let numbers = delivery.messages.iter().map(|(number, _)| number);
        let pushed = numbers.filter_map(|number| Some(self.lookup.pushed.get(number)?.begin));
        pushed.fold(delivery.begin, Time::max)
    }
}

impl fmt::Display for GroupView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let history = self.lookup.history;
        let partition = &history.partitions[self.partition];
        write!(f, "{partition} for {}", history.groups[self.group].name)
    }
}

/// For a person: seconds of the run.
fn at(time: Time) -> String {
    format!("{:.6}", time as f64 / 1e6)
}
