//! A line can die without a word: a machine that vanished, a firewall that forgot. Then nothing
//! is closed, and nothing arrives.

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use wakeline_bus::BusMode;
use wakeline_testbed::Redis;

use crate::{
    node::{Node, ONLY_WHEN_THE_BUS_ASKS, until},
    server::{DATABASE, Server},
    shelf::Asking,
};

/// A way to a server on which every connection can be made to carry nothing more.
struct Way {
    port: u16,
    cut: Arc<watch::Sender<()>>,
}

impl Way {
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

async fn is_replaced(node: &Node, way: &Way) {
    node.until_rung(BusMode::Live).await;
    way.silence();
    node.until_rung(BusMode::Polling).await;
    node.until_rung(BusMode::Live).await;
    until("a new line", async || node.bus.status().connects >= 2).await;
}

#[tokio::test]
async fn a_silent_line_to_redis_is_replaced() {
    let redis = Redis::start().unwrap();
    let way = Way::to(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", way.port);
    let node = Node::on_redis(&url, Asking::default(), ONLY_WHEN_THE_BUS_ASKS);
    is_replaced(&node, &way).await;
}

#[tokio::test]
async fn a_silent_line_to_postgres_is_replaced() {
    let server = Server::start();
    let way = Way::to(server.0.port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/{DATABASE}", way.port);
    let node = Node::on_postgres(&url, Asking::default(), ONLY_WHEN_THE_BUS_ASKS);
    is_replaced(&node, &way).await;
}
