//! How often messages were delivered to a group: what `deliveryAttempt` counts.

/// Earlier deliveries of a cursor's group that reached beyond the cursor: where each ended.
///
/// Claims begin at the cursor, so a message was delivered as often as there are ends behind it: no
/// message needs a count of its own. The end of a lease that lasts is not among them; it is added when
/// the lease ends and messages are left (a nack, or its time is over). A claim that is released, because
/// it did not reach its client, was no delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries(Vec<i64>);

impl Deliveries {
    /// Deliveries that are counted. The count of a message that is redelivered more often stays there.
    const MAX: usize = 100;

    /// Which delivery of the message the next one is: 1 is the first.
    #[must_use]
    pub fn attempt(&self, position: i64) -> usize {
        1 + self.0.iter().filter(|end| **end > position).count()
    }

    /// A delivery that ended here. The group has consumed the messages before `position`.
    pub fn add(&mut self, end: i64, position: i64) {
        self.0.retain(|end| *end > position);
        if end > position && self.0.len() < Self::MAX {
            self.0.push(end);
        }
    }

    /// As it is stored: nothing, or the ends that are still ahead of the cursor.
    #[must_use]
    pub fn text(&self, position: i64) -> Option<String> {
        let ahead = self.0.iter().filter(|end| **end > position);
        let ends: Vec<String> = ahead.map(ToString::to_string).collect();
        (!ends.is_empty()).then(|| ends.join(","))
    }

    /// What [`Self::text`] has written.
    #[must_use]
    pub fn of_text(text: Option<&str>) -> Self {
        let ends = text.into_iter().flat_map(|text| text.split(','));
        Self(ends.filter_map(|end| end.parse().ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Deliveries {
        Deliveries::of_text(Some(text))
    }

    #[test]
    fn a_message_was_delivered_as_often_as_deliveries_ended_after_it() {
        let mut deliveries = Deliveries::default();
        assert_eq!(deliveries.attempt(0), 1);
        deliveries.add(10, 0);
        deliveries.add(5, 0);
        let attempts = [0, 4, 5, 9, 10].map(|position| deliveries.attempt(position));
        assert_eq!(attempts, [3, 3, 2, 2, 1]);
        assert_eq!(of(&deliveries.text(0).unwrap()), deliveries);
    }

    #[test]
    fn consumed_messages_leave_nothing_behind() {
        let mut deliveries = of("10,5");
        assert_eq!(deliveries.text(5).as_deref(), Some("10"));
        assert_eq!(deliveries.text(10), None);
        deliveries.add(7, 8);
        assert_eq!(deliveries, of("10"));
        assert_eq!(Deliveries::of_text(None), Deliveries::default());
    }

    #[test]
    fn the_count_has_a_limit() {
        let mut deliveries = Deliveries::default();
        for _ in 0..1_000 {
            deliveries.add(1, 0);
        }
        assert_eq!(deliveries.attempt(0), Deliveries::MAX + 1);
    }
}
