//! Many wakes become few messages, and no message is longer than PostgreSQL takes.

use std::collections::HashSet;

use wakeline_wake::{Cause, Wake};

use crate::{
    channel::ChannelReader,
    node::{Node, ONLY_ON_REQUEST, woken},
    server::Server,
    stores::{MemoryRecheck, topic},
};

/// PostgreSQL refuses 8,000 bytes and more.
const LONGEST_PAYLOAD: usize = 7_999;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_on_one_topic_is_sent_as_few_messages_with_the_same_sum() {
    let server = Server::start();
    let node = Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let node = node.live().await;
    let mut channel = ChannelReader::listen(&server.url()).await;
    for _ in 0..10_000 {
        node.bus.wake(&[Wake::count([topic("orders")], 1)]);
    }
    let (mut messages, mut sum) = (0, 0);
    while sum < 10_000 {
        let (_, message) = channel.message().await;
        messages += 1;
        for wake in message["wakes"].as_array().expect("no door is given up") {
            assert_eq!(wake["t"][0], topic("orders").encoded());
            sum += wake["m"].as_u64().unwrap();
        }
    }
    assert_eq!(sum, 10_000);
    assert!(messages < 1_000, "{messages} messages for one topic");
}

#[tokio::test]
async fn topics_are_listed_in_messages_that_fit_and_a_too_long_one_makes_the_door_recheck() {
    let server = Server::start();
    let here = Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let here = here.live().await;
    let store = MemoryRecheck::default();
    let there = Node::on_postgres(&server.url(), store.clone(), ONLY_ON_REQUEST);
    let there = there.live().await;
    let mut channel = ChannelReader::listen(&server.url()).await;
    let too_long = "x".repeat(9_000);
    let mut listed = there.waits_for(&name(700));
    let mut unlisted = there.waits_for(&too_long);
    store.items.put(&too_long);

    let names: Vec<String> = (0..1_000).map(name).collect();
    let every = names.iter().chain([&too_long]);
    let wakes: Vec<Wake> = every.map(|name| Wake::count([topic(name)], 1)).collect();
    here.bus.wake(&wakes);

    let mut heard = HashSet::new();
    let mut doors = Vec::new();
    while doors.is_empty() {
        let (text, message) = channel.message().await;
        assert!(text.len() <= LONGEST_PAYLOAD, "{} bytes", text.len());
        for wake in message["wakes"].as_array().into_iter().flatten() {
            heard.insert(wake["t"][0].as_str().unwrap().to_owned());
        }
        doors.extend(message["doors"].as_array().into_iter().flatten().cloned());
    }
    assert_eq!(doors, ["queue"]);
    let sent = names.iter().map(|name| topic(name).encoded().to_owned());
    assert_eq!(heard, sent.collect());
    assert_eq!(woken(&mut listed).await, Cause::Notify);
    assert_eq!(woken(&mut unlisted).await, Cause::Fallback);
}

/// Signs that take six bytes each in JSON.
fn name(number: usize) -> String {
    format!("{number} {}", "\u{1}".repeat(10))
}

#[tokio::test]
async fn more_topics_than_are_worth_listing_make_the_door_recheck() {
    let server = Server::start();
    let here = Node::on_postgres(&server.url(), MemoryRecheck::default(), ONLY_ON_REQUEST);
    let here = here.live().await;
    let store = MemoryRecheck::default();
    let there = Node::on_postgres(&server.url(), store.clone(), ONLY_ON_REQUEST);
    let there = there.live().await;
    let mut channel = ChannelReader::listen(&server.url()).await;
    let mut waiter = there.waits_for("19999");
    store.items.put("19999");
    let wakes: Vec<Wake> = (0..20_000)
        .map(|n| Wake::count([topic(&n.to_string())], 1))
        .collect();
    here.bus.wake(&wakes);
    assert_eq!(woken(&mut waiter).await, Cause::Fallback);
    let (text, message) = channel.message().await;
    assert!(text.len() <= LONGEST_PAYLOAD);
    assert_eq!(message["doors"][0], "queue");
    assert!(message["wakes"].is_null(), "one short message is enough");
}
