//! While nothing happens, the bus runs no statement but its canary.

use crate::{
    node::{CANARY, Node, ONLY_ON_REQUEST, until},
    server::{DATABASE, Server},
    stores::MemoryRecheck,
};

/// A canary is one transaction of the sending connection and one of the listening connection.
const TRANSACTIONS_PER_CANARY: u64 = 3;

#[tokio::test]
async fn an_idle_bus_with_a_thousand_waiters_sends_only_its_canary() {
    let server = Server::start();
    let store = MemoryRecheck::default();
    let node = Node::on_postgres(&server.url(), store.clone(), ONLY_ON_REQUEST);
    let node = node.live().await;
    let _waiters: Vec<_> = (0..1_000).map(|n| node.waits_for(&n.to_string())).collect();
    // The database's own count is written about once a second: measured between two writes.
    let transactions = || -> u64 {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname";
        server
            .run_sql(&format!("{sql} = '{DATABASE}'"))
            .parse()
            .unwrap()
    };
    let start = transactions();
    until("a first count", async || transactions() > start).await;
    let (first, began) = (transactions(), tokio::time::Instant::now());
    until("some seconds' count", async || {
        began.elapsed() > 5 * CANARY && transactions() > first
    })
    .await;
    let counted = transactions() - first;
    let canaries = u64::try_from(began.elapsed().as_millis() / CANARY.as_millis()).unwrap();
    assert!(
        counted <= (canaries + 5) * TRANSACTIONS_PER_CANARY,
        "{counted} transactions during {canaries} canaries"
    );
    assert_eq!(store.rechecks(), 0);
}
