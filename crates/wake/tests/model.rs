//! Random sequences of events against a small model that follows the written rules by brute force.

use proptest::prelude::*;
use wakeline_wake::{
    Cause, EngineTime, HoldRefusal, Limits, ParkOutcome, State, Topic, WaitGroup, WaitKey,
    WaiterId, Wake, WakeMode, WakeResult,
};

const TOPICS: usize = 3;
const GROUPS: usize = 2;
const LIMITS: Limits = Limits {
    waiters: 8,
    waiters_per_topic: 5,
    timers: 4,
};

#[derive(Clone, Debug)]
enum Event {
    Register {
        topics: Vec<usize>,
        group: usize,
        hold: u64,
    },
    Publish {
        topics: Vec<usize>,
        group: Option<usize>,
        mode: WakeMode,
    },
    Take(usize),
    Complete(usize, WakeResult),
    Leave(usize),
    WakeAt {
        topic: usize,
        mode: WakeMode,
        delay: u64,
    },
    Advance(u64),
}

fn mode() -> impl Strategy<Value = WakeMode> {
    prop_oneof![
        Just(WakeMode::All),
        (1u32..4).prop_map(WakeMode::Count),
        Just(WakeMode::Chain)
    ]
}

fn topics() -> impl Strategy<Value = Vec<usize>> {
    proptest::sample::subsequence((0..TOPICS).collect::<Vec<_>>(), 1..=2)
}

fn event() -> impl Strategy<Value = Event> {
    let result = prop_oneof![
        Just(WakeResult::Found),
        Just(WakeResult::Nothing),
        Just(WakeResult::PassOn)
    ];
    prop_oneof![
        4 => (topics(), 0..GROUPS, 1u64..50)
            .prop_map(|(topics, group, hold)| Event::Register { topics, group, hold }),
        4 => (topics(), proptest::option::of(0..GROUPS), mode())
            .prop_map(|(topics, group, mode)| Event::Publish { topics, group, mode }),
        5 => (0usize..16).prop_map(Event::Take),
        4 => (0usize..16, result).prop_map(|(number, result)| Event::Complete(number, result)),
        2 => (0usize..16).prop_map(Event::Leave),
        1 => (0..TOPICS, mode(), 1u64..40)
            .prop_map(|(topic, mode, delay)| Event::WakeAt { topic, mode, delay }),
        1 => (1u64..30).prop_map(Event::Advance),
    ]
}

#[derive(Clone, Debug)]
struct Permit {
    topics: Vec<usize>,
    after: Option<usize>,
    mode: WakeMode,
    cause: Cause,
}

/// A waiter of the model; its index in the list is its order of arrival.
#[derive(Debug)]
struct ModelWaiter {
    id: WaiterId,
    topics: Vec<usize>,
    group: usize,
    until: u64,
    pending: Option<Permit>,
    in_check: Option<Permit>,
    timed_out: bool,
    gone: bool,
}

#[derive(Debug, Default)]
struct Model {
    waiters: Vec<ModelWaiter>,
    timers: Vec<(u64, usize, usize, WakeMode)>,
    timer_number: usize,
    now: u64,
}

impl Model {
    fn here(&self) -> impl Iterator<Item = (usize, &ModelWaiter)> {
        self.waiters
            .iter()
            .enumerate()
            .filter(|(_, waiter)| !waiter.gone)
    }

    fn admits(&self, topics: &[usize]) -> Result<(), HoldRefusal> {
        if self.here().count() >= LIMITS.waiters {
            return Err(HoldRefusal::Full);
        }
        let full = topics.iter().any(|topic| {
            self.here()
                .filter(|(_, w)| w.topics.contains(topic))
                .count()
                >= LIMITS.waiters_per_topic
        });
        if full {
            Err(HoldRefusal::TopicFull)
        } else {
            Ok(())
        }
    }

    fn wake(
        &mut self,
        topics: &[usize],
        group: Option<usize>,
        mode: WakeMode,
        after: Option<usize>,
        cause: Cause,
    ) {
        for wanted in (0..GROUPS).filter(|l| group.is_none_or(|group| group == *l)) {
            let eligible: Vec<usize> = self
                .here()
                .filter(|(seq, w)| {
                    w.group == wanted
                        && w.pending.is_none()
                        && w.topics.iter().any(|topic| topics.contains(topic))
                        && (mode == WakeMode::All || after.is_none_or(|after| *seq > after))
                })
                .map(|(seq, _)| seq)
                .collect();
            let count = match mode {
                WakeMode::All => eligible.len(),
                WakeMode::Count(count) => count as usize,
                WakeMode::Chain => 1,
            };
            for seq in eligible.into_iter().take(count) {
                self.waiters[seq].pending = Some(Permit {
                    topics: topics.to_vec(),
                    after,
                    mode,
                    cause,
                });
            }
        }
    }

    fn pass_on(&mut self, group: usize, permit: &Permit, after: Option<usize>) {
        let mode = if permit.mode == WakeMode::Chain {
            WakeMode::Chain
        } else {
            WakeMode::Count(1)
        };
        self.wake(&permit.topics, Some(group), mode, after, permit.cause);
    }

    fn complete(&mut self, seq: usize, result: WakeResult) {
        let group = self.waiters[seq].group;
        let Some(permit) = self.waiters[seq].in_check.take() else {
            return;
        };
        match result {
            WakeResult::Found if permit.mode == WakeMode::Chain => {
                // To another waiter: this one is hidden while the wake is passed on.
                self.waiters[seq].gone = true;
                self.pass_on(group, &permit, None);
                self.waiters[seq].gone = false;
            }
            WakeResult::PassOn if permit.mode != WakeMode::All => {
                self.pass_on(group, &permit, Some(seq));
            }
            WakeResult::Found | WakeResult::Nothing | WakeResult::PassOn => {}
        }
    }

    fn leave(&mut self, seq: usize) {
        let waiter = &mut self.waiters[seq];
        waiter.gone = true;
        let group = waiter.group;
        for permit in [waiter.pending.take(), waiter.in_check.take()]
            .into_iter()
            .flatten()
        {
            if permit.mode != WakeMode::All {
                self.pass_on(group, &permit, permit.after);
            }
        }
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        self.timers.sort_by_key(|(due, number, ..)| (*due, *number));
        while self
            .timers
            .first()
            .is_some_and(|(due, ..)| *due <= self.now)
        {
            let (_, _, topic, mode) = self.timers.remove(0);
            self.wake(&[topic], None, mode, None, Cause::Timer);
        }
        let now = self.now;
        for waiter in self
            .waiters
            .iter_mut()
            .filter(|w| !w.gone && w.until <= now)
        {
            waiter.timed_out = true;
        }
    }

    fn next_due(&self) -> Option<u64> {
        let deadlines = self
            .here()
            .filter(|(_, w)| !w.timed_out)
            .map(|(_, w)| w.until);
        deadlines
            .chain(self.timers.iter().map(|(due, ..)| *due))
            .min()
    }
}

fn topic(index: usize) -> Topic {
    Topic::new("queue", [format!("q{index}").as_str()])
}

fn group(index: usize) -> WaitGroup {
    WaitGroup::new(&format!("g{index}"))
}

fn wake(topics: &[usize], only: Option<usize>, mode: WakeMode) -> Wake {
    Wake {
        topics: topics.iter().map(|index| topic(*index)).collect(),
        group: only.map(group),
        mode,
    }
}

/// A waiter whose park can return now must be in `woken`: its sleeping task is not polled otherwise.
fn assert_woken(before: &[bool], model: &Model, woken: &[WaiterId]) {
    for (seq, waiter) in model.here() {
        let was_ready = before.get(seq).copied().unwrap_or(false);
        let is_ready = waiter.pending.is_some() || waiter.timed_out;
        if is_ready && !was_ready {
            assert!(
                woken.contains(&waiter.id),
                "waiter {seq} became ready and was not woken"
            );
        }
    }
}

fn run(events: &[Event]) {
    let mut state = State::new(LIMITS);
    let mut model = Model::default();
    let mut woken = Vec::new();
    for event in events {
        let now = EngineTime(model.now);
        woken.clear();
        let before: Vec<bool> = model
            .waiters
            .iter()
            .map(|w| w.pending.is_some() || w.timed_out)
            .collect();
        let here: Vec<usize> = model.here().map(|(seq, _)| seq).collect();
        let pick = |number: usize| (!here.is_empty()).then(|| here[number % here.len()]);
        match event {
            Event::Register {
                topics,
                group: own,
                hold,
            } => {
                let keys: Vec<WaitKey> = topics
                    .iter()
                    .map(|index| WaitKey::new(topic(*index), group(*own)))
                    .collect();
                let until = model.now + hold;
                let answer = state.register(&keys, EngineTime(until), now);
                assert_eq!(answer.map(|_| ()), model.admits(topics));
                if let Ok(id) = answer {
                    model.waiters.push(ModelWaiter {
                        id,
                        topics: topics.clone(),
                        group: *own,
                        until,
                        pending: None,
                        in_check: None,
                        timed_out: false,
                        gone: false,
                    });
                }
            }
            Event::Publish {
                topics,
                group,
                mode,
            } => {
                state.wake(&wake(topics, *group, *mode), Cause::Notify, now, &mut woken);
                model.wake(topics, *group, *mode, None, Cause::Notify);
            }
            Event::Take(number) => {
                let Some(seq) = pick(*number) else { continue };
                let outcome = state.take(model.waiters[seq].id);
                let waiter = &mut model.waiters[seq];
                if let Some(permit) = waiter.pending.take() {
                    assert!(
                        matches!(outcome, Some(ParkOutcome::Woken { cause, .. }) if cause == permit.cause)
                    );
                    waiter.in_check = Some(permit);
                } else {
                    assert_eq!(outcome, waiter.timed_out.then_some(ParkOutcome::Deadline));
                }
            }
            Event::Complete(number, result) => {
                let Some(seq) = pick(*number) else { continue };
                state.complete(model.waiters[seq].id, *result, now, &mut woken);
                model.complete(seq, *result);
            }
            Event::Leave(number) => {
                let Some(seq) = pick(*number) else { continue };
                state.leave(model.waiters[seq].id, now, &mut woken);
                model.leave(seq);
            }
            Event::WakeAt { topic, mode, delay } => {
                let due = model.now + delay;
                let set = state
                    .wake_at(wake(&[*topic], None, *mode), EngineTime(due))
                    .is_some();
                assert_eq!(set, model.timers.len() < LIMITS.timers);
                if set {
                    model.timers.push((due, model.timer_number, *topic, *mode));
                    model.timer_number += 1;
                }
            }
            Event::Advance(by) => {
                model.advance(*by);
                state.advance(EngineTime(model.now), &mut woken);
            }
        }
        assert_woken(&before, &model, &woken);
        assert_eq!(state.held(), model.here().count());
        assert_eq!(state.next_due().map(|due| due.0), model.next_due());
        let gauge: u64 = state
            .doors()
            .iter()
            .map(|(_, counters)| counters.waiters)
            .sum();
        assert_eq!(gauge as usize, state.held());
    }
    // The wakes pending in the end must agree too, or a difference could hide until the next take.
    for (seq, waiter) in model.here() {
        let wakes = matches!(state.take(waiter.id), Some(ParkOutcome::Woken { .. }));
        assert_eq!(wakes, waiter.pending.is_some(), "waiter {seq}");
    }
    let left: Vec<WaiterId> = model.here().map(|(_, waiter)| waiter.id).collect();
    for id in left {
        state.leave(id, EngineTime(model.now), &mut woken);
    }
    assert_eq!(
        (state.held(), state.topic_count()),
        (0, 0),
        "nothing is left behind"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_state_machine_follows_the_model(events in prop::collection::vec(event(), 1..80)) {
        run(&events);
    }
}
