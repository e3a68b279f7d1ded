//! A good history passes, and each way to break it is found.

use std::time::Duration;

use super::*;
use crate::verify::history::{Ack, AckOutcome, Effect, Group, Push, Repeat};

const SECOND: Time = 1_000_000;

/// Two groups with leases of two seconds and one without, on one place, with another beside it.
struct Story(History);

impl Story {
    fn new() -> Self {
        let group = |name: &str, auto_ack| Group {
            name: name.to_owned(),
            auto_ack,
        };
        Self(History {
            places: vec!["q/p".to_owned(), "q/other".to_owned()],
            groups: vec![group("a", false), group("b", false), group("auto", true)],
            lease: Duration::from_secs(2),
            ..History::default()
        })
    }

    fn push(mut self, begin: Time, numbers: &[Number], outcome: PushOutcome) -> Self {
        self.0.pushes.push(Push {
            begin,
            end: begin + 10,
            items: numbers.iter().map(|&number| (0, number)).collect(),
            outcome,
        });
        self
    }

    fn stored(self, begin: Time, numbers: &[Number]) -> Self {
        self.push(begin, numbers, PushOutcome::Stored)
    }

    fn pop(mut self, group: usize, begin: Time, lease: u128, numbers: &[Number]) -> Self {
        self.0.deliveries.push(Delivery {
            group,
            place: 0,
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

    fn ack(self, group: usize, begin: Time, lease: u128, number: Number) -> Self {
        self.settle(group, begin, lease, number, Effect::Completes, done(true))
    }

    fn settle(
        mut self,
        group: usize,
        begin: Time,
        lease: u128,
        number: Number,
        effect: Effect,
        outcome: AckOutcome,
    ) -> Self {
        self.0.acks.push(Ack {
            group,
            place: 0,
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
    fn consumed(self, begin: Time, numbers: &[Number]) -> Self {
        let last = *numbers.last().unwrap();
        let lease = u128::from(begin);
        self.pop(0, begin, lease, numbers)
            .ack(0, begin + 100, lease, last)
            .pop(1, begin, lease, numbers)
            .ack(1, begin + 100, lease, last)
    }

    #[track_caller]
    fn is(self, expected: &[Kind]) {
        let found = check(&self.0);
        let kinds: Vec<Kind> = found.iter().map(|violation| violation.kind).collect();
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
    Story::new()
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
    Story::new()
        .stored(0, &[1, 2])
        .push(20, &[3], PushOutcome::Unknown)
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .pop(1, 1_000, 8, &[1])
        .ack(1, 1_100, 8, 1)
        .is(&[Kind::Lost]);
}

#[test]
fn a_group_that_saw_nothing_has_lost_everything() {
    Story::new()
        .stored(0, &[1, 2])
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .is(&[Kind::Lost, Kind::Lost]);
}

#[test]
fn a_message_whose_lease_was_lost_must_come_again() {
    let story = || {
        Story::new()
            .stored(0, &[1])
            .consumed(1_000, &[1])
            .stored(2_000, &[2])
            .pop(1, 3_000, 9, &[2])
            .ack(1, 3_100, 9, 2)
            .pop(0, 3_000, 9, &[2])
    };
    story().is(&[Kind::Forgotten]);
    let refused =
        |story: Story| story.settle(0, 3_100, 9, 2, Effect::Completes, AckOutcome::Refused);
    refused(story()).is(&[Kind::Forgotten]);
    // Perhaps it was completed.
    story()
        .settle(0, 3_100, 9, 2, Effect::Completes, AckOutcome::Unknown)
        .is(&[]);
    // Or it went to the dead letters.
    let dead = AckOutcome::Done {
        released: true,
        dead: true,
        noop: false,
    };
    story()
        .settle(0, 3_100, 9, 2, Effect::GivesBack, dead)
        .is(&[]);
    // Given back, it has to come again, and then it is well.
    let nacked = story().settle(0, 3_100, 9, 2, Effect::GivesBack, done(true));
    nacked.is(&[Kind::Forgotten]);
    story()
        .settle(0, 3_100, 9, 2, Effect::GivesBack, done(true))
        .pop(0, 3_200, 10, &[2])
        .ack(0, 3_300, 10, 2)
        .is(&[]);
}

#[test]
fn a_later_push_may_not_come_first() {
    Story::new()
        .stored(0, &[1])
        .stored(100, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[Kind::Reordered, Kind::Reordered]);
    // Pushes under way at the same time, and those of unknown outcome, may come either way.
    Story::new()
        .stored(0, &[1])
        .stored(5, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[]);
    Story::new()
        .push(0, &[1], PushOutcome::Unknown)
        .stored(100, &[2])
        .consumed(1_000, &[2, 1])
        .is(&[]);
}

#[test]
fn the_items_of_a_push_keep_their_order() {
    Story::new()
        .stored(0, &[1, 2, 3])
        .consumed(1_000, &[1, 3, 2])
        .is(&[Kind::Reordered, Kind::Reordered]);
}

#[test]
fn two_groups_see_one_order() {
    Story::new()
        .stored(0, &[1])
        .stored(5, &[2])
        .pop(0, 1_000, 7, &[1, 2])
        .ack(0, 1_100, 7, 2)
        .pop(1, 1_000, 8, &[2, 1])
        .ack(1, 1_100, 8, 2)
        .is(&[Kind::Reordered]);
}

#[test]
fn without_leases_order_is_what_answers_show_and_nothing_comes_twice() {
    let story = || {
        Story::new()
            .stored(0, &[1, 2, 3])
            .consumed(1_000, &[1, 2, 3])
    };
    // Two answers under way at once.
    story().pop(2, 50, 0, &[2]).pop(2, 55, 0, &[1]).is(&[]);
    story()
        .pop(2, 50, 0, &[2])
        .pop(2, 100, 0, &[1])
        .is(&[Kind::Reordered]);
    story().pop(2, 50, 0, &[2, 1]).is(&[Kind::Reordered]);
    story()
        .pop(2, 50, 0, &[1])
        .pop(2, 100, 0, &[1, 2])
        .is(&[Kind::Twice]);
}

#[test]
fn a_second_delivery_within_a_live_lease_is_found() {
    let story = |again: Time| {
        Story::new()
            .stored(0, &[1])
            .consumed(100, &[1])
            .stored(500, &[2])
            .pop(1, 1_000, 8, &[2])
            .ack(1, 1_100, 8, 2)
            .pop(0, 1_000, 7, &[2])
            .pop(0, again, 9, &[2])
            .ack(0, again + 100, 9, 2)
    };
    story(SECOND).is(&[Kind::Overlap]);
    // The lease was over by time.
    story(2 * SECOND + 2_000).is(&[]);
    // Given back, refused, or nobody knows.
    story(SECOND)
        .settle(0, 5_000, 7, 2, Effect::GivesBack, done(true))
        .is(&[]);
    story(SECOND)
        .settle(0, 5_000, 7, 2, Effect::GivesBack, AckOutcome::Unknown)
        .is(&[]);
    story(SECOND)
        .settle(0, 5_000, 7, 2, Effect::GivesBack, AckOutcome::Refused)
        .is(&[Kind::Overlap]);
}

#[test]
fn another_message_of_a_leased_partition_may_not_be_delivered_either() {
    let story = |released| {
        Story::new()
            .stored(0, &[1, 2, 3])
            .pop(1, 1_000, 8, &[1, 2, 3])
            .ack(1, 1_100, 8, 3)
            .pop(0, 1_000, 7, &[1, 2])
            // One of two: the lease goes on.
            .settle(0, 1_100, 7, 1, Effect::Completes, done(released))
            .pop(0, 2_000, 9, &[2, 3])
            .ack(0, 2_100, 9, 3)
    };
    story(false).is(&[Kind::Overlap]);
    story(true).is(&[]);
}

#[test]
fn a_pop_that_was_held_from_before_is_no_second_delivery() {
    // Sent first, served after the other was acknowledged.
    let mut story = Story::new()
        .stored(0, &[1, 2])
        .pop(1, 1_000, 8, &[1, 2])
        .ack(1, 1_100, 8, 2)
        .pop(0, 1_000, 7, &[1])
        .ack(0, 1_100, 7, 1)
        .pop(0, 900, 9, &[2])
        .ack(0, 1_300, 9, 2);
    story.0.deliveries[2].end = 1_200;
    story.is(&[]);
}

#[test]
fn nothing_comes_after_its_own_or_a_later_acknowledgement() {
    for acknowledged in [1, 2] {
        Story::new()
            .stored(0, &[1, 2])
            .consumed(1_000, &[1, 2])
            .stored(2_000, &[3])
            .consumed(3_000, &[3])
            .settle(0, 3_200, 3_000, acknowledged, Effect::Completes, done(true))
            .pop(0, 5_000, 9, &[1])
            .ack(0, 5_100, 9, 1)
            .is(&[Kind::AfterAck]);
    }
}

#[test]
fn what_was_completed_behind_a_failure_comes_again() {
    Story::new()
        .stored(0, &[1, 2, 3])
        .pop(1, 1_000, 8, &[1, 2, 3])
        .ack(1, 1_100, 8, 3)
        .pop(0, 1_000, 7, &[1, 2, 3])
        .settle(0, 1_100, 7, 1, Effect::Completes, done(true))
        .settle(0, 1_100, 7, 2, Effect::GivesBack, done(true))
        .settle(0, 1_100, 7, 3, Effect::Nothing, done(true))
        .pop(0, 1_200, 9, &[2, 3])
        .ack(0, 1_300, 9, 3)
        .is(&[]);
}

#[test]
fn an_acknowledgement_under_a_lost_lease_may_not_count() {
    let story = |outcome| {
        Story::new()
            .stored(0, &[1])
            .pop(1, 1_000, 8, &[1])
            .ack(1, 1_100, 8, 1)
            .pop(0, 1_000, 7, &[1])
            .pop(0, 3 * SECOND, 9, &[1])
            .settle(0, 3 * SECOND + 100, 7, 1, Effect::Completes, outcome)
            .ack(0, 3 * SECOND + 200, 9, 1)
    };
    story(done(true)).is(&[Kind::Unfenced]);
    story(AckOutcome::Refused).is(&[]);
    let noop = AckOutcome::Done {
        released: false,
        dead: false,
        noop: true,
    };
    story(noop).is(&[]);
}

#[test]
fn what_was_not_pushed_there_is_invented() {
    Story::new()
        .consumed(1_000, &[1])
        .is(&[Kind::Invented, Kind::Invented]);
    Story::new()
        .push(0, &[1], PushOutcome::Refused)
        .consumed(1_000, &[1])
        .is(&[Kind::Invented, Kind::Invented]);
    let mut elsewhere = Story::new().stored(0, &[1]).consumed(1_000, &[1]);
    elsewhere.0.pushes[0].items[0].0 = 1;
    let found = check(&elsewhere.0);
    assert!(found.iter().any(|one| one.kind == Kind::Invented));
    assert!(found.iter().any(|one| one.kind == Kind::Lost));
    // Delivered before it was sent.
    Story::new()
        .stored(5_000, &[1])
        .consumed(1_000, &[1])
        .is(&[Kind::Invented, Kind::Invented]);
}

#[test]
fn a_repeated_push_is_called_a_duplicate_and_stays_one_message() {
    let repeat = |said_duplicate| {
        let mut story = Story::new().stored(0, &[1]).consumed(1_000, &[1]);
        story.0.repeats.push(Repeat {
            place: 0,
            number: 1,
            said_duplicate,
        });
        story
    };
    repeat(true).is(&[]);
    repeat(false).is(&[Kind::NotDuplicate]);
    let mut two = Story::new().stored(0, &[1]).consumed(1_000, &[1]);
    two.0.deliveries[1].messages[0].1 = 99;
    two.is(&[Kind::Twice]);
}
