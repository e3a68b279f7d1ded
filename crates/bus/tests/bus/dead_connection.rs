//! A connection can die without being closed: a machine that vanished, a firewall that forgot.

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use wakeline_bus::BusMode;
use wakeline_testbed::Redis;

use crate::{
    node::{Node, ONLY_ON_REQUEST, until},
    server::{DATABASE, Server},
    stores::MemoryRecheck,
};

/// A relay to a server that can stop carrying bytes without closing a connection.
struct Relay {
    port: u16,
    cut: Arc<watch::Sender<()>>,
}

impl Relay {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(watch::Sender::new(()));
        let cuts = cut.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => return,
                        _ = cut.changed() => {}
                    }
                    // Both ends stay open, and nothing is read or written any more.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self { port, cut }
    }

    /// New connections work.
    fn silence(&self) {
        self.cut.send_replace(());
    }
}

async fn is_replaced(node: &Node, relay: &Relay) {
    node.until_mode(BusMode::Live).await;
    relay.silence();
    node.until_mode(BusMode::Polling).await;
    node.until_mode(BusMode::Live).await;
    until("a new connection", async || node.bus.status().connects >= 2).await;
}

#[tokio::test]
async fn a_silent_connection_to_redis_is_replaced() {
    let redis = Redis::start().unwrap();
    let relay = Relay::to(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", relay.port);
    let node = Node::on_redis(&url, MemoryRecheck::default(), ONLY_ON_REQUEST);
    is_replaced(&node, &relay).await;
}

#[tokio::test]
async fn a_silent_connection_to_postgres_is_replaced() {
    let server = Server::start();
    let relay = Relay::to(server.0.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/{DATABASE}", relay.port);
    let node = Node::on_postgres(&url, MemoryRecheck::default(), ONLY_ON_REQUEST);
    is_replaced(&node, &relay).await;
}
