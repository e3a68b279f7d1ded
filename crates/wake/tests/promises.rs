//! The engine's promises, one by one, through its public interface.

use std::{sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use wakeline_wake::{
    Cause, Engine, HoldRefusal, Limits, ParkOutcome, Topic, WaitGroup, WaitKey, Waiter, Wake,
    WakeMode, WakeResult,
};

const HOLD: Duration = Duration::from_secs(30);

fn topic(name: &str) -> Topic {
    Topic::new("queue", [name])
}

fn key(name: &str) -> WaitKey {
    WaitKey::new(topic(name), WaitGroup::default())
}

fn engine() -> Arc<Engine> {
    let engine = Engine::new(Limits::default());
    tokio::spawn(engine.clone().run());
    engine
}

fn waiter(engine: &Arc<Engine>, name: &str) -> Waiter {
    engine.register(&[key(name)], HOLD).expect("there is room")
}

/// Whether a park would return now.
async fn is_woken(waiter: &mut Waiter) -> bool {
    tokio::select! {
        biased;
        outcome = waiter.park() => matches!(outcome, ParkOutcome::Woken { .. }),
        () = tokio::task::yield_now() => false,
    }
}

async fn woken_among(waiters: &mut [Waiter]) -> Vec<usize> {
    let mut woken = Vec::new();
    for (index, waiter) in waiters.iter_mut().enumerate() {
        if is_woken(waiter).await {
            woken.push(index);
        }
    }
    woken
}

#[tokio::test(start_paused = true)]
async fn a_wake_after_the_registration_makes_the_next_park_return_at_once() {
    let engine = engine();
    let mut waiter = waiter(&engine, "a");
    engine.wake(&Wake::count([topic("a")], 1), Cause::Notify);
    assert!(matches!(
        waiter.park().await,
        ParkOutcome::Woken {
            cause: Cause::Notify,
            ..
        }
    ));
    // While the waiter checks the store: its next park returns at once as well.
    engine.wake(&Wake::count([topic("a")], 1), Cause::Notify);
    waiter.complete(WakeResult::Nothing);
    assert!(is_woken(&mut waiter).await);
    assert!(!is_woken(&mut waiter).await);
}

#[tokio::test(start_paused = true)]
async fn n_items_wake_the_n_longest_waiters() {
    let engine = engine();
    let mut waiters: Vec<_> = (0..5).map(|_| waiter(&engine, "a")).collect();
    engine.wake(&Wake::count([topic("a")], 2), Cause::Notify);
    assert_eq!(woken_among(&mut waiters).await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn wait_groups_do_not_compete() {
    let engine = engine();
    let in_group = |group: &str| {
        engine
            .register(&[WaitKey::new(topic("a"), WaitGroup::new(group))], HOLD)
            .expect("there is room")
    };
    let mut waiters = vec![
        in_group("g1"),
        in_group("g1"),
        in_group("g2"),
        in_group("g2"),
    ];
    engine.wake(&Wake::count([topic("a")], 1), Cause::Notify);
    assert_eq!(woken_among(&mut waiters).await, [0, 2]);
    engine.wake(
        &Wake::count([topic("a")], 1).in_group(WaitGroup::new("g2")),
        Cause::Notify,
    );
    for waiter in &mut waiters {
        waiter.complete(WakeResult::Nothing);
    }
    // The waiter that was woken in vain is still the first of its group.
    assert_eq!(woken_among(&mut waiters).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn topics_of_one_wake_are_alternatives_for_the_same_item() {
    let engine = engine();
    let mut waiters = vec![waiter(&engine, "orders"), waiter(&engine, "orders/eu")];
    engine.wake(
        &Wake::count([topic("orders/eu"), topic("orders")], 1),
        Cause::Notify,
    );
    assert_eq!(woken_among(&mut waiters).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn a_chain_goes_on_while_work_is_found_and_ends_where_there_is_none() {
    let engine = engine();
    let mut waiters: Vec<_> = (0..3).map(|_| waiter(&engine, "a")).collect();
    engine.wake(&Wake::chain(topic("a")), Cause::Notify);
    assert_eq!(woken_among(&mut waiters).await, [0]);
    // Before it starts working, and whether or not it stays registered meanwhile.
    waiters[0].complete(WakeResult::Found);
    assert_eq!(woken_among(&mut waiters).await, [1]);
    waiters[1].complete(WakeResult::Nothing);
    assert_eq!(woken_among(&mut waiters).await, [] as [usize; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_is_passed_on_goes_to_the_next_waiter_and_never_in_circles() {
    let engine = engine();
    let mut waiters: Vec<_> = (0..3).map(|_| waiter(&engine, "a")).collect();
    engine.wake(&Wake::count([topic("a")], 1), Cause::Notify);
    for expected in 0..3 {
        assert_eq!(woken_among(&mut waiters).await, [expected]);
        waiters[expected].complete(WakeResult::PassOn);
    }
    assert_eq!(woken_among(&mut waiters).await, [] as [usize; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_passes_its_wake_on() {
    let engine = engine();
    let mut waiters: Vec<_> = (0..3).map(|_| waiter(&engine, "a")).collect();
    engine.wake(&Wake::count([topic("a")], 1), Cause::Notify);
    drop(waiters.remove(0));
    assert_eq!(woken_among(&mut waiters).await, [0]);
    // The waiter's client hung up in the middle of its check.
    drop(waiters.remove(0));
    assert_eq!(woken_among(&mut waiters).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn timers_wake_when_due_and_an_earlier_timer_wakes_first() {
    let engine = engine();
    let mut waiter = engine.register(&[key("a")], HOLD).expect("there is room");
    let began = tokio::time::Instant::now();
    let wake = || Wake {
        topics: [topic("a")].into(),
        group: None,
        mode: WakeMode::Count(1),
    };
    engine.wake_after(wake(), Duration::from_secs(10));
    tokio::task::yield_now().await;
    engine.wake_after(wake(), Duration::from_secs(3));
    let cancelled = engine
        .wake_after(wake(), Duration::from_secs(1))
        .expect("there is room");
    assert!(engine.cancel(cancelled));
    for due in [3, 10] {
        assert!(matches!(
            waiter.park().await,
            ParkOutcome::Woken {
                cause: Cause::Timer,
                ..
            }
        ));
        waiter.complete(WakeResult::Nothing);
        assert_eq!(began.elapsed().as_secs(), due);
    }
    assert_eq!(waiter.park().await, ParkOutcome::Deadline);
    assert_eq!(began.elapsed(), HOLD);
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_recheck_timer_the_earliest_and_it_leaves_with_the_waiters() {
    let engine = engine();
    engine.recheck_after(&key("a"), Duration::from_secs(1));
    assert_eq!(engine.timer_count(), 0, "nobody waits there");
    let mut first = waiter(&engine, "a");
    let mut second = waiter(&engine, "a");
    let began = tokio::time::Instant::now();
    for seconds in [9, 4, 7] {
        engine.recheck_after(&key("a"), Duration::from_secs(seconds));
        assert_eq!(engine.timer_count(), 1);
    }
    assert!(matches!(
        first.park().await,
        ParkOutcome::Woken {
            cause: Cause::Timer,
            ..
        }
    ));
    assert_eq!(began.elapsed().as_secs(), 4);
    // More than one item may be due: a waiter that finds something wakes the next one.
    assert!(!is_woken(&mut second).await);
    first.complete(WakeResult::Found);
    drop(first);
    assert!(is_woken(&mut second).await);
    engine.recheck_after(&key("a"), Duration::from_secs(1));
    drop(second);
    assert_eq!(engine.timer_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn past_the_limits_a_new_hold_is_refused_and_earlier_holds_are_served() {
    let engine = Engine::new(Limits {
        waiters: 3,
        waiters_per_topic: 2,
        timers: 1,
    });
    let mut held = waiter(&engine, "a");
    let _second = waiter(&engine, "a");
    assert_eq!(
        engine.register(&[key("a")], HOLD).unwrap_err(),
        HoldRefusal::TopicFull
    );
    let _third = waiter(&engine, "b");
    assert_eq!(
        engine.register(&[key("c")], HOLD).unwrap_err(),
        HoldRefusal::Full
    );
    assert!(engine.wake_after(Wake::all(topic("a")), HOLD).is_some());
    assert!(engine.wake_after(Wake::all(topic("a")), HOLD).is_none());
    engine.wake(&Wake::all(topic("a")), Cause::Notify);
    assert!(is_woken(&mut held).await);
}

#[tokio::test(start_paused = true)]
async fn on_drain_every_park_returns_and_new_holds_are_refused() {
    let engine = engine();
    let mut waiter = waiter(&engine, "a");
    engine.drain();
    assert_eq!(waiter.park().await, ParkOutcome::Drain);
    assert_eq!(
        engine.register(&[key("a")], HOLD).unwrap_err(),
        HoldRefusal::Draining
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_lists_each_waiter_with_its_keys_deadline_and_last_wake() {
    let engine = engine();
    let mut waiter = waiter(&engine, "a");
    engine.wake(&Wake::all(topic("a")), Cause::Fallback);
    assert!(is_woken(&mut waiter).await);
    waiter.complete(WakeResult::Nothing);
    let page = engine.page(0, 10);
    assert_eq!(page.total, 1);
    assert_eq!(page.waiters[0].keys[0].topic.to_string(), "queue/a");
    assert_eq!(page.waiters[0].until.since(page.waiters[0].since), HOLD);
    assert!(matches!(
        page.waiters[0].last_wake,
        Some((Cause::Fallback, _))
    ));
    let waiting = engine.waiting("queue");
    assert_eq!((waiting.len(), waiting[0].waiters), (1, 1));
    let counters = engine.doors()[0].1;
    assert_eq!((counters.waiters, counters.nothing), (1, [0, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_million_registrations_leave_nothing_behind() {
    let engine = engine();
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut held: Vec<Waiter> = Vec::new();
    for _ in 0..1_000_000 {
        let name = format!("q{}", random.random_range(0..500));
        held.push(waiter(&engine, &name));
        if random.random_ratio(1, 3) {
            let mode = match random.random_range(0..3) {
                0 => WakeMode::All,
                1 => WakeMode::Count(2),
                _ => WakeMode::Chain,
            };
            engine.wake(
                &Wake {
                    topics: [topic(&name)].into(),
                    group: None,
                    mode,
                },
                Cause::Notify,
            );
        }
        while held.len() > 200 || (!held.is_empty() && random.random_ratio(1, 2)) {
            let mut leaving = held.swap_remove(random.random_range(0..held.len()));
            if random.random_ratio(1, 2) && is_woken(&mut leaving).await {
                leaving.complete(WakeResult::Found);
            }
        }
    }
    held.clear();
    assert_eq!(
        (engine.held(), engine.topic_count(), engine.timer_count()),
        (0, 0, 0)
    );
    assert!(
        engine
            .doors()
            .iter()
            .all(|(_, counters)| counters.waiters == 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wake_says_which_key_it_is_for() {
    let engine = engine();
    let keys = [key("a"), key("b")];
    let mut waiter = engine.register(&keys, HOLD).expect("there is room");
    for (name, expected) in [("b", 1), ("a", 0)] {
        engine.wake(&Wake::count([topic(name)], 1), Cause::Notify);
        let outcome = waiter.park().await;
        let is_there = matches!(outcome, ParkOutcome::Woken { key, .. } if key == expected);
        assert!(is_there, "{name}: {outcome:?}");
        waiter.complete(WakeResult::Nothing);
    }
}
