//! One listening connection per process, and what happens when it is cut.

use wakeline_bus::BusMode;
use wakeline_wake::{Cause, Wake};

use crate::{
    node::{Node, ONLY_ON_REQUEST, has_wake, until, woken},
    server::{LISTENS, SENDS, Server},
    stores::{MemoryRecheck, TableRecheck, topic},
};

#[tokio::test]
async fn a_node_has_one_listening_and_one_sending_connection_however_many_topics() {
    let server = Server::start();
    let start = || Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let here = start().live().await;
    let waiters: Vec<_> = (0..500).map(|n| here.waits_for(&n.to_string())).collect();
    for n in 0..500 {
        here.bus.wake(&[Wake::all(topic(&n.to_string()))]);
    }
    let there = start().live().await;
    here.received_by(&there).await;
    assert_eq!(server.backends(LISTENS).len(), 2, "one for each node");
    assert_eq!(server.backends(SENDS).len(), 2, "one for each node");
    assert_eq!(server.backends("true").len(), 4, "and none besides");
    drop(waiters);
}

#[tokio::test]
async fn a_wake_sent_while_the_listener_was_disconnected_is_found_after_the_reconnect() {
    let server = Server::start();
    let table = TableRecheck::create(&server.url()).await;
    let there = Node::on_postgres(&server.url(), table.clone(), ONLY_ON_REQUEST);
    let there = there.live().await;
    let listener = server.only_backend(LISTENS);
    let here = Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let here = here.live().await;
    let witness = Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let witness = witness.live().await;
    let mut waiter = there.waits_for("orders");

    let answered = table.answered();
    // Open sessions stay: only the listener cannot come back.
    server.allow_connections(false);
    server.run_sql(&format!("SELECT pg_terminate_backend({listener})"));
    there.until_mode(BusMode::Polling).await;
    // The recheck that follows the cut comes too early to find anything.
    until("an answer", async || table.answered() > answered).await;
    table.put("orders").await;
    here.bus.wake(&[Wake::count([topic("orders")], 1)]);
    // The message is sent; `there`, which does not listen, has not received it.
    here.received_by(&witness).await;
    assert!(!has_wake(&mut waiter));
    server.allow_connections(true);

    assert_eq!(woken(&mut waiter).await, Cause::Fallback);
    there.until_mode(BusMode::Live).await;
    assert_eq!(there.bus.status().connects, 2);
}
