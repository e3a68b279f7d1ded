//! A good history passes, and each way to break it is found.

use std::time::Duration;

use super::*;
use crate::verify::history::{Ack, AckOutcome, Effect, Group, Push, Repeat};

const SECOND: Time = 1_000_000;

/// Two groups with leases of two seconds and one without, on one partition, with another beside it.
struct HistoryBuilder(History);

impl HistoryBuilder {
    fn new() -> Self {
        let group = |name: &str, auto_ack| Group {
            name: name.to_owned(),
            auto_ack,
        };
        Self(History {
            partitions: vec!["q/p".to_owned(), "q/other".to_owned()],
            groups: vec![group("a", false), group("b", false), group("auto", true)],
            lease: Duration::from_secs(2),
            ..History::default()
        })
    }

    fn push(mut self, begin: Time, numbers: &[MessageNumber], outcome: PushOutcome) -> Self {
        self.0.pushes.push(Push {
            begin,
            end: begin + 10,
            items: numbers.iter().map(|&number| (0, number)).collect(),
            outcome,
        });
        self
    }

    fn stored(self, begin: Time, numbers: &[MessageNumber]) -> Self {
        self.push(begin, numbers, PushOutcome::Stored)
    }

    fn pop(mut self, group: usize, begin: Time, lease: u128, numbers: &[MessageNumber]) -> Self {
        self.0.deliveries.push(Delivery {
            group,
            partition: 0,
            begin,
            end: begin + 10,
            lease: (lease > 0).then_some(lease),
            messages: numbers
                .iter()
                .map(|&number| (number, u128::from(number)))
                .collect(),
        });
        self
    }

    fn ack(self, group: usize, begin: Time, lease: u128, number: MessageNumber) -> Self {
        self.acknowledge(group, begin, lease, number, Effect::Completes, done(true))
    }

    fn acknowledge(
        mut self,
        group: usize,
        begin: Time,
        lease: u128,
        number: MessageNumber,
        effect: Effect,
        outcome: AckOutcome,
    ) -> Self {
        self.0.acks.push(Ack {
            group,
            partition: 0,
            number,
            lease,
            begin,
            end: begin + 10,
            effect,
            outcome,
        });
        self
    }

    /// Both groups get `numbers` in one answer each and complete them, from `begin` on.
    fn consumed(self, begin: Time, numbers: &[MessageNumber]) -> Self {
        let last = *numbers.last().unwrap();
        let lease = u128::from(begin);
        self.pop(0, begin, lease, numbers)
            .ack(0, begin + 100, lease, last)
            .pop(1, begin, lease, numbers)
            .ack(1, begin + 100, lease, last)
    }

    #[track_caller]
    fn is(self, expected: &[ViolationKind]) {
        let found = check(&self.0);
        let kinds: Vec<ViolationKind> = found.iter().map(|violation| violation.kind).collect();
        let texts: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(kinds, expected, "{texts:#?}");
    }
}

fn done(released: bool) -> AckOutcome {
    AckOutcome::Done {
        released,
        dead: false,
        noop: false,
    }
}

#[test]
fn a_good_history_passes() {
    HistoryBuilder::new()
        .stored(0, &[1, 2, 3])
        .stored(100, &[4])
        .push(200, &[5], PushOutcome::Unknown)
        .push(300, &[6], PushOutcome::Refused)
        .consumed(1_000, &[1, 2, 3, 4])
        .consumed(2_000, &[5])
        .pop(2, 50, 0, &[1, 2])
        .pop(2, 150, 0, &[3, 4])
        .is(&[]);
}

#[test]
fn an_acknowledged_push_that_never_arrives_is_lost() {
    HistoryBuilder::new()
        .stored(0, &[1, 2])
        .push(20, &[3], PushOutcome::Unknown)
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .pop(1, 1_000, 8, &[1])
        .ack(1, 1_100, 8, 1)
        .is(&[ViolationKind::Lost]);
}

#[test]
fn a_group_without_deliveries_has_lost_all_messages() {
    HistoryBuilder::new()
        .stored(0, &[1, 2])
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .is(&[ViolationKind::Lost, ViolationKind::Lost]);
}

#[test]
fn a_message_whose_lease_was_lost_must_be_redelivered() {
    let history = || {
        HistoryBuilder::new()
            .stored(0, &[1])
            .consumed(1_000, &[1])
            .stored(2_000, &[2])
            .pop(1, 3_000, 9, &[2])
            .ack(1, 3_100, 9, 2)
            .pop(0, 3_000, 9, &[2])
    };
    history().is(&[ViolationKind::Forgotten]);
    let refused = |history: HistoryBuilder| {
        history.acknowledge(0, 3_100, 9, 2, Effect::Completes, AckOutcome::Refused)
    };
    refused(history()).is(&[ViolationKind::Forgotten]);
    // Perhaps it was completed.
    history()
        .acknowledge(0, 3_100, 9, 2, Effect::Completes, AckOutcome::Unknown)
        .is(&[]);
    // Or it went to the dead letters.
    let dead = AckOutcome::Done {
        released: true,
        dead: true,
        noop: false,
    };
    history()
        .acknowledge(0, 3_100, 9, 2, Effect::GivesBack, dead)
        .is(&[]);
    // Given back, it has to come again, and then it is well.
    let nacked = history().acknowledge(0, 3_100, 9, 2, Effect::GivesBack, done(true));
    nacked.is(&[ViolationKind::Forgotten]);
    history()
        .acknowledge(0, 3_100, 9, 2, Effect::GivesBack, done(true))
        .pop(0, 3_200, 10, &[2])
        .ack(0, 3_300, 10, 2)
        .is(&[]);
}

#[test]
fn a_later_push_may_not_be_delivered_first() {
    HistoryBuilder::new()
        .stored(0, &[1])
        .stored(100, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[ViolationKind::Reordered, ViolationKind::Reordered]);
    // Pushes under way at the same time, and those of unknown outcome, may come either way.
    HistoryBuilder::new()
        .stored(0, &[1])
        .stored(5, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[]);
    HistoryBuilder::new()
        .push(0, &[1], PushOutcome::Unknown)
        .stored(100, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[]);
}

#[test]
fn the_items_of_a_push_keep_their_order() {
    HistoryBuilder::new()
        .stored(0, &[1, 2, 3])
        .consumed(1_000, &[1, 3, 2])
        .is(&[ViolationKind::Reordered, ViolationKind::Reordered]);
}

#[test]
fn two_groups_see_one_order() {
    HistoryBuilder::new()
        .stored(0, &[1])
        .stored(5, &[2])
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .pop(1, 1_000, 8, &[2, 1])
        .ack(1, 1_100, 8, 2)
        .is(&[ViolationKind::Reordered]);
}

#[test]
fn without_leases_the_order_of_answers_is_checked_and_repeats_are_violations() {
    let history = || {
        HistoryBuilder::new()
            .stored(0, &[1, 2, 3])
            .consumed(1_000, &[1, 2, 3])
    };
    // Two answers under way at once.
    history().pop(2, 50, 0, &[2]).pop(2, 55, 0, &[1]).is(&[]);
    history()
        .pop(2, 50, 0, &[2])
        .pop(2, 100, 0, &[1])
        .is(&[ViolationKind::Reordered]);
    history()
        .pop(2, 50, 0, &[2, 1])
        .is(&[ViolationKind::Reordered]);
    history()
        .pop(2, 50, 0, &[1])
        .pop(2, 100, 0, &[1, 2])
        .is(&[ViolationKind::Twice]);
}

#[test]
fn a_second_delivery_within_a_live_lease_is_found() {
    let history = |again: Time| {
        HistoryBuilder::new()
            .stored(0, &[1])
            .consumed(100, &[1])
            .stored(500, &[2])
            .pop(1, 1_000, 8, &[2])
            .ack(1, 1_100, 8, 2)
            .pop(0, 1_000, 7, &[2])
            .pop(0, again, 9, &[2])
            .ack(0, again + 100, 9, 2)
    };
    history(SECOND).is(&[ViolationKind::Overlap]);
    // The lease was over by time.
    history(2 * SECOND + 2_000).is(&[]);
    // Released, refused, or of unknown outcome.
    history(SECOND)
        .acknowledge(0, 5_000, 7, 2, Effect::GivesBack, done(true))
        .is(&[]);
    history(SECOND)
        .acknowledge(0, 5_000, 7, 2, Effect::GivesBack, AckOutcome::Unknown)
        .is(&[]);
    history(SECOND)
        .acknowledge(0, 5_000, 7, 2, Effect::GivesBack, AckOutcome::Refused)
        .is(&[ViolationKind::Overlap]);
}

#[test]
fn another_message_of_a_leased_partition_may_not_be_delivered_either() {
    let history = |released| {
        HistoryBuilder::new()
            .stored(0, &[1, 2, 3])
            .pop(1, 1_000, 8, &[1, 2, 3])
            .ack(1, 1_100, 8, 3)
            .pop(0, 1_000, 7, &[1, 2])
            // One of two: the lease goes on.
            .acknowledge(0, 1_100, 7, 1, Effect::Completes, done(released))
            .pop(0, 2_000, 9, &[2, 3])
            .ack(0, 2_100, 9, 3)
    };
    history(false).is(&[ViolationKind::Overlap]);
    history(true).is(&[]);
}

#[test]
fn a_pop_that_was_held_from_before_is_no_second_delivery() {
    // Sent first, served after the other was acknowledged.
    let mut history = HistoryBuilder::new()
        .stored(0, &[1, 2])
        .pop(1, 1_000, 8, &[1, 2])
        .ack(1, 1_100, 8, 2)
        .pop(0, 1_000, 7, &[1])
        .ack(0, 1_100, 7, 1)
        .pop(0, 900, 9, &[2])
        .ack(0, 1_300, 9, 2);
    history.0.deliveries[2].end = 1_200;
    history.is(&[]);
}

#[test]
fn a_delivery_after_its_own_or_a_later_acknowledgement_is_a_violation() {
    for acknowledged in [1, 2] {
        HistoryBuilder::new()
            .stored(0, &[1, 2])
            .consumed(1_000, &[1, 2])
            .stored(2_000, &[3])
            .consumed(3_000, &[3])
            .acknowledge(0, 3_200, 3_000, acknowledged, Effect::Completes, done(true))
            .pop(0, 5_000, 9, &[1])
            .ack(0, 5_100, 9, 1)
            .is(&[ViolationKind::AfterAck]);
    }
}

#[test]
fn messages_completed_after_a_failed_one_may_be_redelivered() {
    HistoryBuilder::new()
        .stored(0, &[1, 2, 3])
        .pop(1, 1_000, 8, &[1, 2, 3])
        .ack(1, 1_100, 8, 3)
        .pop(0, 1_000, 7, &[1, 2, 3])
        .acknowledge(0, 1_100, 7, 1, Effect::Completes, done(true))
        .acknowledge(0, 1_100, 7, 2, Effect::GivesBack, done(true))
        .acknowledge(0, 1_100, 7, 3, Effect::Nothing, done(true))
        .pop(0, 1_200, 9, &[2, 3])
        .ack(0, 1_300, 9, 3)
        .is(&[]);
}

#[test]
fn an_acknowledgement_under_a_lost_lease_may_not_count() {
    let history = |outcome| {
        HistoryBuilder::new()
            .stored(0, &[1])
            .pop(1, 1_000, 8, &[1])
            .ack(1, 1_100, 8, 1)
            .pop(0, 1_000, 7, &[1])
            .pop(0, 3 * SECOND, 9, &[1])
            .acknowledge(0, 3 * SECOND + 100, 7, 1, Effect::Completes, outcome)
            .ack(0, 3 * SECOND + 200, 9, 1)
    };
    history(done(true)).is(&[ViolationKind::Unfenced]);
    history(AckOutcome::Refused).is(&[]);
    let noop = AckOutcome::Done {
        released: false,
        dead: false,
        noop: true,
    };
    history(noop).is(&[]);
}

#[test]
fn a_delivery_of_a_message_not_pushed_there_is_invented() {
    HistoryBuilder::new()
        .consumed(1_000, &[1])
        .is(&[ViolationKind::Invented, ViolationKind::Invented]);
    HistoryBuilder::new()
        .push(0, &[1], PushOutcome::Refused)
        .consumed(1_000, &[1])
        .is(&[ViolationKind::Invented, ViolationKind::Invented]);
    let mut elsewhere = HistoryBuilder::new().stored(0, &[1]).consumed(1_000, &[1]);
    elsewhere.0.pushes[0].items[0].0 = 1;
    let found = check(&elsewhere.0);
    assert!(found.iter().any(|one| one.kind == ViolationKind::Invented));
    assert!(found.iter().any(|one| one.kind == ViolationKind::Lost));
    // Delivered before it was sent.
    HistoryBuilder::new()
        .stored(5_000, &[1])
        .consumed(1_000, &[1])
        .is(&[ViolationKind::Invented, ViolationKind::Invented]);
}

#[test]
fn a_repeated_push_is_answered_as_a_duplicate_and_is_one_message() {
    let repeat = |answered_duplicate| {
        let mut history = HistoryBuilder::new().stored(0, &[1]).consumed(1_000, &[1]);
        history.0.repeats.push(Repeat {
            partition: 0,
            number: 1,
            answered_duplicate,
        });
        history
    };
    repeat(true).is(&[]);
    repeat(false).is(&[ViolationKind::NotDuplicate]);
    let mut two = HistoryBuilder::new().stored(0, &[1]).consumed(1_000, &[1]);
    two.0.deliveries[1].messages[0].1 = 99;
    two.is(&[ViolationKind::Twice]);
}
