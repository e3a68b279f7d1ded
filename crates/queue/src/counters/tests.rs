use super::*;
use crate::{
    ack::Ack,
    message::{NewMessage, PushReceipt, PushRefusal},
};

fn message(queue: &str) -> NewMessage {
    NewMessage {
        queue: queue.into(),
        partition: "p".into(),
        payload: "1".into(),
        ..NewMessage::default()
    }
}

fn pushed(position: i64, duplicate: bool) -> Result<PushReceipt, PushRefusal> {
    Ok(PushReceipt {
        id: id::message(1_000, 7, position),
        transaction_id: String::new(),
        partition_id: id::partition(7),
        duplicate,
    })
}

fn ack(partition: i64, status: AckStatus) -> Ack {
    Ack {
        partition,
        group: "g".into(),
        transaction_id: "t".into(),
        lease: None,
        status,
        error: None,
        keeps_lease: false,
    }
}

/// The counts of the queue with this name; an empty name is the server.
fn of<'a>(counts: &'a [CounterRow], queue: &str) -> &'a CounterRow {
    let found = counts
        .iter()
        .find(|count| count.queue == queue && count.partition.is_none());
    found.unwrap_or_else(|| panic!("no {queue:?} in {counts:?}"))
}

#[test]
fn each_message_and_ack_is_counted_once() {
    let counters = Counters::default();
    let batch = WriteBatch {
        pushes: vec![message("q"); 4],
        acks: vec![
            ack(7, AckStatus::Completed),
            ack(7, AckStatus::Failed),
            ack(7, AckStatus::Completed),
            ack(8, AckStatus::Completed),
        ],
        ..WriteBatch::default()
    };
    let acked = |dead| AckOutcome::Done {
        lease_released: true,
        dead,
    };
    let done = BatchOutcome {
        pushed: vec![
            pushed(0, false),
            pushed(0, true),
            pushed(1, false),
            Err(PushRefusal::Paused),
        ],
        acked: vec![acked(false), acked(true), AckOutcome::Unknown, acked(false)],
        ..BatchOutcome::default()
    };
    counters.count_outcome(&batch, &done);
    assert_eq!(counters.take_processed(), 5);
    assert_eq!(counters.take_processed(), 0);
    let counts = counters.take();
    assert_eq!(counts.len(), 2, "{counts:?}");
    let count = of(&counts, "q");
    assert_eq!(
        (count.pushed, count.completed, count.failed, count.dead),
        (2, 1, 1, 1)
    );
    assert_eq!(count.partitions_made, 1);
    assert_eq!(count.minute_us % MINUTE_US, 0);
    let unknown = counts.iter().find(|count| count.partition == Some(8));
    assert_eq!(unknown.map(|count| count.completed), Some(1));
    assert_eq!(counters.take(), []);
    counters.put_back(vec![count.clone(), count.clone(), counts[0].clone()]);
    let again = counters.take();
    assert!(of(&again, "q").pushed >= 4, "{again:?}");
}

#[test]
fn a_call_counts_once_for_the_server_and_once_for_each_queue() {
    let counters = Counters::default();
    let mut batch = WriteBatch::of_pushes(vec![message("q"), message("q"), message("r")]);
    counters.count_call(&batch);
    let counts = counters.take();
    for queue in ["", "q", "r"] {
        assert_eq!(of(&counts, queue).push_requests, 1, "{queue}");
        assert_eq!(of(&counts, queue).ack_requests, 0, "{queue}");
    }
    // Partition 7 is known to be of q.
    let done = BatchOutcome {
        pushed: vec![pushed(0, false)],
        ..BatchOutcome::default()
    };
    counters.count_outcome(&batch, &done);
    let _ = counters.take();
    batch.acks = vec![ack(7, AckStatus::Completed), ack(9, AckStatus::Completed)];
    batch.is_whole = true;
    counters.count_call(&batch);
    let counts = counters.take();
    for queue in ["", "q", "r"] {
        let count = of(&counts, queue);
        assert_eq!((count.transactions, count.push_requests), (1, 0), "{queue}");
    }
    let acks = WriteBatch::of_acks(batch.acks);
    counters.count_call(&acks);
    let counts = counters.take();
    for queue in ["", "q"] {
        assert_eq!(of(&counts, queue).ack_requests, 1, "{queue}");
    }
    let unknown = counts.iter().find(|count| count.partition == Some(9));
    assert_eq!(unknown.map(|count| count.ack_requests), Some(1));
}

#[test]
fn a_pop_by_namespace_is_counted_for_the_server_only() {
    let counters = Counters::default();
    let of_queue = Source::Queue {
        queue: "q".into(),
        partition: None,
    };
    let matching = Source::Matching {
        namespace: Some("n".into()),
        task: None,
    };
    for source in [&of_queue, &matching] {
        counters.count_pop(source);
        counters.count_empty_pop(source);
    }
    let counts = counters.take();
    assert_eq!(counts.len(), 2);
    let (server, queue) = (of(&counts, ""), of(&counts, "q"));
    assert_eq!((server.pop_requests, server.empty_pops), (2, 2));
    assert_eq!((queue.pop_requests, queue.empty_pops), (1, 1));
}

#[test]
fn failures_of_the_store_are_counted_once_between_two_readings() {
    let counters = Counters::default();
    counters.count_store_failures(0);
    assert_eq!(counters.take(), []);
    counters.count_store_failures(3);
    counters.count_store_failures(5);
    assert_eq!(of(&counters.take(), "").store_failures, 5);
    counters.count_store_failures(5);
    assert_eq!(counters.take(), []);
}

#[test]
fn the_number_of_counted_queues_is_limited() {
    let counters = Counters::default();
    for number in 0..=MAX_COUNTS {
        counters.count_deleted_partitions(&number.to_string(), 1);
    }
    counters.count_deleted_partitions("0", 1);
    let counts = counters.take();
    assert_eq!(counts.len(), MAX_COUNTS);
    assert_eq!(of(&counts, "0").partitions_deleted, 2);
}
