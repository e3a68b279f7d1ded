use std::time::Duration;

use wakeline_queue::{
    ack::{Ack, Status},
    claim::{PopRequest, Source, Start},
    message::NewMessage,
    step::Step,
    store::browse::tallies,
    tally::Count,
};

use crate::ground::Ground;

const MINUTE: i64 = 60_000_000;

pub(crate) async fn counts_add_up_across_writes(ground: Ground) {
    let now = tallies::now(&*ground.store).await.unwrap();
    let minute = now / MINUTE * MINUTE;
    let count = |queue: &str, minutes_ago: i64, pushed: i64, max_lag_us: i64| Count {
        minute_us: minute - minutes_ago * MINUTE,
        queue: queue.into(),
        pushed,
        popped: 1,
        lag_us: max_lag_us,
        max_lag_us,
        ..Count::default()
    };
    let write = async |counts: Vec<Count>| ground.store.add_counts(counts).await.unwrap();
    write(vec![count("q", 0, 1, 5), count("r", 0, 2, 7)]).await;
    write(vec![count("q", 0, 10, 3), count("q", 5, 100, 1)]).await;
    // What is too old to be shown is forgotten.
    write(vec![count("q", 60 * 24 * 365, 1_000, 1)]).await;
    write(vec![count("r", 0, 0, 0)]).await;

    let all = (0, now + MINUTE);
    let series = async |bucket, queue: Option<&str>, by_queue| {
        let queue = queue.map(Into::into);
        let found = tallies::series(&*ground.store, all, bucket, &queue, by_queue).await;
        let found = found.unwrap();
        found
            .into_iter()
            .map(|count| (count.queue, count.pushed, count.popped, count.max_lag_us))
            .collect::<Vec<_>>()
    };
    let row = |queue: &str, pushed, popped, lag| (queue.to_owned(), pushed, popped, lag);
    assert_eq!(
        series(MINUTE, None, true).await,
        [row("q", 100, 1, 1), row("q", 11, 2, 5), row("r", 2, 2, 7)]
    );
    assert_eq!(
        series(MINUTE, None, false).await,
        [row("", 100, 1, 1), row("", 13, 4, 7)]
    );
    assert_eq!(
        series(i64::MAX / 2, Some("q"), true).await,
        [row("q", 111, 3, 5)]
    );
}

pub(crate) async fn the_door_counts_what_it_does(ground: Ground) {
    let door = ground.door();
    door.write_counts().await;
    let message = |id: &str| NewMessage {
        queue: "q".into(),
        partition: "p".into(),
        transaction_id: Some(id.into()),
        trace_id: None,
        payload: "1".into(),
        producer_sub: None,
        is_sealed: false,
    };
    let messages = vec![message("a"), message("b"), message("a")];
    door.push(messages).await.unwrap();
    let request = PopRequest {
        source: Source::Queue {
            queue: "q".into(),
            partition: None,
        },
        group: "g".into(),
        start: Start::All,
        batch: 9,
        partitions: 1,
        auto_ack: false,
    };
    let held = door.pop(request, Duration::from_secs(30)).await.unwrap();
    let claim = held.value.expect("two messages");
    let claimed = claim.claimed();
    let ack = |id: &str, status| Ack {
        partition: claimed.parts[0].number,
        group: "g".into(),
        transaction_id: id.into(),
        lease: claimed.lease,
        status,
        error: None,
        keeps_lease: false,
    };
    let step = Step {
        acks: vec![ack("a", Status::Completed), ack("b", Status::DeadLetter)],
        ..Step::default()
    };
    door.step(step).await.unwrap();
    door.write_counts().await;
    let now = tallies::now(&*ground.store).await.unwrap();
    let range = (now - 10 * MINUTE, now + 10 * MINUTE);
    let found = tallies::series(&*ground.store, range, i64::MAX / 2, &None, true).await;
    let found = found.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let count = &found[0];
    assert_eq!((count.pushed, count.popped), (2, 2));
    assert_eq!((count.completed, count.failed, count.dead), (1, 1, 1));
    assert!(count.lag_us >= count.max_lag_us);
}
