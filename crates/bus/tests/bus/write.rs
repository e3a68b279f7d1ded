//! What `Write::commit` promises, on a bus of one process.

use std::{sync::Arc, time::Duration};

use futures_util::poll;
use tokio::{sync::oneshot, time::timeout};
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_store::Error;
use wakeline_wake::{Engine, Limits, ParkOutcome, Topic, WaitGroup, WaitKey, Waiter, Wake};

const DOOR: &str = "test";
/// Nothing here takes this long, unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

fn topic() -> Topic {
    Topic::new(DOOR, ["item"])
}

fn bus() -> (Arc<Engine>, Arc<Bus>) {
    let engine = Engine::new(Limits::default());
    (engine.clone(), Bus::local(engine))
}

fn waiter(engine: &Arc<Engine>) -> Waiter {
    let key = WaitKey::new(topic(), WaitGroup::default());
    engine.register(&[key], HANGS).unwrap()
}

async fn is_woken(mut waiter: Waiter) -> bool {
    let outcome = timeout(HANGS, waiter.park()).await.unwrap();
    matches!(outcome, ParkOutcome::Woken { .. })
}

/// A write that ends as the test says.
fn write<T: Send + 'static>() -> (oneshot::Sender<Result<T, Error>>, Write<T>) {
    let (end, ended) = oneshot::channel();
    let run = async { ended.await.unwrap() };
    (end, Write::new(DOOR, run, |_| Wake::all(topic()).into()))
}

#[tokio::test]
async fn a_caller_that_hangs_up_has_still_written_and_woken() {
    let (engine, bus) = bus();
    let waiter = waiter(&engine);
    let (end, write) = write();
    // Whether it was ever polled or not.
    drop(write.commit(&bus));
    let (value, dropped) = oneshot::channel::<()>();
    assert!(end.send(Ok(value)).is_ok(), "the write goes on");
    assert!(is_woken(waiter).await);
    assert!(dropped.await.is_err(), "the task has dropped the value");
    assert_eq!(
        bus.recheck_requests(),
        0,
        "the waiters were woken, so no recheck is needed"
    );
}

#[tokio::test]
async fn the_caller_gets_the_value() {
    let (_, bus) = bus();
    let (end, write) = write();
    let written = write.map(|number: u32| number + 1).commit(&bus);
    end.send(Ok(1)).unwrap();
    assert_eq!(written.await, Ok(2));
}

#[tokio::test]
async fn a_panic_is_an_error_to_the_caller_and_the_door_rechecks() {
    let (_, bus) = bus();
    let run = async { panic!("this test's panic") };
    let write: Write<()> = Write::new(DOOR, run, |()| Wakes::none());
    let written = write.commit(&bus).await;
    assert!(
        matches!(written, Err(Error::OutcomeUnknown(_))),
        "{written:?}"
    );
    assert_eq!(bus.recheck_requests(), 1);

    let write = Write::new(DOOR, async { Ok(()) }, |()| Wakes::none());
    let written = write.map(|()| panic!("a follow-up's panic")).commit(&bus);
    let written: Result<(), Error> = written.await;
    assert!(
        matches!(written, Err(Error::OutcomeUnknown(_))),
        "{written:?}"
    );
    assert_eq!(bus.recheck_requests(), 2);
}

#[tokio::test]
async fn an_unknown_outcome_makes_the_door_recheck() {
    let (_, bus) = bus();
    for (error, rechecks) in [
        (Error::Unavailable("away".into()), 0),
        (Error::Failed("refused".into()), 0),
        (Error::OutcomeUnknown("lost".into()), 1),
    ] {
        let (end, write) = write::<()>();
        end.send(Err(error.clone())).unwrap();
        assert_eq!(write.commit(&bus).await, Err(error));
        assert_eq!(bus.recheck_requests(), rechecks);
    }
}

#[tokio::test]
async fn follow_ups_run_after_the_wakes_in_their_order() {
    let (engine, bus) = bus();
    let wake_count = {
        let engine = engine.clone();
        move || engine.wake_count(DOOR)
    };
    let in_run = wake_count.clone();
    let run = async move { Ok(vec![in_run()]) };
    let write = Write::new(DOOR, run, |_| Wake::all(topic()).into());
    let write = write.map(move |mut counts| {
        counts.push(wake_count());
        counts
    });
    let write = write.then(async |mut counts: Vec<u64>| {
        tokio::task::yield_now().await;
        counts.push(2);
        counts
    });
    let waiter = waiter(&engine);
    assert_eq!(write.commit(&bus).await, Ok(vec![0, 1, 2]));
    assert!(is_woken(waiter).await);
}

#[tokio::test]
async fn a_wake_with_a_due_time_wakes_at_that_time() {
    let (engine, bus) = bus();
    let wakes = Wakes::later(Wake::all(topic()), HANGS)
        .and(Wakes::later(Wake::all(topic()), Duration::ZERO))
        .and(Wakes::whole_door());
    let write = Write::new(DOOR, async { Ok(()) }, |()| wakes);
    let waiter = waiter(&engine);
    write.commit(&bus).await.unwrap();
    assert!(is_woken(waiter).await, "what is due wakes now");
    assert_eq!(engine.timer_count(), 1);
    assert_eq!(bus.recheck_requests(), 1);
}

/// Each write of a batch, whichever returns first, returns after the wakes of all.
#[tokio::test]
async fn the_wakes_of_a_batch_are_published_once_by_the_first_of_its_writes() {
    let (engine, bus) = bus();
    let wakes = Wakes::from(Wake::all(topic())).published_once();
    let writes = [wakes.clone(), wakes].map(|wakes| Write::new(DOOR, async { Ok(()) }, |()| wakes));
    let waiter = waiter(&engine);
    let mut counts = Vec::new();
    // The last one first.
    for write in writes.into_iter().rev() {
        write.commit(&bus).await.unwrap();
        counts.push(engine.wake_count(DOOR));
    }
    assert_eq!(counts, [1, 1]);
    assert!(is_woken(waiter).await);
}

#[tokio::test]
async fn shutdown_waits_for_the_writes() {
    let (engine, bus) = bus();
    let waiter = waiter(&engine);
    let (end, write) = write::<()>();
    let (go_on, may_go_on) = oneshot::channel::<()>();
    drop(write.then(async |()| may_go_on.await.unwrap()).commit(&bus));
    let finished = bus.finish_writes(HANGS);
    tokio::pin!(finished);
    assert!(poll!(&mut finished).is_pending(), "it commits");
    end.send(Ok(())).unwrap();
    assert!(is_woken(waiter).await);
    assert!(poll!(&mut finished).is_pending(), "it has a follow-up");
    go_on.send(()).unwrap();
    finished.await;
}
