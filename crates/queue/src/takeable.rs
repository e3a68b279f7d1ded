//! What a claim may take of a partition: delays, windows, ages and skipped messages.

use std::collections::HashSet;

use crate::{deliveries::Deliveries, message::Message, segment::Segment};

/// A cursor that can be claimed from, with the segments that were read from it on.
#[derive(Debug)]
pub struct Candidate {
    pub partition: i64,
    pub group: i64,
    pub name: String,
    pub position: i64,
    pub flags_end: i64,
    /// Where the last lease ended, if that was not acknowledged to its end.
    pub leased_to: Option<i64>,
    pub deliveries: Deliveries,
    /// The positions of the partition's oldest message and of its end, as far as this transaction sees
    /// them.
    pub first: i64,
    pub next: i64,
    /// When the partition's newest message came.
    pub last_us: i64,
    pub lease_us: Option<i64>,
    pub delay_us: i64,
    pub window_us: i64,
    pub max_age_us: Option<i64>,
    /// Positions of messages that are dead for the group or deleted.
    pub skipped: HashSet<i64>,
    /// For how many messages segments were read.
    pub read_limit: i64,
    /// In order, without a gap, as far as `read_limit` reaches.
    pub segments: Vec<Segment>,
}

/// What a claim may take.
#[derive(Debug, PartialEq, Eq)]
pub enum Takeable {
    /// These messages; the cursor moves to `end`.
    Messages { messages: Vec<Message>, end: i64 },
    /// Nothing before this time.
    NotBefore(i64),
    /// All messages that were read are skipped: the next claim reads from here on.
    AllSkipped(i64),
    /// There is no message from the cursor on; it may move here.
    End(i64),
}

impl Candidate {
    /// At most `count` messages, at `now`.
    pub fn takeable(&self, count: usize, now: i64) -> Result<Takeable, serde_json::Error> {
        let from = self.position.max(self.first);
        if self.segments.is_empty() {
            return Ok(Takeable::End(from));
        }
        // A window is a pause between pushes: as long as messages come, none is handed out.
        let calm = self.last_us.saturating_add(self.window_us);
        if self.window_us > 0 && calm > now {
            return Ok(Takeable::NotBefore(calm));
        }
        let oldest = self.max_age_us.map(|age| now.saturating_sub(age));
        let mut messages = Vec::new();
        let mut end = from;
        let limit = from.saturating_add(self.read_limit);
        for segment in &self.segments {
            let due = segment.created_us.saturating_add(self.delay_us);
            if due > now {
                if messages.is_empty() && end == from {
                    return Ok(Takeable::NotBefore(due));
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
                segment.messages(from, room, |at| at >= limit || self.skipped.contains(&at))?;
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
            Takeable::AllSkipped(end)
        } else {
            Takeable::Messages { messages, end }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::NewMessage, segment::SegmentBody};

    fn segment(first: i64, count: i64, created_us: i64) -> Segment {
        let mut body = SegmentBody::default();
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
            flags_end: 0,
            leased_to: None,
            deliveries: Deliveries::default(),
            first: 0,
            next: 100,
            last_us: 50,
            lease_us: None,
            delay_us: 0,
            window_us: 0,
            max_age_us: None,
            skipped: HashSet::new(),
            read_limit: 100,
            segments,
        }
    }

    fn taken(candidate: &Candidate, count: usize) -> (Vec<i64>, i64) {
        match candidate.takeable(count, 1_000).unwrap() {
            Takeable::Messages { messages, end } => {
                (messages.iter().map(|m| m.position).collect(), end)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_goes_across_segments_and_stops_at_the_count() {
        let mut from = candidate(vec![segment(0, 3, 10), segment(3, 3, 20)]);
        assert_eq!(taken(&from, 2), (vec![0, 1], 2));
        assert_eq!(taken(&from, 4), (vec![0, 1, 2, 3], 4));
        assert_eq!(taken(&from, 9), (vec![0, 1, 2, 3, 4, 5], 6));
        from.position = 2;
        assert_eq!(taken(&from, 2), (vec![2, 3], 4));
    }

    #[test]
    fn dead_messages_are_skipped() {
        let mut from = candidate(vec![segment(0, 3, 10)]);
        from.skipped = HashSet::from([0, 2]);
        assert_eq!(taken(&from, 5), (vec![1], 3));
        from.skipped.insert(1);
        assert_eq!(from.takeable(5, 1_000).unwrap(), Takeable::AllSkipped(3));
    }

    #[test]
    fn messages_for_another_group_and_old_ones_are_skipped() {
        let mut from = candidate(vec![segment(0, 2, 10), segment(2, 2, 20)]);
        from.segments[0].only_group = Some(9);
        assert_eq!(taken(&from, 5), (vec![2, 3], 4));
        from.segments[0].only_group = Some(2);
        assert_eq!(taken(&from, 5), (vec![0, 1, 2, 3], 4));
        from.max_age_us = Some(985);
        assert_eq!(taken(&from, 5), (vec![2, 3], 4));
        from.max_age_us = Some(1);
        assert_eq!(from.takeable(5, 1_000).unwrap(), Takeable::AllSkipped(4));
    }

    #[test]
    fn messages_within_a_delay_or_window_are_not_taken() {
        let mut from = candidate(vec![segment(0, 2, 10), segment(2, 2, 600)]);
        from.delay_us = 500;
        assert_eq!(taken(&from, 5), (vec![0, 1], 2));
        from.delay_us = 2_000;
        assert_eq!(from.takeable(5, 1_000).unwrap(), Takeable::NotBefore(2_010));
        from.delay_us = 0;
        from.window_us = 2_000;
        assert_eq!(from.takeable(5, 1_000).unwrap(), Takeable::NotBefore(2_050));
    }

    #[test]
    fn swept_messages_are_skipped() {
        let mut from = candidate(Vec::new());
        from.first = 7;
        assert_eq!(from.takeable(5, 1_000).unwrap(), Takeable::End(7));
    }

    #[test]
    fn only_messages_within_the_read_limit_are_taken() {
        let mut from = candidate(vec![segment(0, 10, 10)]);
        from.read_limit = 4;
        assert_eq!(taken(&from, 9), (vec![0, 1, 2, 3], 4));
    }
}
