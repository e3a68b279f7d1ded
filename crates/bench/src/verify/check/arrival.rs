//! What arrives was pushed there, and is one message.

use std::collections::HashMap;

use super::{Kind, Known, Violation, at};
use crate::verify::history::PushOutcome;

pub(super) fn check(known: &Known<'_>, found: &mut Vec<Violation>) {
    let mut ids = HashMap::new();
    for delivery in &known.history.deliveries {
        let name = known.name(delivery.group, delivery.place);
        for &(number, id) in &delivery.messages {
            let mut wrong = |kind, text: String| found.push(Violation { kind, text });
            match known.pushed.get(&number) {
                None => wrong(
                    Kind::Invented,
                    format!("{number} at {name} was never pushed"),
                ),
                Some(pushed) if pushed.place != delivery.place => {
                    let there = &known.history.places[pushed.place];
                    wrong(
                        Kind::Invented,
                        format!("{number} at {name} was pushed to {there}"),
                    );
                }
                Some(pushed) if pushed.outcome == PushOutcome::Refused => wrong(
                    Kind::Invented,
                    format!("{number} at {name}, whose push was refused"),
                ),
                Some(pushed) if delivery.end < pushed.begin => wrong(
                    Kind::Invented,
                    format!(
                        "{number} at {name} at {} before its push at {}",
                        at(delivery.end),
                        at(pushed.begin)
                    ),
                ),
                Some(_) => {}
            }
            let first = *ids.entry(number).or_insert(id);
            if first != id {
                wrong(
                    Kind::Twice,
                    format!("{number} at {name} is two messages, {first:x} and {id:x}"),
                );
            }
        }
    }
    for repeat in known
        .history
        .repeats
        .iter()
        .filter(|one| !one.said_duplicate)
    {
        let place = &known.history.places[repeat.place];
        found.push(Violation {
            kind: Kind::NotDuplicate,
            text: format!("{} was pushed to {place} again and taken", repeat.number),
        });
    }
}
