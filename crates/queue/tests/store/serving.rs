//! Which pops are served, and with how many messages.

use tokio::{sync::mpsc, time::timeout};
use wakeline_queue::ack::AckStatus;

use crate::{
    calls::{ack_of, from, message, names},
    test_door::{STUCK, TestDoor, acknowledge, taken},
    test_store::TestStore,
};

pub(crate) async fn the_pop_that_waited_longest_is_answered_first(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(door.parked(from("q")).await);
    }
    for (number, pop) in waiting.into_iter().enumerate() {
        door.push(&["p"], &number.to_string()).await;
        let claimed = taken(pop).await;
        assert_eq!(names(&claimed), [number.to_string()]);
        let name = number.to_string();
        acknowledge(&door.queue, ack_of(&claimed, &name, AckStatus::Completed)).await;
    }
}

pub(crate) async fn an_ack_answers_the_next_waiting_pop(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let first = door.parked(from("q")).await;
    let second = door.parked(from("q").partition("p")).await;
    let third = door.parked(from("q")).await;
    let sent = ["a", "b", "c"].map(|name| message("q", "p", name));
    door.queue.push(sent.to_vec()).await.unwrap();
    let mut expected = ["a", "b", "c"].into_iter();
    for pop in [first, second, third] {
        let claimed = taken(pop).await;
        let name = expected.next().unwrap();
        assert_eq!(names(&claimed), [name]);
        acknowledge(&door.queue, ack_of(&claimed, name, AckStatus::Completed)).await;
    }
}

pub(crate) async fn a_push_answers_one_pop_per_message(store: TestStore) {
    const WAITERS: usize = 6;
    let door = TestDoor::open(&store).await;
    let (answered, mut answers) = mpsc::unbounded_channel();
    for _ in 0..WAITERS {
        let pop = door.parked(from("q").auto_ack()).await;
        let answered = answered.clone();
        tokio::spawn(async move {
            let claimed = taken(pop).await;
            answered.send(names(&claimed)[0].to_owned()).unwrap();
        });
    }
    for sent in [["a", "b", "c"], ["d", "e", "f"]] {
        let before = door.engine.held();
        let messages = sent.map(|name| message("q", "p", name));
        door.queue.push(messages.to_vec()).await.unwrap();
        let mut seen = Vec::new();
        for _ in sent {
            let answer = timeout(STUCK, answers.recv()).await;
            seen.push(answer.expect("three are served").unwrap());
        }
        seen.sort();
        assert_eq!(seen, sent);
        assert!(answers.try_recv().is_err());
        assert_eq!(door.engine.held(), before - 3, "the others wait on");
    }
}

/// A batch is filled before the next pop gets messages.
pub(crate) async fn the_messages_of_a_batch_go_to_one_pop(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let first = door.parked(from("q").batch(10).auto_ack()).await;
    let second = door.parked(from("q").batch(10).auto_ack()).await;
    let sent = (0..15).map(|number| message("q", "p", &number.to_string()));
    door.queue.push(sent.collect()).await.unwrap();
    let (first, second) = (taken(first).await, taken(second).await);
    let mut counts = [first.messages().count(), second.messages().count()];
    counts.sort_unstable();
    assert_eq!(counts, [5, 10]);
}

pub(crate) async fn partitions_are_shared_among_pops(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let partitions = ["p0", "p1", "p2", "p3"];
    door.push(&partitions, "a").await;
    let pops: Vec<_> = (0..2)
        .map(|_| door.pop(from("q").batch(9).partitions(2)))
        .collect();
    let mut seen = Vec::new();
    for pop in pops {
        let claimed = taken(pop).await;
        seen.extend(claimed.parts.iter().map(|part| part.partition.clone()));
    }
    seen.sort();
    assert_eq!(seen, partitions);
}

pub(crate) async fn groups_do_not_wait_for_each_other(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let mut waiting = Vec::new();
    for group in ["g", "h", "i"] {
        waiting.push(door.parked(from("q").group(group)).await);
    }
    door.push(&["p"], "a").await;
    for pop in waiting {
        assert_eq!(names(&taken(pop).await), ["a"]);
    }
}
