use std::sync::Arc;

use serde_json::{Value, json};
use wakeline_queue::{
    Queue,
    browse::{MessageFilter, MessageStatus},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    calls::{
        ALL, HOUR, HOUR_US, Request, complete, consume, from, make_next_dead, of, of_queue, push,
        push_each, release_claim,
    },
    http_calls::Routes,
    test_store::TestStore,
};

pub(crate) async fn a_group_is_listed_with_its_lag(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    push_each(&*store, "r", "p", &["x"]).await;
    consume(&*store, "q", "g", 1).await;
    make_next_dead(&*store, "q", "g").await;
    let held = from("q").claim_soon(&*store).await;
    consume(&*store, "r", "g", 1).await;

    let all = door.groups(100).await.unwrap();
    let rows = all.iter();
    let rows = rows.map(|group| (&*group.name, &*group.queue, group.lag, group.cursors));
    assert!(rows.eq([("g", "q", 2, 1), ("g", "r", 0, 1)]), "{all:?}");
    assert_eq!((all[0].leased, all[0].lagging), (1, 1));
    assert!(all[0].oldest_us.is_some());
    assert_eq!(all[1].oldest_us, None);

    let readers = door.group_readers("g", None, 100).await.unwrap();
    assert_eq!(readers.len(), 2);
    assert_eq!((&*readers[0].queue, readers[0].lag), ("q", 2));
    assert_eq!(readers[0].lease.map(|lease| lease.id), held.lease);
    assert_eq!(readers[1].lease, None);
    assert!(readers[0].consumed >= 1);
    let number = door.queue_number("r").await.unwrap();
    let there = door.group_readers("g", number, 100).await;
    assert_eq!(there.unwrap().len(), 1);
    assert_eq!(door.group_names(None, 9).await.unwrap(), ["g"]);
}

/// A member of each group as it is shown, by the group's name.
async fn shown(routes: &Routes, member: &str) -> Value {
    let groups = routes.get("/api/v1/consumer-groups").await;
    let groups = groups.as_array().expect("groups").iter();
    let pair = |group: &Value| {
        let name = group["name"].as_str().expect("a name").to_owned();
        (name, group[member].clone())
    };
    Value::Object(groups.map(pair).collect())
}

/// Pops that wait, each in a task of its own.
async fn hold(door: &Arc<Queue>, requests: Vec<Request>) {
    let held = door.engine().held() + requests.len();
    for request in requests {
        let door = door.clone();
        tokio::spawn(async move { door.pop(request.0, HOUR).await.map(drop) });
    }
    eventually("the pops to be held", async || door.engine().held() == held).await;
}

pub(crate) async fn members_are_consumers_and_not_partitions(store: TestStore) {
    let door = store.queue();
    let routes = Routes::of(door.clone());
    for partition in ["p1", "p2", "p3"] {
        push(&*store, "n.t", partition, &["a", "b"]).await;
    }
    // One consumer has three partitions, the two of another group have one each.
    let all = from("n.t").batch(9).partitions(3).claim_soon(&*store).await;
    assert_eq!(all.parts.len(), 3);
    let other = from("n.t").group("h");
    let claims = [
        other.claim_soon(&*store).await,
        other.claim_soon(&*store).await,
    ];
    assert_eq!(shown(&routes, "members").await, json!({"g": 1, "h": 2}));
    assert_eq!(
        shown(&routes, "partitionCursors").await,
        json!({"g": 3, "h": 3})
    );

    // Waiting pops are members of their group in each queue that they can get messages from.
    let waiting = vec![
        from("n.t"),
        from("n.t").partition("p1"),
        of(Some("n"), None),
        of(None, Some("t")),
        of(Some("n"), Some("t")),
        from("elsewhere"),
        of(Some("elsewhere"), None),
        from("n.t")
            .group("h")
            .partition(&claims[0].parts[0].partition),
    ];
    hold(&door, waiting).await;
    assert_eq!(shown(&routes, "members").await, json!({"g": 6, "h": 3}));

    // A consumer that is gone is counted until its lease ends.
    complete(&*store, &claims[1], "a").await;
    assert_eq!(shown(&routes, "members").await, json!({"g": 6, "h": 2}));
}

pub(crate) async fn a_group_with_lag_is_not_stable(store: TestStore) {
    let door = store.queue();
    let routes = Routes::of(door);
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(shown(&routes, "state").await, json!({}));
    consume(&*store, "q", "g", 1).await;
    assert_eq!(shown(&routes, "state").await, json!({"g": "Lagging"}));
    let claimed = from("q").claim_soon(&*store).await;
    assert_eq!(shown(&routes, "state").await, json!({"g": "Consuming"}));
    assert!(release_claim(&*store, &claimed).await);
    assert_eq!(shown(&routes, "state").await, json!({"g": "Lagging"}));
    consume(&*store, "q", "g", 1).await;
    assert_eq!(shown(&routes, "state").await, json!({"g": "Stable"}));
}

pub(crate) async fn lagging_groups_are_found_by_waiting_time(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a"]).await;
    push_each(&*store, "q", "done", &["a"]).await;
    let first = from("q").claim_soon(&*store).await;
    consume(&*store, "q", "g", 1).await;
    let lagging = door.lagging_groups(0, 100).await.unwrap();
    assert_eq!(lagging.len(), 1, "{lagging:?}");
    assert_eq!(lagging[0].partition, first.parts[0].partition);
    assert_eq!(lagging[0].lag, 1);
    assert_eq!(door.lagging_groups(HOUR_US, 100).await.unwrap(), []);
}

pub(crate) async fn a_deleted_queue_is_not_listed(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b"]).await;
    make_next_dead(&*store, "q", "g").await;
    assert_eq!(store.delete_queue("q".into()).done().await, Some(1));
    assert_eq!(door.groups(9).await.unwrap(), []);
    assert_eq!(door.lagging_groups(0, 9).await.unwrap(), []);
    let found = door.overview().await.unwrap();
    assert_eq!((found.queues, found.partitions), (0, 0));
    for filter in [of_queue("q"), MessageFilter::default()] {
        for status in [None, Some(MessageStatus::DeadLetter)] {
            let none = door.messages(&filter, status, ALL).await;
            assert_eq!(none.unwrap().total, 0);
        }
    }
}
