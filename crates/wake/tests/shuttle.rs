//! The engine under explored schedules: no interleaving of a waiter and a producer loses a wake.
//! The same test must catch the classic bug, check-then-register.

use std::{sync::Arc, time::Duration};

use shuttle::{
    future,
    sync::atomic::{AtomicUsize, Ordering},
};
use wakeline_wake::{
    Cause, Engine, Limits, ParkOutcome, Topic, WaitGroup, WaitKey, Wake, WakeResult,
};

const ITERATIONS: usize = 20_000;
const HOLD: Duration = Duration::from_secs(3600);

fn topic() -> Topic {
    Topic::new("queue", ["orders"])
}

fn keys() -> [WaitKey; 1] {
    [WaitKey::new(topic(), WaitGroup::default())]
}

/// A store with a number of items in it; taking one is atomic, as it is in a database.
#[derive(Debug, Default)]
struct Items(AtomicUsize);

impl Items {
    fn put(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn take(&self) -> bool {
        self.0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

/// Register, check, park, check again.
async fn wait_for_one(engine: Arc<Engine>, items: Arc<Items>) {
    let mut waiter = engine.register(&keys(), HOLD).expect("there is room");
    while !items.take() {
        waiter.complete(WakeResult::Nothing);
        assert!(matches!(waiter.park().await, ParkOutcome::Woken { .. }));
    }
    waiter.complete(WakeResult::Found);
}

/// The classic bug: an item that comes between the check and the registration is lost.
async fn wait_for_one_checking_first(engine: Arc<Engine>, items: Arc<Items>) {
    loop {
        if items.take() {
            return;
        }
        let mut waiter = engine.register(&keys(), HOLD).expect("there is room");
        assert!(matches!(waiter.park().await, ParkOutcome::Woken { .. }));
    }
}

fn put_and_wake(engine: &Engine, items: &Items, mode: impl Fn() -> Wake) {
    items.put();
    engine.wake(&mode(), Cause::Notify);
}

fn counted() -> Wake {
    Wake::count([topic()], 1)
}

#[test]
fn every_waiter_gets_its_item_whatever_the_schedule() {
    shuttle::check_random(
        || {
            let engine = Engine::new(Limits::default());
            let items = Arc::new(Items::default());
            let waiters: Vec<_> = (0..3)
                .map(|_| future::spawn(wait_for_one(engine.clone(), items.clone())))
                .collect();
            for _ in 0..3 {
                let (engine, items) = (engine.clone(), items.clone());
                shuttle::thread::spawn(move || put_and_wake(&engine, &items, counted));
            }
            for waiter in waiters {
                future::block_on(waiter).expect("the waiter ends");
            }
            assert_eq!(engine.held(), 0);
            assert_eq!(engine.topic_count(), 0);
        },
        ITERATIONS,
    );
}

#[test]
fn a_chain_reaches_every_waiter_that_is_needed() {
    shuttle::check_random(
        || {
            let engine = Engine::new(Limits::default());
            let items = Arc::new(Items::default());
            let waiters: Vec<_> = (0..3)
                .map(|_| future::spawn(wait_for_one(engine.clone(), items.clone())))
                .collect();
            let producer = {
                let (engine, items) = (engine.clone(), items.clone());
                shuttle::thread::spawn(move || {
                    for _ in 0..3 {
                        items.put();
                    }
                    engine.wake(&Wake::chain(topic()), Cause::Notify);
                })
            };
            for waiter in waiters {
                future::block_on(waiter).expect("the waiter ends");
            }
            producer.join().expect("the producer ends");
        },
        ITERATIONS,
    );
}

#[test]
fn a_waiter_that_leaves_passes_its_wake_on() {
    shuttle::check_random(
        || {
            let engine = Engine::new(Limits::default());
            let items = Arc::new(Items::default());
            let fickle = engine.register(&keys(), HOLD).expect("there is room");
            let steady = future::spawn(wait_for_one(engine.clone(), items.clone()));
            let leaving = shuttle::thread::spawn(move || drop(fickle));
            let producer = {
                let (engine, items) = (engine.clone(), items.clone());
                shuttle::thread::spawn(move || put_and_wake(&engine, &items, counted))
            };
            future::block_on(steady).expect("the waiter ends");
            leaving.join().expect("leaving ends");
            producer.join().expect("the producer ends");
            assert_eq!(engine.held(), 0);
        },
        ITERATIONS,
    );
}

#[test]
fn every_park_returns_on_drain() {
    shuttle::check_random(
        || {
            let engine = Engine::new(Limits::default());
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let engine = engine.clone();
                    future::spawn(async move {
                        if let Ok(mut waiter) = engine.register(&keys(), HOLD) {
                            assert_eq!(waiter.park().await, ParkOutcome::Drain);
                        }
                    })
                })
                .collect();
            let draining = {
                let engine = engine.clone();
                shuttle::thread::spawn(move || engine.drain())
            };
            for waiter in waiters {
                future::block_on(waiter).expect("the waiter ends");
            }
            draining.join().expect("draining ends");
            assert_eq!(engine.held(), 0);
        },
        ITERATIONS,
    );
}

/// Shows that the exploration finds what it is there to find: under the same producer, the
/// waiter that checks before it registers sleeps for ever in some schedule (a deadlock).
#[test]
#[should_panic(expected = "deadlock")]
fn checking_before_registering_is_caught() {
    shuttle::check_random(
        || {
            let engine = Engine::new(Limits::default());
            let items = Arc::new(Items::default());
            let waiter = future::spawn(wait_for_one_checking_first(engine.clone(), items.clone()));
            let producer = {
                let (engine, items) = (engine.clone(), items.clone());
                shuttle::thread::spawn(move || put_and_wake(&engine, &items, counted))
            };
            future::block_on(waiter).expect("the waiter ends");
            producer.join().expect("the producer ends");
        },
        ITERATIONS,
    );
}
