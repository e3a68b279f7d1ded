//! How many pops are held, sampled now and then and written per minute.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::{MAX_COUNTS, row::MINUTE_US};

/// The pops of a queue that one node held in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPops {
    pub minute_us: i64,
    pub queue: String,
    /// Added up over the samples.
    pub held: i64,
    /// How often the node sampled in that minute, also when no pop was held.
    pub samples: i64,
}

#[derive(Debug, Default)]
pub struct HeldPopSamples(Mutex<SampledMinutes>);

#[derive(Debug, Default)]
struct SampledMinutes {
    minute_us: i64,
    samples: i64,
    held: HashMap<String, i64>,
    /// Of finished minutes, to be written.
    over: Vec<HeldPops>,
}

impl SampledMinutes {
    fn current(&self) -> impl Iterator<Item = HeldPops> {
        self.held.iter().map(|(queue, held)| HeldPops {
            minute_us: self.minute_us,
            queue: queue.clone(),
            held: *held,
            samples: self.samples,
        })
    }

    fn keep(&mut self, held_pops: Vec<HeldPops>) {
        let room = MAX_COUNTS.saturating_sub(self.over.len());
        self.over.extend(held_pops.into_iter().take(room));
    }
}

impl HeldPopSamples {
    fn with<T>(&self, change: impl FnOnce(&mut SampledMinutes) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the pops that are held at this moment, by queue.
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

    /// The finished minutes and, if `so_far`, the current one.
    #[must_use]
    pub fn take(&self, so_far: bool) -> Vec<HeldPops> {
        self.with(|minutes| {
            let mut held_pops = std::mem::take(&mut minutes.over);
            if so_far {
                held_pops.extend(minutes.current());
            }
            held_pops
        })
    }

    /// Takes back what could not be written.
    pub fn put_back(&self, held_pops: Vec<HeldPops>) {
        self.with(|minutes| {
            let over = held_pops
                .into_iter()
                .filter(|held_pops| held_pops.minute_us != minutes.minute_us)
                .collect();
            minutes.keep(over);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_pops(minute_us: i64, queue: &str, held: i64, samples: i64) -> HeldPops {
        HeldPops {
            minute_us,
            queue: queue.into(),
            held,
            samples,
        }
    }

    #[test]
    fn the_average_of_a_minute_is_written_after_the_minute() {
        let samples = HeldPopSamples::default();
        samples.add(1, []);
        assert_eq!(samples.take(true), [], "no pop was held");
        samples.add(2, [("q".to_owned(), 3)]);
        samples.add(3, []);
        assert_eq!(samples.take(false), []);
        assert_eq!(samples.take(true), [held_pops(0, "q", 3, 3)]);
        samples.add(MINUTE_US + 1, [("r".to_owned(), 1)]);
        let over = samples.take(false);
        assert_eq!(over, [held_pops(0, "q", 3, 3)]);
        assert_eq!(samples.take(false), []);
        samples.put_back(vec![over[0].clone(), held_pops(MINUTE_US, "r", 1, 1)]);
        assert_eq!(samples.take(false), over, "this minute is written later");
    }
}
