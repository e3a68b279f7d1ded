//! One order per partition: the same for all groups, and the order of the pushes.

use std::collections::{HashMap, HashSet};

use super::{Kind, Known, Violation, at};
use crate::verify::history::{Number, Time};

/// For each place, the position of each message that a group with leases has seen.
pub(super) type Orders = Vec<HashMap<Number, usize>>;

pub(super) fn check(known: &Known<'_>, found: &mut Vec<Violation>) -> Orders {
    let mut orders = Vec::new();
    for place in known.places() {
        let mut positions: HashMap<Number, usize> = HashMap::new();
        for group in known.leased_groups() {
            let sequence = first_deliveries(known, group, place);
            by_pushes(known, group, place, &sequence, found);
            if positions.is_empty() {
                positions = sequence.iter().copied().zip(0..).collect();
            } else {
                by_positions(known, group, place, &sequence, &positions, found);
            }
        }
        for group in known.auto_ack_groups() {
            handed_out(known, group, place, &positions, found);
        }
        orders.push(positions);
    }
    orders
}

/// By their answers: the next pop of a partition is served after the lease of the one before it
/// has ended. If that ended by time, the next one begins with the same messages again, so that it
/// does not matter which answer arrived first.
fn first_deliveries(known: &Known<'_>, group: usize, place: usize) -> Vec<Number> {
    let mut seen = HashSet::new();
    known
        .deliveries(group, place)
        .iter()
        .flat_map(|delivery| &delivery.messages)
        .map(|(number, _)| *number)
        .filter(|number| seen.insert(*number))
        .collect()
}

/// A push that was answered before another began comes before it, and the items of one push are
/// in the order of the request.
fn by_pushes(
    known: &Known<'_>,
    group: usize,
    place: usize,
    sequence: &[Number],
    found: &mut Vec<Violation>,
) {
    let name = || known.name(group, place);
    let mut latest: Option<(Number, Time)> = None;
    let mut items: HashMap<usize, (usize, Number)> = HashMap::new();
    for &number in sequence {
        let Some(pushed) = known.pushed.get(&number) else {
            continue;
        };
        if let Some((earlier, begin)) = latest
            && pushed.end < begin
        {
            found.push(Violation {
                kind: Kind::Reordered,
                text: format!(
                    "{number} at {} comes after {earlier}, whose push began at {} when its own was answered at {}",
                    name(),
                    at(begin),
                    at(pushed.end)
                ),
            });
        }
        if latest.is_none_or(|(_, begin)| pushed.begin > begin) {
            latest = Some((number, pushed.begin));
        }
        if let Some(&(item, earlier)) = items.get(&pushed.push)
            && item > pushed.item
        {
            found.push(Violation {
                kind: Kind::Reordered,
                text: format!(
                    "{number} at {} comes after {earlier}, which stood behind it in their push",
                    name()
                ),
            });
        }
        items.insert(pushed.push, (pushed.item, number));
    }
}

fn by_positions(
    known: &Known<'_>,
    group: usize,
    place: usize,
    sequence: &[Number],
    positions: &HashMap<Number, usize>,
    found: &mut Vec<Violation>,
) {
    let mut last: Option<(usize, Number)> = None;
    for &number in sequence {
        let Some(&position) = positions.get(&number) else {
            continue;
        };
        if let Some((_, earlier)) = last.filter(|(before, _)| *before > position) {
            found.push(Violation {
                kind: Kind::Reordered,
                text: format!(
                    "{number} at {} comes after {earlier}; for another group it comes before",
                    known.name(group, place)
                ),
            });
        }
        last = Some((position, number));
    }
}

/// Without leases several answers may be under way at once: only what was answered before a pop
/// was sent is known to come before what that pop got. And nothing comes twice.
fn handed_out(
    known: &Known<'_>,
    group: usize,
    place: usize,
    positions: &HashMap<Number, usize>,
    found: &mut Vec<Violation>,
) {
    let name = || known.name(group, place);
    let by_end = known.deliveries(group, place);
    let mut by_begin = by_end.to_vec();
    by_begin.sort_by_key(|delivery| delivery.begin);
    let position = |number: &Number| positions.get(number).copied();
    let (mut answered, mut latest, mut seen) = (0, None, HashSet::new());
    for delivery in by_begin {
        while let Some(before) = by_end.get(answered).filter(|one| one.end < delivery.begin) {
            let last = before
                .messages
                .iter()
                .filter_map(|(n, _)| position(n))
                .max();
            latest = latest.max(last);
            answered += 1;
        }
        let mut last = latest;
        for (number, _) in &delivery.messages {
            if !seen.insert(*number) {
                found.push(Violation {
                    kind: Kind::Twice,
                    text: format!("{number} at {} was handed out twice", name()),
                });
                continue;
            }
            let here = position(number);
            if here.is_some() && here < last {
                found.push(Violation {
                    kind: Kind::Reordered,
                    text: format!("{number} at {} comes after a later one", name()),
                });
            }
            last = last.max(here);
        }
    }
}
