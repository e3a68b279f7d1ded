//! The canary notices a line that carries nothing, and one that carries again.

use std::time::Duration;

use wakeline_bus::{BusMode, Intervals};
use wakeline_wake::{Cause, Wake};

use crate::{
    node::{Node, ONLY_WHEN_THE_BUS_ASKS, until, woken},
    server::{Frozen, LISTENS, SENDS, Server},
    shelf::{Asking, Shelf, topic},
    stranger::Stranger,
};

const SHORT: Intervals = Intervals {
    degraded: Duration::from_millis(50),
    ..ONLY_WHEN_THE_BUS_ASKS
};

#[tokio::test]
async fn while_the_canary_is_missing_the_store_is_asked_at_the_short_interval_and_no_longer() {
    let server = Server::start();
    let asking = Asking::default();
    let node = Node::on_postgres(&server.url(), asking.clone(), SHORT);
    let node = node.live().await;
    let listener = server.only_backend(LISTENS);
    let mut stranger = Stranger::listens(&server.url()).await;
    let _waiter = node.waits_for("orders");

    // And no other line in its place.
    server.allow_connections(false);
    let frozen = Frozen::process(listener);
    node.until_rung(BusMode::Polling).await;
    let before = asking.rechecks();
    until("many questions", async || asking.rechecks() >= before + 20).await;
    drop(frozen);
    server.allow_connections(true);

    node.until_rung(BusMode::Live).await;
    stranger.skip();
    stranger.canaries(2).await;
    let settled = asking.rechecks();
    stranger.canaries(5).await;
    assert_eq!(
        asking.rechecks(),
        settled,
        "the store is asked while the bus is live"
    );
}

#[tokio::test]
async fn a_missing_canary_does_not_make_the_store_be_asked_more_often_than_said() {
    let server = Server::start();
    let asking = Asking::default();
    let node = Node::on_postgres(&server.url(), asking.clone(), ONLY_WHEN_THE_BUS_ASKS);
    let node = node.live().await;
    let listener = server.only_backend(LISTENS);
    let mut stranger = Stranger::listens(&server.url()).await;
    let _waiter = node.waits_for("orders");
    server.allow_connections(false);
    let _frozen = Frozen::process(listener);
    node.until_rung(BusMode::Polling).await;
    stranger.skip();
    stranger.canaries(5).await;
    assert_eq!(asking.rechecks(), 1, "once, when the canary went missing");
}

#[tokio::test]
async fn a_send_that_hangs_is_noticed_and_given_up() {
    let server = Server::start();
    let shelf = Shelf::default();
    let here = Node::on_postgres(&server.url(), Asking::of(&shelf), SHORT);
    let here = here.live().await;
    let sender = server.only_backend(SENDS);
    let there = Node::on_postgres(&server.url(), Asking::of(&shelf), ONLY_WHEN_THE_BUS_ASKS);
    let there = there.live().await;
    let mut own = here.waits_for("own");
    let mut other = there.waits_for("other");

    let _frozen = Frozen::process(sender);
    here.bus.publish(&[Wake::count([topic("other")], 1)]);
    here.until_rung(BusMode::Polling).await;
    shelf.put("own");
    assert_eq!(woken(&mut own).await, Cause::Fallback);
    // What hung becomes "everything of the door" on another connection.
    shelf.put("other");
    assert_eq!(woken(&mut other).await, Cause::Fallback);
    here.until_rung(BusMode::Live).await;
}
