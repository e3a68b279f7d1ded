//! PostgreSQL only: applications that push in their own transactions.

use std::{collections::HashMap, sync::Arc};

use tokio::{sync::Barrier, task::JoinSet};
use tokio_postgres::Client;
use wakeline_queue::message::PushRefusal;
use wakeline_testkit::{CommitAlone, eventually};
use wakeline_wake::Cause;

use crate::{
    calls::{
        HOUR, complete, configure, from, message, names, part, push, push_all, push_together,
        try_push,
    },
    races::finished,
    test_door::{answer, nodes, recheck_on_request},
    test_store::TestStore,
};

async fn application(store: &TestStore) -> Client {
    store.database.session().await
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// The SQLSTATE with which it is refused.
async fn refused(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.unwrap_err();
    let _ = client.batch_execute("ROLLBACK").await;
    error.code().unwrap().code().to_owned()
}

#[tokio::test]
async fn a_message_is_delivered_with_all_its_fields() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    let pushes = r#"SELECT wakeline.push('q', '{"a":  1, "z": "\u0000"}', 'π', 't ü',
            '00000000-0000-0000-0000-000000000005')
        UNION ALL SELECT wakeline.push('q2', NULL)"#;
    let rows = client.query_typed(pushes, &[]).await.unwrap();
    let given: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let claimed = from("q").claim(&*store).await;
    let of = part(&claimed);
    let got = &of.messages[0];
    assert_eq!((&*of.partition, &*got.transaction_id), ("π", "t ü"));
    assert_eq!(got.payload, r#"{"a":  1, "z": "\u0000"}"#);
    assert_eq!(got.trace_id.unwrap().as_u128(), 5);
    assert_eq!(given[0], "t ü");
    let claimed = from("q2").claim(&*store).await;
    let of = part(&claimed);
    let got = &of.messages[0];
    assert_eq!((&*of.partition, &*got.payload), ("Default", "null"));
    assert_eq!(got.transaction_id, given[1]);
    complete(&*store, &claimed, &given[1]).await;
    assert_eq!(from("q2").nothing(&*store).await, None);
}

#[tokio::test]
async fn messages_are_delivered_in_the_order_of_the_commits() {
    let store = TestStore::postgres().await;
    let (slow, fast) = (application(&store).await, application(&store).await);
    run(&slow, "BEGIN; SELECT wakeline.push('q', '1', 'p', 'a')").await;
    run(&fast, "BEGIN; SELECT wakeline.push('q', '1', 'p', 'b')").await;
    // Not before the commit.
    assert_eq!(from("q").nothing(&*store).await, None);
    run(&slow, "SELECT wakeline.push('q', '1', 'p', 'c')").await;
    run(&fast, "COMMIT").await;
    // An open transaction blocks no other push.
    push(&*store, "q", "p", &["d"]).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["b", "d"]);
    complete(&*store, &claimed, "d").await;
    run(&slow, "COMMIT").await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["a", "c"]);
    let late = from("q").group("late").batch(9).claim(&*store).await;
    assert_eq!(names(&late), ["b", "d", "a", "c"]);
}

#[tokio::test]
async fn a_rolled_back_push_stores_nothing() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    let rolled_back = "BEGIN; SELECT wakeline.push('q', '1', 'p', 'a'); ROLLBACK";
    run(&client, rolled_back).await;
    assert_eq!(from("q").nothing(&*store).await, None);
    let savepoints = "BEGIN;
        SELECT wakeline.push('q', '1', 'p', 'a');
        SAVEPOINT one; SELECT wakeline.push('q', '1', 'p', 'b'); ROLLBACK TO one;
        SAVEPOINT two; SELECT wakeline.push('q', '1', 'p', 'c'); RELEASE two;
        SELECT wakeline.push('q', '1', 'p', 'd');
        COMMIT";
    run(&client, savepoints).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["a", "c", "d"]);
    assert_eq!(store.database.count("queue_outbox").await, 0);
}

#[tokio::test]
async fn a_transaction_id_is_stored_once() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    let client = application(&store).await;
    let pushes = "BEGIN; SELECT wakeline.push('q', '1', 'p', 'a');
        SELECT wakeline.push('q', '1', 'p', 'b'); SELECT wakeline.push('q', '2', 'p', 'b');
        SELECT wakeline.push('q', '1', 'p2', 'a'); COMMIT";
    run(&client, pushes).await;
    run(&client, "SELECT wakeline.push('q', '3', 'p', 'b')").await;
    let again = push_together(&*store, "q", "p", &["b", "c"]).await;
    assert_eq!((again[0].duplicate, again[1].duplicate), (true, false));
    let request = from("q").batch(9).partition("p");
    assert_eq!(names(&request.claim(&*store).await), ["a", "b", "c"]);
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}

#[tokio::test]
async fn three_hundred_messages_of_one_transaction_are_delivered_in_order() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["first"]).await;
    let client = application(&store).await;
    let many = "SELECT count(wakeline.push('q', to_json(n), 'p' || n % 2, n::text))
        FROM generate_series(0, 599) n";
    run(&client, many).await;
    for odd in 0..2 {
        let request = from("q").partition(&format!("p{odd}")).batch(1_000);
        let claimed = request.claim(&*store).await;
        let expected: Vec<String> = (0..300).map(|n| (n * 2 + odd).to_string()).collect();
        assert_eq!(names(&claimed), expected);
        let payloads: Vec<&str> = claimed.messages().map(|m| &*m.payload).collect();
        assert_eq!(payloads, expected);
    }
}

#[tokio::test]
async fn a_push_by_sql_is_refused_like_a_push_by_http() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    configure(&*store, "small", |options| options.max_size = 2).await;
    let three = "SELECT count(wakeline.push('small', '1')) FROM generate_series(1, 3)";
    assert_eq!(refused(&client, three).await, "54000");
    run(&client, &three.replace("3)", "2)")).await;
    let push_to = |queue: &str| format!("SELECT wakeline.push('{queue}', '1')");
    assert_eq!(refused(&client, &push_to("small")).await, "54000");
    let pushed = try_push(&*store, vec![message("small", "p", "x")]).await;
    assert_eq!(pushed.pushed, [Err(PushRefusal::Full { max_size: 2 })]);

    configure(&*store, "sealed", |options| options.is_sealed = true).await;
    assert_eq!(refused(&client, &push_to("sealed")).await, "55000");
    store.set_push_paused(true).done().await;
    assert_eq!(refused(&client, &push_to("q")).await, "55000");
    store.set_push_paused(false).done().await;
    run(&client, "SELECT wakeline.push('q', '1')").await;

    for bad in [
        "'', '1'",
        "NULL, '1'",
        "'q', '1', ''",
        "repeat('x', 256), '1'",
        "'q', '1', 'p', ''",
    ] {
        let push = format!("SELECT wakeline.push({bad})");
        assert_eq!(refused(&client, &push).await, "22023", "{bad}");
    }
    let no_json = "SELECT wakeline.push('q', '{')";
    assert_eq!(refused(&client, no_json).await, "22P02");
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(claimed.messages().count(), 1);
}

#[tokio::test]
async fn a_push_commits_with_the_writes_of_its_application() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    run(&client, "CREATE TABLE orders (id int PRIMARY KEY)").await;
    let order = |id: i32| {
        format!(
            "BEGIN; INSERT INTO orders VALUES ({id});
             SELECT wakeline.push('orders', '{id}', 'p', 'order {id}'); COMMIT"
        )
    };
    run(&client, &order(1)).await;
    assert_eq!(refused(&client, &order(1)).await, "23505");
    run(&client, &order(2)).await;
    let claimed = from("orders").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["order 1", "order 2"]);
    // Nothing but the right to call it is needed, and again in the same session.
    let role = format!("app_{:016x}", rand::random::<u64>());
    let as_role = format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA wakeline TO {role}; SET ROLE {role};
         SELECT wakeline.push('orders', '3', 'p', 'order 3');
         SELECT wakeline.push('orders', '4', 'p', 'order 4');
         RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"
    );
    for statement in as_role.split(';') {
        run(&client, statement).await;
    }
    let late = from("orders").group("late").batch(9).claim(&*store).await;
    assert_eq!(late.messages().count(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_by_sql_wakes_the_pops_of_every_node() {
    let store = TestStore::postgres().await;
    let nodes = nodes(&store).await;
    let client = application(&store).await;
    run(&client, "SELECT wakeline.push('q', '1', 'p', 'first')").await;
    for (number, node) in nodes.iter().enumerate() {
        recheck_on_request(node);
        // A group that has caught up, and one that has claimed nothing.
        let group = format!("g{number}");
        let caught_up = from("q").group(&group).batch(9);
        let claimed = caught_up.clone().auto_ack().claim(&*store).await;
        assert_eq!(names(&claimed)[0], "first");
        let mut waiting = Vec::new();
        for request in [caught_up, from(&format!("new{number}"))] {
            let waiter = node.clone();
            waiting.push(tokio::spawn(async move {
                waiter.pop(request.0, HOUR).await.unwrap()
            }));
        }
        eventually("both pops to be held", async || node.engine().held() == 2).await;
        let both = format!(
            "BEGIN; SELECT wakeline.push('q', '1', 'p', 'm{number}');
             SELECT wakeline.push('new{number}', '1', 'p', 'n'); COMMIT"
        );
        run(&client, &both).await;
        for (pop, expected) in waiting
            .into_iter()
            .zip([format!("m{number}"), "n".to_owned()])
        {
            let (claim, woken_by) = answer(pop).await;
            assert_eq!(names(claim.claim()), [expected]);
            // A check that was under way at the commit finds it by itself.
            assert!(
                matches!(woken_by, None | Some(Cause::Fallback)),
                "{woken_by:?}"
            );
        }
    }
}

/// Nothing fails and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_pushes_by_sql_and_by_the_store_keep_their_order() {
    const APPLICATIONS: usize = 4;
    const NODES: usize = 2;
    const ROUNDS: usize = 15;
    const PARTITIONS: [&str; 3] = ["p0", "p1", "p2"];
    let store = TestStore::postgres().await;
    let start = Arc::new(Barrier::new(APPLICATIONS + NODES));
    let mut tasks = JoinSet::new();
    for number in 0..APPLICATIONS + NODES {
        let start = start.clone();
        let mut partitions = PARTITIONS.to_vec();
        partitions.rotate_left(number % PARTITIONS.len());
        if number < APPLICATIONS {
            let client = application(&store).await;
            tasks.spawn(async move {
                start.wait().await;
                for round in 0..ROUNDS {
                    let push =
                        |p| format!("SELECT wakeline.push('q', '1', '{p}', '{number} {round}');");
                    let pushes: String = partitions.iter().map(push).collect();
                    run(&client, &format!("BEGIN; {pushes} COMMIT")).await;
                }
            });
        } else {
            let store = store.another_node().await;
            tasks.spawn(async move {
                start.wait().await;
                for round in 0..ROUNDS {
                    let name = format!("{number} {round}");
                    let sent = partitions.iter().map(|p| message("q", p, &name));
                    push_all(&*store, sent.collect()).await;
                }
            });
        }
    }
    finished(tasks).await;
    for partition in PARTITIONS {
        let request = from("q").partition(partition).batch(1_000);
        let claimed = request.claim(&*store).await;
        let mut by_pusher: HashMap<String, Vec<usize>> = HashMap::new();
        for name in names(&claimed) {
            let (pusher, round) = name.split_once(' ').unwrap();
            let rounds = by_pusher.entry(pusher.to_owned()).or_default();
            rounds.push(round.parse().unwrap());
        }
        assert_eq!(by_pusher.len(), APPLICATIONS + NODES);
        for rounds in by_pusher.values() {
            assert_eq!(*rounds, (0..ROUNDS).collect::<Vec<_>>());
        }
    }
    store.saw_no_deadlock().await;
}
