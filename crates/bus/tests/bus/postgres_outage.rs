//! PostgreSQL goes away and comes back, under the bus and under the store.

use std::time::Duration;

use wakeline_bus::{BusMode, Intervals};
use wakeline_wake::{Cause, Wake};

use crate::{
    node::{Node, ONLY_ON_REQUEST, until, woken},
    server::Server,
    stores::{MemoryItems, MemoryRecheck, TableRecheck, topic},
};

#[tokio::test]
async fn a_wake_lost_in_the_crash_of_its_node_is_found_after_a_restart() {
    let mut server = Server::start();
    let table = TableRecheck::create(&server.url()).await;
    // The store may come back later than the bus: a failed recheck is repeated.
    let every = Intervals {
        degraded: Duration::from_millis(50),
        ..ONLY_ON_REQUEST
    };
    let node = Node::on_postgres(&server.url(), table.clone(), every);
    let node = node.live().await;
    let mut waiter = node.waits_for("orders");
    // The write is committed, and no waiter is woken.
    table.put("orders").await;
    server.0.stop().unwrap();
    until("a recheck that fails", async || table.rechecks() > 0).await;
    server.0.start_again().unwrap();
    assert_eq!(woken(&mut waiter).await, Cause::Fallback);
    node.until_mode(BusMode::Live).await;
}

#[tokio::test]
async fn both_nodes_are_live_again_after_a_stop_and_a_wake_sent_meanwhile_arrives() {
    away_and_back(wakeline_testbed::Postgres::stop).await;
}

#[tokio::test]
async fn both_nodes_are_live_again_after_a_crash_and_a_wake_sent_meanwhile_arrives() {
    away_and_back(wakeline_testbed::Postgres::crash).await;
}

async fn away_and_back(end: fn(&mut wakeline_testbed::Postgres) -> anyhow::Result<()>) {
    let mut server = Server::start();
    let items = MemoryItems::default();
    let start =
        || Node::on_postgres(&server.url(), MemoryRecheck::of(&items), ONLY_ON_REQUEST).live();
    let (here, there) = (start().await, start().await);
    let mut unsent = there.waits_for("unsent");
    let mut during = there.waits_for("during");
    let mut after = there.waits_for("after");

    end(&mut server.0).unwrap();
    here.until_mode(BusMode::Polling).await;
    there.until_mode(BusMode::Polling).await;
    items.put("unsent");
    items.put("during");
    here.bus.wake(&[Wake::count([topic("during")], 1)]);
    server.0.start_again().unwrap();

    assert_eq!(woken(&mut unsent).await, Cause::Fallback);
    // Woken by the message itself, if the bus first tries to send it when the server is back.
    woken(&mut during).await;
    here.until_mode(BusMode::Live).await;
    there.until_mode(BusMode::Live).await;
    // The wakes that could not be sent are sent first, as "recheck the whole door", together with
    // those that come meanwhile.
    here.bus.flush(Duration::from_secs(40)).await;
    here.bus.wake(&[Wake::count([topic("after")], 1)]);
    assert_eq!(woken(&mut after).await, Cause::Notify);
}
