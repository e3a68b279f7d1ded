//! What a claim may take of a partition: delays, windows, ages and what has been passed over.

use std::collections::HashSet;

use crate::{message::Message, segment::Segment};

/// A cursor that can be claimed from, with what was read behind it.
#[derive(Debug)]
pub struct Candidate {
    pub partition: i64,
    pub group: i64,
    pub name: String,
    pub position: i64,
    pub marked_to: i64,
    /// The partition's oldest message and its end, as far as they were seen.
    pub first: i64,
    pub next: i64,
    /// When its newest message came.
    pub last_us: i64,
    pub lease_us: Option<i64>,
    pub delay_us: i64,
    pub window_us: i64,
    pub age_us: Option<i64>,
    /// Messages that the group is not given.
    pub dead: HashSet<i64>,
    /// How many messages were asked for when the segments were read.
    pub window: i64,
    /// In order, without a gap, as far as `window` reaches.
    pub segments: Vec<Segment>,
}

/// What is cut.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// These messages; the cursor passes everything before `end`.
    Taken { messages: Vec<Message>, end: i64 },
    /// Nothing before this time.
    Later(i64),
    /// All that was read is passed over: look again from here.
    Passed(i64),
    /// There is nothing behind the cursor, which may stand here.
    End(i64),
}

impl Candidate {
    /// At most `count` messages, at `now`.
    pub fn cut(&self, count: usize, now: i64) -> Result<Cut, serde_json::Error> {
        let from = self.position.max(self.first);
        if self.segments.is_empty() {
            return Ok(Cut::End(from));
        }
        // A window is a pause in the stream: as long as messages come, nothing is handed out.
        let calm = self.last_us.saturating_add(self.window_us);
        if self.window_us > 0 && calm > now {
            return Ok(Cut::Later(calm));
        }
        let oldest = self.age_us.map(|age| now.saturating_sub(age));
        let mut messages = Vec::new();
        let mut end = from;
        let limit = from.saturating_add(self.window);
        for segment in &self.segments {
            let due = segment.created_us.saturating_add(self.delay_us);
            if due > now {
                if messages.is_empty() && end == from {
                    return Ok(Cut::Later(due));
                }
                break;
            }
            let is_for_others = segment.only_group.is_some_and(|only| only != self.group);
            let is_too_old = oldest.is_some_and(|oldest| segment.created_us < oldest);
            if is_for_others || is_too_old {
                end = segment.last + 1;
                continue;
            }
            let room = count - messages.len();
            let taken =
                segment.messages(from, room, |at| at >= limit || self.dead.contains(&at))?;
            let is_full = taken.len() == room;
            end = match taken.last() {
                Some(last) if is_full => last.position + 1,
                _ => (segment.last + 1).min(limit),
            };
            messages.extend(taken);
            if is_full {
                break;
            }
        }
        Ok(if messages.is_empty() {
            Cut::Passed(end)
        } else {
            Cut::Taken { messages, end }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::NewMessage, segment::Body};

    fn segment(first: i64, count: i64, created_us: i64) -> Segment {
        let mut body = Body::default();
        for at in first..first + count {
            body.add(&NewMessage {
                queue: "q".into(),
                partition: "p".into(),
                transaction_id: Some(at.to_string()),
                trace_id: None,
                payload: "1".into(),
                producer_sub: None,
                is_sealed: false,
            });
        }
        Segment {
            partition: 1,
            first,
            last: first + count - 1,
            created_us,
            only_group: None,
            body: body.text(),
        }
    }

    fn candidate(segments: Vec<Segment>) -> Candidate {
        Candidate {
            partition: 1,
            group: 2,
            name: "p".into(),
            position: 0,
            marked_to: 0,
            first: 0,
            next: 100,
            last_us: 50,
            lease_us: None,
            delay_us: 0,
            window_us: 0,
            age_us: None,
            dead: HashSet::new(),
            window: 100,
            segments,
        }
    }

    fn cut(candidate: &Candidate, count: usize) -> (Vec<i64>, i64) {
        match candidate.cut(count, 1_000).unwrap() {
            Cut::Taken { messages, end } => (messages.iter().map(|m| m.position).collect(), end),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_goes_across_segments_and_stops_at_the_count() {
        let mut from = candidate(vec![segment(0, 3, 10), segment(3, 3, 20)]);
        assert_eq!(cut(&from, 2), (vec![0, 1], 2));
        assert_eq!(cut(&from, 4), (vec![0, 1, 2, 3], 4));
        assert_eq!(cut(&from, 9), (vec![0, 1, 2, 3, 4, 5], 6));
        from.position = 2;
        assert_eq!(cut(&from, 2), (vec![2, 3], 4));
    }

    #[test]
    fn the_dead_are_passed_over() {
        let mut from = candidate(vec![segment(0, 3, 10)]);
        from.dead = HashSet::from([0, 2]);
        assert_eq!(cut(&from, 5), (vec![1], 3));
        from.dead.insert(1);
        assert_eq!(from.cut(5, 1_000).unwrap(), Cut::Passed(3));
    }

    #[test]
    fn what_is_for_another_group_or_too_old_is_passed_over() {
        let mut from = candidate(vec![segment(0, 2, 10), segment(2, 2, 20)]);
        from.segments[0].only_group = Some(9);
        assert_eq!(cut(&from, 5), (vec![2, 3], 4));
        from.segments[0].only_group = Some(2);
        assert_eq!(cut(&from, 5), (vec![0, 1, 2, 3], 4));
        from.age_us = Some(985);
        assert_eq!(cut(&from, 5), (vec![2, 3], 4));
        from.age_us = Some(1);
        assert_eq!(from.cut(5, 1_000).unwrap(), Cut::Passed(4));
    }

    #[test]
    fn a_delay_and_a_window_hold_back() {
        let mut from = candidate(vec![segment(0, 2, 10), segment(2, 2, 600)]);
        from.delay_us = 500;
        assert_eq!(cut(&from, 5), (vec![0, 1], 2));
        from.delay_us = 2_000;
        assert_eq!(from.cut(5, 1_000).unwrap(), Cut::Later(2_010));
        from.delay_us = 0;
        from.window_us = 2_000;
        assert_eq!(from.cut(5, 1_000).unwrap(), Cut::Later(2_050));
    }

    #[test]
    fn what_was_swept_is_passed() {
        let mut from = candidate(Vec::new());
        from.first = 7;
        assert_eq!(from.cut(5, 1_000).unwrap(), Cut::End(7));
    }

    #[test]
    fn only_what_was_asked_for_is_taken() {
        let mut from = candidate(vec![segment(0, 10, 10)]);
        from.window = 4;
        assert_eq!(cut(&from, 9), (vec![0, 1, 2, 3], 4));
    }
}
