//! PostgreSQL only: applications that push in their own transactions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::Barrier, task::JoinSet};
use tokio_postgres::Client;
use wakeline_bus::{Intervals, watch};
use wakeline_queue::{ack::AckStatus, message::PushRefusal, options::Options};
use wakeline_testkit::CommitAlone;
use wakeline_wake::Cause;

use crate::{
    calls::{ack, configure, from, message, names, part, push, push_all, try_push},
    lost_wakes::nodes,
    races::finished,
    test_door::answer,
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);

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
async fn everything_of_a_message_comes_back() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    let rows = client
        .query_typed(
            r#"SELECT wakeline.push('q', '{"a":  1, "z": "\u0000"}', 'π', 't ü',
                   '00000000-0000-0000-0000-000000000005')
               UNION ALL SELECT wakeline.push('q2', NULL)"#,
            &[],
        )
        .await
        .unwrap();
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
    assert_eq!(
        (&*of.partition, &*of.messages[0].payload),
        ("Default", "null")
    );
    assert_eq!(of.messages[0].transaction_id, given[1]);
    ack(&*store, &claimed, &given[1], AckStatus::Completed).await;
    assert_eq!(from("q2").nothing(&*store).await, None);
}

#[tokio::test]
async fn the_order_is_that_of_the_commits() {
    let store = TestStore::postgres().await;
    let (slow, fast) = (application(&store).await, application(&store).await);
    run(&slow, "BEGIN; SELECT wakeline.push('q', '1', 'p', 'a')").await;
    run(&fast, "BEGIN; SELECT wakeline.push('q', '1', 'p', 'b')").await;
    assert_eq!(
        from("q").nothing(&*store).await,
        None,
        "not before the commit"
    );
    run(&slow, "SELECT wakeline.push('q', '1', 'p', 'c')").await;
    run(&fast, "COMMIT").await;
    // An open transaction blocks no other push.
    push(&*store, "q", "p", &["d"]).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["b", "d"]);
    ack(&*store, &claimed, "d", AckStatus::Completed).await;
    run(&slow, "COMMIT").await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["a", "c"]);
    let late = from("q").group("late").batch(9).claim(&*store).await;
    assert_eq!(names(&late), ["b", "d", "a", "c"]);
}

#[tokio::test]
async fn what_is_rolled_back_was_never_pushed() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    run(
        &client,
        "BEGIN; SELECT wakeline.push('q', '1', 'p', 'a'); ROLLBACK",
    )
    .await;
    assert_eq!(from("q").nothing(&*store).await, None);
    let savepoints = "BEGIN;
        SELECT wakeline.push('q', '1', 'p', 'a');
        SAVEPOINT one; SELECT wakeline.push('q', '1', 'p', 'b'); ROLLBACK TO one;
        SAVEPOINT two; SELECT wakeline.push('q', '1', 'p', 'c'); RELEASE two;
        SELECT wakeline.push('q', '1', 'p', 'd');
        COMMIT";
    run(&client, savepoints).await;
    assert_eq!(
        names(&from("q").batch(9).claim(&*store).await),
        ["a", "c", "d"]
    );
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
    let again = push_all(
        &*store,
        vec![message("q", "p", "b"), message("q", "p", "c")],
    )
    .await;
    assert_eq!((again[0].duplicate, again[1].duplicate), (true, false));
    let request = from("q").batch(9).partition("p");
    assert_eq!(names(&request.claim(&*store).await), ["a", "b", "c"]);
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}

#[tokio::test]
async fn three_hundred_of_one_transaction_come_in_order() {
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
async fn what_the_door_refuses_is_refused_here() {
    let store = TestStore::postgres().await;
    let client = application(&store).await;
    let options = Options {
        max_size: 2,
        ..Options::default()
    };
    configure(&*store, "small", options).await;
    let three = "SELECT count(wakeline.push('small', '1')) FROM generate_series(1, 3)";
    assert_eq!(refused(&client, three).await, "54000");
    run(&client, &three.replace("3)", "2)")).await;
    assert_eq!(
        refused(&client, "SELECT wakeline.push('small', '1')").await,
        "54000"
    );
    let pushed = try_push(&*store, vec![message("small", "p", "x")])
        .await
        .pushed;
    assert_eq!(pushed, [Err(PushRefusal::Full { max_size: 2 })]);

    let sealed = Options {
        is_sealed: true,
        ..Options::default()
    };
    configure(&*store, "sealed", sealed).await;
    assert_eq!(
        refused(&client, "SELECT wakeline.push('sealed', '1')").await,
        "55000"
    );
    store.set_push_paused(true).done().await;
    assert_eq!(
        refused(&client, "SELECT wakeline.push('q', '1')").await,
        "55000"
    );
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
    assert_eq!(
        refused(&client, "SELECT wakeline.push('q', '{')").await,
        "22P02"
    );
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(claimed.messages().count(), 1);
}

#[tokio::test]
async fn a_push_is_one_with_what_the_application_writes() {
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
async fn who_waits_is_woken_on_every_node() {
    let store = TestStore::postgres().await;
    let nodes = nodes(&store).await;
    let client = application(&store).await;
    run(&client, "SELECT wakeline.push('q', '1', 'p', 'first')").await;
    for (number, node) in nodes.iter().enumerate() {
        let intervals = Intervals {
            fallback: HOUR,
            degraded: HOUR,
        };
        let (bus, engine) = (node.bus().clone(), node.engine().clone());
        tokio::spawn(watch(bus, engine, vec![node.clone()], intervals));
        // A group that has caught up, and one that has seen nothing.
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
        let held = async {
            while node.engine().held() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(crate::test_door::STUCK, held)
            .await
            .unwrap();
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
            // A look that was under way when it was committed finds it by itself.
            assert!(
                matches!(woken_by, None | Some(Cause::Fallback)),
                "{woken_by:?}"
            );
        }
    }
}

/// Applications and nodes at once: nothing fails, nothing is lost, each one's order is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn across_each_other_and_across_the_door() {
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
                    let pushes: String = partitions
                        .iter()
                        .map(|p| {
                            format!("SELECT wakeline.push('q', '1', '{p}', '{number} {round}');")
                        })
                        .collect();
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
