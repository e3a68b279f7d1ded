//! Redis goes away and comes back; the store is elsewhere and stays.

use std::time::Duration;

use wakeline_bus::{BusMode, Intervals};
use wakeline_testbed::Redis;
use wakeline_wake::{Cause, Wake};

use crate::{
    node::{Node, ONLY_ON_REQUEST, until, woken},
    stores::{MemoryItems, MemoryRecheck, topic},
};

#[tokio::test]
async fn both_nodes_are_live_again_after_a_restart_and_a_wake_sent_meanwhile_arrives() {
    let mut redis = Redis::start().unwrap();
    let items = MemoryItems::default();
    let start = || Node::on_redis(&redis.url(), MemoryRecheck::of(&items), ONLY_ON_REQUEST).live();
    let (here, there) = (start().await, start().await);
    let mut during = there.waits_for("during");
    let mut after = there.waits_for("after");

    redis.stop().unwrap();
    here.until_mode(BusMode::Polling).await;
    there.until_mode(BusMode::Polling).await;
    items.put("during");
    here.bus.wake(&[Wake::count([topic("during")], 1)]);
    redis.start_again().unwrap();

    assert_eq!(woken(&mut during).await, Cause::Fallback);
    here.until_mode(BusMode::Live).await;
    there.until_mode(BusMode::Live).await;
    // The wakes that could not be sent are sent first, as "recheck the whole door", together with
    // those that come meanwhile.
    here.bus.flush(Duration::from_secs(40)).await;
    here.bus.wake(&[Wake::count([topic("after")], 1)]);
    assert_eq!(woken(&mut after).await, Cause::Notify);
}

#[tokio::test]
async fn items_that_became_ready_during_an_outage_of_redis_are_found_after_it() {
    let mut redis = Redis::start().unwrap();
    let store = MemoryRecheck::default();
    let node = Node::on_redis(&redis.url(), store.clone(), ONLY_ON_REQUEST);
    let node = node.live().await;
    let mut waiter = node.waits_for("orders");
    redis.stop().unwrap();
    until("a recheck that comes too early", async || {
        store.rechecks() == 1
    })
    .await;
    // Written by a node that died before it could send a wake.
    store.items.put("orders");
    redis.start_again().unwrap();
    assert_eq!(woken(&mut waiter).await, Cause::Fallback);
}

#[tokio::test]
async fn while_redis_is_down_the_waiters_are_served_at_the_short_interval() {
    let mut redis = Redis::start().unwrap();
    let store = MemoryRecheck::default();
    let every = Intervals {
        degraded: Duration::from_millis(50),
        ..ONLY_ON_REQUEST
    };
    let node = Node::on_redis(&redis.url(), store.clone(), every);
    let node = node.live().await;
    redis.stop().unwrap();
    node.until_mode(BusMode::Polling).await;
    for name in ["first", "second", "third"] {
        let mut waiter = node.waits_for(name);
        store.items.put(name);
        assert_eq!(woken(&mut waiter).await, Cause::Fallback);
    }
    assert_eq!(node.bus.mode(), BusMode::Polling);
}

#[tokio::test]
async fn a_node_that_starts_before_redis_is_live_once_redis_is_up() {
    let mut redis = Redis::start().unwrap();
    redis.stop().unwrap();
    let node = Node::on_redis(&redis.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    assert_eq!(node.bus.mode(), BusMode::Polling);
    redis.start_again().unwrap();
    node.until_mode(BusMode::Live).await;
}
