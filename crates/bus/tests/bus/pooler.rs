//! PgBouncer in front of PostgreSQL: transaction mode breaks `LISTEN`, session mode does not.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use wakeline_bus::{BusMode, Intervals};
use wakeline_testbed::Pgbouncer;
use wakeline_wake::{Cause, Wake};

use crate::{
    node::{Node, ONLY_ON_REQUEST, until, woken},
    server::{DATABASE, Server},
    stores::{MemoryItems, MemoryRecheck, topic},
};

#[tokio::test]
async fn in_transaction_mode_the_bus_warns_and_waiters_are_served_at_the_short_interval() {
    let log = Log::capture();
    let server = Server::start();
    let pooler = Pgbouncer::start(&format!("127.0.0.1:{}", server.0.port()), "transaction");
    let pooler = pooler.unwrap();
    let items = MemoryItems::default();
    let every = Intervals {
        degraded: Duration::from_millis(50),
        ..ONLY_ON_REQUEST
    };
    let store = MemoryRecheck::of(&items);
    let url = pooler.url_for(DATABASE);
    let here = Node::on_postgres(&url, MemoryRecheck::of(&items), every);
    let there = Node::on_postgres(&url, store.clone(), every);
    until("a warning", async || {
        log.says("WARN") && log.says("PgBouncer")
    })
    .await;
    assert!(here.bus.status().connects >= 1, "the canary found out");
    for name in ["first", "second", "third"] {
        let mut waiter = there.waits_for(name);
        items.put(name);
        here.bus.wake(&[Wake::count([topic(name)], 1)]);
        assert_eq!(woken(&mut waiter).await, Cause::Fallback);
    }
    let rechecks = store.rechecks();
    let _waiter = there.waits_for("fourth");
    until("many rechecks", async || store.rechecks() >= rechecks + 30).await;
    assert_eq!([here.bus.mode(), there.bus.mode()], [BusMode::Polling; 2]);
}

#[tokio::test]
async fn in_session_mode_the_bus_is_live() {
    let server = Server::start();
    let pooler = Pgbouncer::start(&format!("127.0.0.1:{}", server.0.port()), "session");
    let pooler = pooler.unwrap();
    let url = pooler.url_for(DATABASE);
    let start = || Node::on_postgres(&url, MemoryRecheck::default(), ONLY_ON_REQUEST).live();
    let (here, there) = (start().await, start().await);
    let mut waiter = there.waits_for("orders");
    here.bus.wake(&[Wake::count([topic("orders")], 1)]);
    assert_eq!(woken(&mut waiter).await, Cause::Notify);
}

/// The log of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    fn says(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.0.lock().unwrap()).contains(text)
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
