//! Micro-benchmarks of the engine, and the bytes that a parked waiter costs inside it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use criterion::Criterion;
use wakeline_wake::{Cause, Engine, Limits, Topic, WaitGroup, WaitKey, Waiter, Wake, WakeResult};

const MANY: usize = 100_000;
const HOLD: Duration = Duration::from_secs(3600);

/// Counts what is allocated, to know what a waiter costs.
struct CountingAllocator;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only the sizes are added up.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn topic(index: usize) -> Topic {
    Topic::new("queue", [format!("orders-{index:06}").as_str()])
}

fn key(index: usize) -> WaitKey {
    WaitKey::new(topic(index), WaitGroup::new("__QUEUE_MODE__"))
}

fn parked(engine: &Arc<Engine>, index: usize) -> Waiter {
    let mut waiter = engine.register(&[key(index)], HOLD).expect("there is room");
    let mut context = Context::from_waker(Waker::noop());
    assert!(
        Box::pin(waiter.park())
            .as_mut()
            .poll(&mut context)
            .is_pending()
    );
    waiter
}

fn bytes_per_waiter(topics: usize) -> isize {
    let engine = Engine::new(Limits::default());
    let mut waiters = Vec::with_capacity(MANY);
    let before = ALLOCATED.load(Ordering::Relaxed);
    waiters.extend((0..MANY).map(|index| parked(&engine, index % topics)));
    let after = ALLOCATED.load(Ordering::Relaxed);
    (after - before) / MANY.cast_signed()
}

/// Wakes one waiter, lets it find nothing and park again: the line is as long as before.
fn wake_one(engine: &Arc<Engine>, waiters: &mut [Waiter], which: usize, wake: &Wake) {
    engine.wake(wake, Cause::Notify);
    let mut context = Context::from_waker(Waker::noop());
    assert!(
        Box::pin(waiters[which].park())
            .as_mut()
            .poll(&mut context)
            .is_ready()
    );
    waiters[which].complete(WakeResult::Nothing);
    assert!(
        Box::pin(waiters[which].park())
            .as_mut()
            .poll(&mut context)
            .is_pending()
    );
}

fn main() {
    println!("bytes per parked waiter inside the engine (limit 400):");
    println!("  {MANY} waiters on one topic: {}", bytes_per_waiter(1));
    println!(
        "  {MANY} waiters on {MANY} topics: {}",
        bytes_per_waiter(MANY)
    );

    let mut criterion = Criterion::default().configure_from_args();

    let engine = Engine::new(Limits::default());
    let one = key(0);
    criterion.bench_function("register and drop", |bench| {
        bench.iter(|| engine.register(black_box(std::slice::from_ref(&one)), HOLD));
    });

    let mut crowd: Vec<_> = (0..MANY).map(|_| parked(&engine, 0)).collect();
    let wake = Wake::count([topic(0)], 1);
    criterion.bench_function(
        "wake one among 100,000 on one topic, complete, park again",
        |bench| {
            bench.iter(|| wake_one(&engine, &mut crowd, 0, &wake));
        },
    );
    drop(crowd);

    let mut spread: Vec<_> = (0..MANY).map(|index| parked(&engine, index)).collect();
    let wakes: Vec<_> = (0..MANY)
        .map(|index| Wake::count([topic(index)], 1))
        .collect();
    let mut next = 0;
    criterion.bench_function(
        "wake across 100,000 topics, complete, park again",
        |bench| {
            bench.iter(|| {
                next = (next + 7_919) % MANY;
                wake_one(&engine, &mut spread, next, &wakes[next]);
            });
        },
    );
    drop(spread);

    let timers: Vec<_> = (0..MANY)
        .filter_map(|_| engine.wake_after(wake.clone(), HOLD))
        .collect();
    criterion.bench_function("set and cancel a timer among 100,000", |bench| {
        bench.iter(|| {
            let id = engine
                .wake_after(wake.clone(), HOLD / 2)
                .expect("there is room");
            engine.cancel(id)
        });
    });
    black_box(timers);
    criterion.final_summary();
}
