//! A wake of one node reaches the waiters of the other node unchanged, and once.

use wakeline_testbed::Redis;
use wakeline_wake::{Cause, WaitGroup, Waiter, Wake, WakeResult};

use crate::{
    node::{Node, ONLY_ON_REQUEST, has_wake, woken},
    server::Server,
    stores::{MemoryRecheck, topic},
};

/// Each statement, over PostgreSQL and over Redis.
macro_rules! over_both {
    ($($statement:ident),* $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $statement() {
                let server = super::Server::start();
                let start = || super::Node::on_postgres(
                    &server.url(), super::MemoryRecheck::default(), super::ONLY_ON_REQUEST);
                super::$statement(&start().live().await, &start().live().await).await;
            })*
        }
        mod redis {
            $(#[tokio::test]
            async fn $statement() {
                let server = super::Redis::start().unwrap();
                let start = || super::Node::on_redis(
                    &server.url(), super::MemoryRecheck::default(), super::ONLY_ON_REQUEST);
                super::$statement(&start().live().await, &start().live().await).await;
            })*
        }
    };
}

over_both!(
    the_longest_waiter_of_the_other_node_is_woken,
    as_many_waiters_are_woken_as_items_arrived,
    a_wake_of_one_wait_group_wakes_no_other_group,
    a_wake_of_all_wakes_every_waiter_and_a_chain_continues,
    a_node_does_not_receive_its_own_wakes,
);

async fn the_longest_waiter_of_the_other_node_is_woken(here: &Node, there: &Node) {
    let mut first = there.waits_for("orders");
    let mut second = there.waits_for("orders");
    let mut elsewhere = there.waits_for("invoices");
    here.bus.wake(&[Wake::count([topic("orders")], 1)]);
    assert_eq!(woken(&mut first).await, Cause::Notify);
    here.received_by(there).await;
    assert!(!has_wake(&mut second) && !has_wake(&mut elsewhere));
    assert!(!has_wake(&mut first), "the same wake, a second time");
}

async fn as_many_waiters_are_woken_as_items_arrived(here: &Node, there: &Node) {
    let mut waiters: Vec<Waiter> = (0..5).map(|_| there.waits_for("orders")).collect();
    here.bus.wake(&[Wake::count([topic("orders")], 3)]);
    for waiter in &mut waiters[..3] {
        assert_eq!(woken(waiter).await, Cause::Notify);
    }
    here.received_by(there).await;
    assert!(!waiters.iter_mut().any(has_wake));
}

async fn a_wake_of_one_wait_group_wakes_no_other_group(here: &Node, there: &Node) {
    let [mail, audit] = ["mail \"1\"", "audit"].map(WaitGroup::new);
    let mut first_mail = there.waits_in_group("orders", &mail);
    let mut second_mail = there.waits_in_group("orders", &mail);
    let mut first_audit = there.waits_in_group("orders", &audit);
    let one = || Wake::count([topic("orders")], 1);
    here.bus.wake(&[one().in_group(mail)]);
    assert_eq!(woken(&mut first_mail).await, Cause::Notify);
    here.received_by(there).await;
    assert!(!has_wake(&mut second_mail) && !has_wake(&mut first_audit));

    first_mail.complete(WakeResult::Found);
    drop(first_mail);
    here.bus.wake(&[one()]);
    assert_eq!(woken(&mut second_mail).await, Cause::Notify);
    assert_eq!(woken(&mut first_audit).await, Cause::Notify);
}

async fn a_wake_of_all_wakes_every_waiter_and_a_chain_continues(here: &Node, there: &Node) {
    let mut readers = [there.waits_for("result"), there.waits_for("result")];
    here.bus.wake(&[Wake::all(topic("result"))]);
    for reader in &mut readers {
        assert_eq!(woken(reader).await, Cause::Notify);
    }
    let mut first = there.waits_for("timers");
    let mut second = there.waits_for("timers");
    here.bus.wake(&[Wake::chain(topic("timers"))]);
    assert_eq!(woken(&mut first).await, Cause::Notify);
    here.received_by(there).await;
    assert!(!has_wake(&mut second));
    first.complete(WakeResult::Found);
    drop(first);
    assert!(has_wake(&mut second), "the chain goes on there");
}

async fn a_node_does_not_receive_its_own_wakes(here: &Node, there: &Node) {
    let mut own = [here.waits_for("orders"), here.waits_for("orders")];
    let mut other = there.waits_for("orders");
    here.bus.wake(&[Wake::count([topic("orders")], 1)]);
    assert!(
        has_wake(&mut own[0]),
        "its own waiters do not wait for the bus"
    );
    woken(&mut other).await;
    // A message of the other node that comes now was sent after the own one, on the same channel.
    there.received_by(here).await;
    assert!(!own.iter_mut().any(has_wake));
}
