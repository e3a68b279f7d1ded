//! No acknowledged message is lost, and no completed message comes back.

use std::collections::{HashMap, HashSet};

use super::order::Orders;
use super::{GroupView, HistoryLookup, ViolationKind, Violations, at};
use crate::verify::history::{AckOutcome, Effect, MessageNumber, NEVER, PushOutcome, Time};

pub(super) fn check(lookup: &HistoryLookup<'_>, orders: &Orders, found: &mut Violations) {
    for view in lookup.leased_views() {
        let outcomes = MessageOutcomes::of(view, &orders[view.partition]);
        lost(view, &outcomes, found);
        after_ack(view, &outcomes, found);
    }
}

/// The outcomes of the messages of one partition for one group.
struct MessageOutcomes<'a> {
    positions: &'a HashMap<MessageNumber, usize>,
    /// For each position, when the first acknowledgement of it or a later one was answered.
    completed: Vec<Time>,
    /// The same, counting acknowledgements of unknown outcome.
    perhaps_completed: Vec<bool>,
    /// Went to the dead letters, surely or perhaps.
    dead: HashSet<MessageNumber>,
}

impl<'a> MessageOutcomes<'a> {
    fn of(view: GroupView<'_>, positions: &'a HashMap<MessageNumber, usize>) -> Self {
        let mut outcomes = Self {
            positions,
            completed: vec![NEVER; positions.len()],
            perhaps_completed: vec![false; positions.len()],
            dead: HashSet::new(),
        };
        let key = (view.group, view.partition);
        let acks = view.lookup.history.acks.iter();
        for ack in acks.filter(|ack| (ack.group, ack.partition) == key) {
            let Some(&position) = positions.get(&ack.number) else {
                continue;
            };
            match (ack.effect, ack.outcome) {
                (_, AckOutcome::Refused) | (Effect::Nothing, AckOutcome::Done { .. }) => {}
                (Effect::Completes, AckOutcome::Done { .. }) => {
                    let end = &mut outcomes.completed[position];
                    *end = (*end).min(ack.end);
                    outcomes.perhaps_completed[position] = true;
                }
                (Effect::Completes, AckOutcome::Unknown) => {
                    outcomes.perhaps_completed[position] = true;
                }
                (Effect::GivesBack, AckOutcome::Done { dead: true, .. })
                | (Effect::GivesBack | Effect::Nothing, AckOutcome::Unknown) => {
                    outcomes.dead.insert(ack.number);
                }
                (Effect::GivesBack, AckOutcome::Done { .. }) => {}
            }
        }
        // An acknowledgement completes all before it.
        for position in (1..outcomes.completed.len()).rev() {
            let later = outcomes.completed[position];
            let earlier = &mut outcomes.completed[position - 1];
            *earlier = (*earlier).min(later);
            outcomes.perhaps_completed[position - 1] |= outcomes.perhaps_completed[position];
        }
        outcomes
    }
}

fn lost(view: GroupView<'_>, outcomes: &MessageOutcomes<'_>, found: &mut Violations) {
    let delivered: HashSet<MessageNumber> = view
        .deliveries()
        .iter()
        .flat_map(|delivery| delivery.messages.iter().map(|(number, _)| *number))
        .collect();
    let pushes = view.lookup.history.pushes.iter();
    for push in pushes.filter(|push| push.outcome == PushOutcome::Stored) {
        let items = push.items.iter();
        for (_, number) in items.filter(|(partition, _)| *partition == view.partition) {
            if !delivered.contains(number) {
                let end = at(push.end);
                found.add(
                    ViolationKind::Lost,
                    format!("{number} at {view} was acknowledged at {end} and never delivered"),
                );
            }
        }
    }
    for number in delivered {
        let position = outcomes.positions.get(&number);
        let is_completed = position.is_some_and(|&position| outcomes.perhaps_completed[position]);
        if position.is_some() && !is_completed && !outcomes.dead.contains(&number) {
            found.add(
                ViolationKind::Forgotten,
                format!(
                    "{number} at {view} was delivered and not completed, and did not come again"
                ),
            );
        }
    }
}

fn after_ack(view: GroupView<'_>, outcomes: &MessageOutcomes<'_>, found: &mut Violations) {
    for delivery in view.deliveries() {
        for (number, _) in &delivery.messages {
            let Some(&position) = outcomes.positions.get(number) else {
                continue;
            };
            let completed = outcomes.completed[position];
            if delivery.begin > completed {
                let (completed, popped) = (at(completed), at(delivery.begin));
                found.add(
                    ViolationKind::AfterAck,
                    format!(
                        "{number} at {view} was completed by {completed} and popped at {popped}"
                    ),
                );
            }
        }
    }
}
