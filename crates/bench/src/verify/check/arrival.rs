//! Every message that arrives was pushed there, and is one message.

use std::collections::HashMap;

use super::{HistoryLookup, ViolationKind, Violations, at};
use crate::verify::history::PushOutcome;

pub(super) fn check(lookup: &HistoryLookup<'_>, found: &mut Violations) {
    let history = lookup.history;
    let mut ids = HashMap::new();
    for delivery in &history.deliveries {
        let view = lookup.view(delivery.group, delivery.partition);
        for &(number, id) in &delivery.messages {
            let invented = match lookup.pushed.get(&number) {
                None => Some("was never pushed".to_owned()),
                Some(pushed) if pushed.partition != delivery.partition => {
                    let there = &history.partitions[pushed.partition];
                    Some(format!("was pushed to {there}"))
                }
                Some(pushed) if pushed.outcome == PushOutcome::Refused => {
                    Some("is of a push that was refused".to_owned())
                }
                Some(pushed) if delivery.end < pushed.begin => Some(format!(
                    "came at {} before its push at {}",
                    at(delivery.end),
                    at(pushed.begin)
                )),
                Some(_) => None,
            };
            if let Some(reason) = invented {
                found.add(
                    ViolationKind::Invented,
                    format!("{number} at {view} {reason}"),
                );
            }
            let first = *ids.entry(number).or_insert(id);
            if first != id {
                found.add(
                    ViolationKind::Twice,
                    format!("{number} at {view} is two messages, {first:x} and {id:x}"),
                );
            }
        }
    }
    for repeat in history.repeats.iter().filter(|one| !one.answered_duplicate) {
        let partition = &history.partitions[repeat.partition];
        found.add(
            ViolationKind::NotDuplicate,
            format!(
                "{} was pushed to {partition} again and stored",
                repeat.number
            ),
        );
    }
}
