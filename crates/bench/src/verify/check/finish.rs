//! Nothing acknowledged is lost, and nothing completed comes back.

use std::collections::{HashMap, HashSet};

use super::order::Orders;
use super::{Kind, Known, Violation, at};
use crate::verify::history::{AckOutcome, Effect, NEVER, Number, PushOutcome, Time};

pub(super) fn check(known: &Known<'_>, orders: &Orders, found: &mut Vec<Violation>) {
    for group in known.leased_groups() {
        for place in known.places() {
            let ends = Ends::of(known, group, place, &orders[place]);
            lost(known, group, place, &ends, found);
            after_ack(known, group, place, &ends, found);
        }
    }
}

/// What became of the messages of one place for one group.
struct Ends<'a> {
    positions: &'a HashMap<Number, usize>,
    /// For each position, when the first acknowledgement of it or a later one was answered.
    completed: Vec<Time>,
    /// The same, counting those whose outcome nobody knows.
    perhaps_completed: Vec<bool>,
    /// To the dead letters, surely or perhaps.
    dead: HashSet<Number>,
}

impl<'a> Ends<'a> {
    fn of(
        known: &Known<'_>,
        group: usize,
        place: usize,
        positions: &'a HashMap<Number, usize>,
    ) -> Self {
        let mut ends = Self {
            positions,
            completed: vec![NEVER; positions.len()],
            perhaps_completed: vec![false; positions.len()],
            dead: HashSet::new(),
        };
        let acks = known.history.acks.iter();
        for ack in acks.filter(|ack| (ack.group, ack.place) == (group, place)) {
            let Some(&position) = positions.get(&ack.number) else {
                continue;
            };
            match (ack.effect, ack.outcome) {
                (_, AckOutcome::Refused) | (Effect::Nothing, AckOutcome::Done { .. }) => {}
                (Effect::Completes, AckOutcome::Done { .. }) => {
                    let end = &mut ends.completed[position];
                    *end = (*end).min(ack.end);
                    ends.perhaps_completed[position] = true;
                }
                (Effect::Completes, AckOutcome::Unknown) => ends.perhaps_completed[position] = true,
                (Effect::GivesBack, AckOutcome::Done { dead: true, .. })
                | (Effect::GivesBack | Effect::Nothing, AckOutcome::Unknown) => {
                    ends.dead.insert(ack.number);
                }
                (Effect::GivesBack, AckOutcome::Done { .. }) => {}
            }
        }
        // An acknowledgement completes all before it.
        for position in (1..ends.completed.len()).rev() {
            let later = ends.completed[position];
            let earlier = &mut ends.completed[position - 1];
            *earlier = (*earlier).min(later);
            ends.perhaps_completed[position - 1] |= ends.perhaps_completed[position];
        }
        ends
    }
}

fn lost(
    known: &Known<'_>,
    group: usize,
    place: usize,
    ends: &Ends<'_>,
    found: &mut Vec<Violation>,
) {
    let delivered: HashSet<Number> = known
        .deliveries(group, place)
        .iter()
        .flat_map(|delivery| delivery.messages.iter().map(|(number, _)| *number))
        .collect();
    let name = known.name(group, place);
    let stored = known
        .history
        .pushes
        .iter()
        .filter(|push| push.outcome == PushOutcome::Stored);
    for push in stored {
        for &(_, number) in push.items.iter().filter(|(there, _)| *there == place) {
            if !delivered.contains(&number) {
                found.push(Violation {
                    kind: Kind::Lost,
                    text: format!(
                        "{number} at {name} was acknowledged at {} and never delivered",
                        at(push.end)
                    ),
                });
            }
        }
    }
    for number in delivered {
        let position = ends.positions.get(&number);
        let is_completed = position.is_some_and(|&position| ends.perhaps_completed[position]);
        if position.is_some() && !is_completed && !ends.dead.contains(&number) {
            found.push(Violation {
                kind: Kind::Forgotten,
                text: format!(
                    "{number} at {name} was delivered and not completed, and did not come again"
                ),
            });
        }
    }
}

fn after_ack(
    known: &Known<'_>,
    group: usize,
    place: usize,
    ends: &Ends<'_>,
    found: &mut Vec<Violation>,
) {
    for delivery in known.deliveries(group, place) {
        for (number, _) in &delivery.messages {
            let Some(&position) = ends.positions.get(number) else {
                continue;
            };
            let completed = ends.completed[position];
            if delivery.begin > completed {
                found.push(Violation {
                    kind: Kind::AfterAck,
                    text: format!(
                        "{number} at {} was completed by {} and asked for and delivered at {}",
                        known.name(group, place),
                        at(completed),
                        at(delivery.begin)
                    ),
                });
            }
        }
    }
}
