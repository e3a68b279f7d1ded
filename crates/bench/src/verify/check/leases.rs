//! One live lease per partition and group, and only its holder counts.

use std::collections::HashMap;

use super::{Kind, Known, Violation, at};
use crate::verify::history::{AckOutcome, Delivery, Effect, NEVER, Number, Time};

/// The clock that ends leases is the server's or the database's, not ours.
const CLOCKS_DIFFER: Time = 100_000;

pub(super) fn check(known: &Known<'_>, found: &mut Vec<Violation>) {
    let released = released(known);
    let ends_from = |delivery: &Delivery| {
        let lease = known.history.lease.as_micros() as Time;
        let by_time = known.claimed_from(delivery) + lease.saturating_sub(CLOCKS_DIFFER);
        let key = (delivery.group, delivery.lease.unwrap_or_default());
        by_time.min(released.get(&key).copied().unwrap_or(NEVER))
    };
    for group in known.leased_groups() {
        for place in known.places() {
            overlaps(known, group, place, ends_from, found);
        }
    }
    unfenced(known, found);
}

/// When each lease may have ended at the earliest by what was done with it.
fn released(known: &Known<'_>) -> HashMap<(usize, u128), Time> {
    let mut released = HashMap::new();
    for ack in &known.history.acks {
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
fn overlaps(
    known: &Known<'_>,
    group: usize,
    place: usize,
    ends_from: impl Fn(&Delivery) -> Time,
    found: &mut Vec<Violation>,
) {
    let deliveries = known.deliveries(group, place);
    for (index, one) in deliveries.iter().enumerate() {
        let end = ends_from(one);
        // Sorted by their answers: from the first that came after the end on, all did.
        for other in deliveries[index + 1..]
            .iter()
            .take_while(|other| other.end < end)
        {
            if one.lease == other.lease || one.end >= ends_from(other) {
                continue;
            }
            found.push(Violation {
                kind: Kind::Overlap,
                text: format!(
                    "{} was delivered twice, and the first lease lasted to {} at least: {}, then {}",
                    known.name(group, place),
                    at(end),
                    shown(one),
                    shown(other)
                ),
            });
        }
    }
}

fn shown(delivery: &Delivery) -> String {
    let number = |message: Option<&(Number, u128)>| message.map_or(0, |(number, _)| *number);
    format!(
        "{}..{} asked for at {} and answered at {} under {:x}",
        number(delivery.messages.first()),
        number(delivery.messages.last()),
        at(delivery.begin),
        at(delivery.end),
        delivery.lease.unwrap_or_default()
    )
}

/// An acknowledgement that counted, sent after the partition was surely leased to another.
fn unfenced(known: &Known<'_>, found: &mut Vec<Violation>) {
    let mut answered: HashMap<(usize, u128), Time> = HashMap::new();
    for delivery in &known.history.deliveries {
        if let Some(lease) = delivery.lease {
            answered.insert((delivery.group, lease), delivery.end);
        }
    }
    for ack in &known.history.acks {
        let AckOutcome::Done { noop: false, .. } = ack.outcome else {
            continue;
        };
        let Some(&own) = answered.get(&(ack.group, ack.lease)) else {
            continue;
        };
        let deliveries = known.deliveries(ack.group, ack.place);
        let after_own = deliveries.partition_point(|one| one.end <= own);
        let other = deliveries[after_own..]
            .iter()
            .take_while(|other| other.end < ack.begin)
            .find(|other| other.lease != Some(ack.lease) && other.begin > own);
        if let Some(other) = other {
            found.push(Violation {
                kind: Kind::Unfenced,
                text: format!(
                    "{} at {} was acknowledged at {} under a lease that another had since {}",
                    ack.number,
                    known.name(ack.group, ack.place),
                    at(ack.begin),
                    at(other.end)
                ),
            });
        }
    }
}
