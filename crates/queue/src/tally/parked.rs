//! How many pops are held, sampled now and then and written per minute.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::{MAX_COUNTS, count::MINUTE_US};

/// The pops of a queue that one node held in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub minute_us: i64,
    pub queue: String,
    /// Added up over the samples.
    pub held: i64,
    /// How often the node looked in that minute, also when nobody was held.
    pub samples: i64,
}

#[derive(Debug, Default)]
pub struct Samples(Mutex<Minutes>);

#[derive(Debug, Default)]
struct Minutes {
    minute_us: i64,
    samples: i64,
    held: HashMap<String, i64>,
    /// Of minutes that are over, to be written.
    over: Vec<Parked>,
}

impl Minutes {
    fn current(&self) -> impl Iterator<Item = Parked> {
        self.held.iter().map(|(queue, held)| Parked {
            minute_us: self.minute_us,
            queue: queue.clone(),
            held: *held,
            samples: self.samples,
        })
    }

    fn keep(&mut self, parked: Vec<Parked>) {
        let room = MAX_COUNTS.saturating_sub(self.over.len());
        self.over.extend(parked.into_iter().take(room));
    }
}

impl Samples {
    fn with<T>(&self, change: impl FnOnce(&mut Minutes) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds what is held at this moment, by queue.
    pub fn add(&self, now_us: i64, held: impl IntoIterator<Item = (String, i64)>) {
        let minute_us = now_us / MINUTE_US * MINUTE_US;
        self.with(|minutes| {
            if minutes.minute_us != minute_us {
                let over = minutes.current().collect();
                minutes.keep(over);
                minutes.held.clear();
                minutes.samples = 0;
                minutes.minute_us = minute_us;
            }
            minutes.samples += 1;
            for (queue, held) in held {
                *minutes.held.entry(queue).or_default() += held;
            }
        });
    }

    /// What is to be written of the minutes that are over and, if wanted, of this one so far.
    #[must_use]
    pub fn take(&self, so_far: bool) -> Vec<Parked> {
        self.with(|minutes| {
            let mut parked = std::mem::take(&mut minutes.over);
            if so_far {
                parked.extend(minutes.current());
            }
            parked
        })
    }

    /// What could not be written is written the next time.
    pub fn give_back(&self, parked: Vec<Parked>) {
        self.with(|minutes| {
            let over = parked
                .into_iter()
                .filter(|parked| parked.minute_us != minutes.minute_us)
                .collect();
            minutes.keep(over);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(minute_us: i64, queue: &str, held: i64, samples: i64) -> Parked {
        Parked {
            minute_us,
            queue: queue.into(),
            held,
            samples,
        }
    }

    #[test]
    fn a_minute_is_written_when_it_is_over() {
        let samples = Samples::default();
        samples.add(1, []);
        assert_eq!(samples.take(true), [], "nobody was held");
        samples.add(2, [("q".to_owned(), 3)]);
        samples.add(3, []);
        assert_eq!(samples.take(false), []);
        assert_eq!(samples.take(true), [parked(0, "q", 3, 3)]);
        samples.add(MINUTE_US + 1, [("r".to_owned(), 1)]);
        let over = samples.take(false);
        assert_eq!(over, [parked(0, "q", 3, 3)]);
        assert_eq!(samples.take(false), []);
        samples.give_back(vec![over[0].clone(), parked(MINUTE_US, "r", 1, 1)]);
        assert_eq!(samples.take(false), over, "this minute is written later");
    }
}
