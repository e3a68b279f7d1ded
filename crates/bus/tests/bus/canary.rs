//! The canary finds out that the bus carries nothing, and that it carries again.

use std::time::Duration;

use wakeline_bus::{BusMode, Intervals};
use wakeline_wake::{Cause, Wake};

use crate::{
    channel::ChannelReader,
    node::{Node, ONLY_ON_REQUEST, until, woken},
    server::{FrozenProcess, LISTENS, SENDS, Server},
    stores::{MemoryItems, MemoryRecheck, topic},
};

const SHORT: Intervals = Intervals {
    degraded: Duration::from_millis(50),
    ..ONLY_ON_REQUEST
};

#[tokio::test]
async fn while_the_canary_is_missing_the_node_rechecks_at_the_short_interval_and_no_longer() {
    let server = Server::start();
    let store = MemoryRecheck::default();
    let node = Node::on_postgres(&server.url(), store.clone(), SHORT);
    let node = node.live().await;
    let listener = server.only_backend(LISTENS);
    let mut channel = ChannelReader::listen(&server.url()).await;
    let _waiter = node.waits_for("orders");

    // And no other connection is opened in its place.
    server.allow_connections(false);
    let frozen = FrozenProcess::freeze(listener);
    node.until_mode(BusMode::Polling).await;
    let before = store.rechecks();
    until("many rechecks", async || store.rechecks() >= before + 20).await;
    drop(frozen);
    server.allow_connections(true);

    node.until_mode(BusMode::Live).await;
    channel.skip();
    channel.canaries(2).await;
    let before = store.rechecks();
    channel.canaries(5).await;
    assert_eq!(
        store.rechecks(),
        before,
        "the node rechecks while the bus is live"
    );
}

#[tokio::test]
async fn a_missing_canary_does_not_make_the_node_recheck_more_often_than_configured() {
    let server = Server::start();
    let store = MemoryRecheck::default();
    let node = Node::on_postgres(&server.url(), store.clone(), ONLY_ON_REQUEST);
    let node = node.live().await;
    let listener = server.only_backend(LISTENS);
    let mut channel = ChannelReader::listen(&server.url()).await;
    let _waiter = node.waits_for("orders");
    server.allow_connections(false);
    let _frozen = FrozenProcess::freeze(listener);
    node.until_mode(BusMode::Polling).await;
    channel.skip();
    channel.canaries(5).await;
    assert_eq!(store.rechecks(), 1, "once, when the canary went missing");
}

#[tokio::test]
async fn a_send_that_hangs_is_aborted() {
    let server = Server::start();
    let items = MemoryItems::default();
    let here = Node::on_postgres(&server.url(), MemoryRecheck::of(&items), SHORT);
    let here = here.live().await;
    let sender = server.only_backend(SENDS);
    let there = Node::on_postgres(&server.url(), MemoryRecheck::of(&items), ONLY_ON_REQUEST);
    let there = there.live().await;
    let mut own = here.waits_for("own");
    let mut other = there.waits_for("other");

    let _frozen = FrozenProcess::freeze(sender);
    here.bus.wake(&[Wake::count([topic("other")], 1)]);
    here.until_mode(BusMode::Polling).await;
    items.put("own");
    assert_eq!(woken(&mut own).await, Cause::Fallback);
    // The message that hung becomes "recheck the whole door" on another connection. If it was a
    // canary that hung, the wake waited for it and is sent unchanged.
    items.put("other");
    woken(&mut other).await;
    here.until_mode(BusMode::Live).await;
}
