//! One order per partition: the same for all groups, and the order of the pushes.

use std::collections::{HashMap, HashSet};

use super::{GroupView, HistoryLookup, ViolationKind, Violations, at};
use crate::verify::history::{MessageNumber, Time};

/// For each partition, the position of each message that a group with leases has seen.
pub(super) type Orders = Vec<HashMap<MessageNumber, usize>>;

pub(super) fn check(lookup: &HistoryLookup<'_>, found: &mut Violations) -> Orders {
    let mut orders = Vec::new();
    for partition in lookup.partitions() {
        let mut positions: HashMap<MessageNumber, usize> = HashMap::new();
        for view in lookup.views(partition, false) {
            let sequence = first_deliveries(view);
            by_pushes(view, &sequence, found);
            if positions.is_empty() {
                positions = sequence.iter().copied().zip(0..).collect();
            } else {
                by_positions(view, &sequence, &positions, found);
            }
        }
        for view in lookup.views(partition, true) {
            without_leases(view, &positions, found);
        }
        orders.push(positions);
    }
    orders
}

/// By their answers: the next pop of a partition is served after the lease of the pop before it has
/// ended. If that lease ended by time, the next pop begins with the same messages again, so that it
/// does not matter which answer arrived first.
fn first_deliveries(view: GroupView<'_>) -> Vec<MessageNumber> {
    let mut seen = HashSet::new();
    view.deliveries()
        .iter()
        .flat_map(|delivery| &delivery.messages)
        .map(|(number, _)| *number)
        .filter(|number| seen.insert(*number))
        .collect()
}

/// A push that was answered before another began comes before it, and the items of one push are
/// in the order of the request.
fn by_pushes(view: GroupView<'_>, sequence: &[MessageNumber], found: &mut Violations) {
    let mut latest: Option<(MessageNumber, Time)> = None;
    let mut items: HashMap<usize, (usize, MessageNumber)> = HashMap::new();
    for &number in sequence {
        let Some(pushed) = view.lookup.pushed.get(&number) else {
            continue;
        };
        if let Some((earlier, begin)) = latest
            && pushed.end < begin
        {
            let (begin, end) = (at(begin), at(pushed.end));
            found.add(
                ViolationKind::Reordered,
                format!(
                    "{number} at {view} comes after {earlier}, whose push began at {begin} when its \
                     own was answered at {end}"
                ),
            );
        }
        if latest.is_none_or(|(_, begin)| pushed.begin > begin) {
            latest = Some((number, pushed.begin));
        }
        if let Some(&(item, earlier)) = items.get(&pushed.push)
            && item > pushed.item
        {
            found.add(
                ViolationKind::Reordered,
                format!(
                    "{number} at {view} comes after {earlier}, which followed it in their push"
                ),
            );
        }
        items.insert(pushed.push, (pushed.item, number));
    }
}

fn by_positions(
    view: GroupView<'_>,
    sequence: &[MessageNumber],
    positions: &HashMap<MessageNumber, usize>,
    found: &mut Violations,
) {
    let mut last: Option<(usize, MessageNumber)> = None;
    for &number in sequence {
        let Some(&position) = positions.get(&number) else {
            continue;
        };
        if let Some((_, earlier)) = last.filter(|(before, _)| *before > position) {
            found.add(
                ViolationKind::Reordered,
                format!(
                    "{number} at {view} comes after {earlier}; for another group it comes before"
                ),
            );
        }
        last = Some((position, number));
    }
}

/// Without leases several pops may be answered at once: only messages that were answered before a pop
/// was sent are known to come before the messages of that pop. And no message comes twice.
fn without_leases(
    view: GroupView<'_>,
    positions: &HashMap<MessageNumber, usize>,
    found: &mut Violations,
) {
    let by_end = view.deliveries();
    let mut by_begin = by_end.to_vec();
    by_begin.sort_by_key(|delivery| delivery.begin);
    let position = |number: &MessageNumber| positions.get(number).copied();
    let (mut answered, mut latest, mut seen) = (0, None, HashSet::new());
    for delivery in by_begin {
        while let Some(before) = by_end.get(answered).filter(|one| one.end < delivery.begin) {
            let numbers = before.messages.iter().map(|(number, _)| number);
            latest = latest.max(numbers.filter_map(position).max());
            answered += 1;
        }
        let mut last = latest;
        for (number, _) in &delivery.messages {
            if !seen.insert(*number) {
                let text = format!("{number} at {view} was delivered twice");
                found.add(ViolationKind::Twice, text);
                continue;
            }
            let here = position(number);
            if here.is_some() && here < last {
                let text = format!("{number} at {view} comes after a later message");
                found.add(ViolationKind::Reordered, text);
            }
            last = last.max(here);
        }
    }
}
