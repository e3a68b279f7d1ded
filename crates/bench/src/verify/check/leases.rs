//! One live lease per partition and group, and only its holder counts.

use std::collections::HashMap;

use super::{GroupView, HistoryLookup, ViolationKind, Violations, at};
use crate::verify::history::{AckOutcome, Delivery, Effect, MessageNumber, NEVER, Time};

/// The clock that ends leases is the server's or the database's, not ours.
const CLOCKS_DIFFER: Time = 100_000;

pub(super) fn check(lookup: &HistoryLookup<'_>, found: &mut Violations) {
    let released = released(lookup);
    for view in lookup.leased_views() {
        overlaps(view, &released, found);
    }
    unfenced(lookup, found);
}

type LeaseKey = (usize, u128);

/// The earliest time at which an acknowledgement may have ended each lease.
fn released(lookup: &HistoryLookup<'_>) -> HashMap<LeaseKey, Time> {
    let mut released = HashMap::new();
    for ack in &lookup.history.acks {
        let may_release = match ack.outcome {
            AckOutcome::Done { released, .. } => released || ack.effect == Effect::GivesBack,
            AckOutcome::Unknown => true,
            AckOutcome::Refused => false,
        };
        if may_release {
            let first: &mut Time = released.entry((ack.group, ack.lease)).or_insert(NEVER);
            *first = (*first).min(ack.begin);
        }
    }
    released
}

/// Two claims, neither of which can have been made after the other's lease had ended.
fn overlaps(view: GroupView<'_>, released: &HashMap<LeaseKey, Time>, found: &mut Violations) {
    let lease = view.lookup.history.lease.as_micros() as Time;
    let ends_from = |delivery: &Delivery| {
        let by_time = view.claimed_from(delivery) + lease.saturating_sub(CLOCKS_DIFFER);
        let key = (delivery.group, delivery.lease.unwrap_or_default());
        by_time.min(released.get(&key).copied().unwrap_or(NEVER))
    };
    let deliveries = view.deliveries();
    for (index, one) in deliveries.iter().enumerate() {
        let end = ends_from(one);
        // Sorted by their answers: all from the first that was answered after the end are later.
        let later = deliveries[index + 1..].iter();
        for other in later.take_while(|other| other.end < end) {
            if one.lease == other.lease || one.end >= ends_from(other) {
                continue;
            }
            let (end, one, other) = (at(end), describe(one), describe(other));
            found.add(
                ViolationKind::Overlap,
                format!(
                    "{view} was delivered twice, and the first lease lasted to {end} at least: \
                     {one}, then {other}"
                ),
            );
        }
    }
}

fn describe(delivery: &Delivery) -> String {
    let number = |message: Option<&(MessageNumber, u128)>| message.map_or(0, |(number, _)| *number);
    format!(
        "{}..{} popped at {} and answered at {} under {:x}",
        number(delivery.messages.first()),
        number(delivery.messages.last()),
        at(delivery.begin),
        at(delivery.end),
        delivery.lease.unwrap_or_default()
    )
}

/// An acknowledgement that succeeded, sent after the partition was surely leased to another consumer.
fn unfenced(lookup: &HistoryLookup<'_>, found: &mut Violations) {
    let mut answered: HashMap<LeaseKey, Time> = HashMap::new();
    for delivery in &lookup.history.deliveries {
        if let Some(lease) = delivery.lease {
            answered.insert((delivery.group, lease), delivery.end);
        }
    }
    for ack in &lookup.history.acks {
        let AckOutcome::Done { noop: false, .. } = ack.outcome else {
            continue;
        };
        let Some(&own) = answered.get(&(ack.group, ack.lease)) else {
            continue;
        };
        let view = lookup.view(ack.group, ack.partition);
        let deliveries = view.deliveries();
        let after_own = deliveries.partition_point(|one| one.end <= own);
        let other = deliveries[after_own..]
            .iter()
            .take_while(|other| other.end < ack.begin)
            .find(|other| other.lease != Some(ack.lease) && other.begin > own);
        if let Some(other) = other {
            let (number, begin, since) = (ack.number, at(ack.begin), at(other.end));
            found.add(
                ViolationKind::Unfenced,
                format!(
                    "{number} at {view} was acknowledged at {begin} under a lease that another \
                     consumer had since {since}"
                ),
            );
        }
    }
}
