//! PostgreSQL crashes and starts again: streams wait, and lose nothing. And nodes on another bus.

use wakeline_bus::{Bus, Options};
use wakeline_feed::{fact::Fact, service::Settings, store::postgres, topic};
use wakeline_testbed::{Postgres, Redis};
use wakeline_testkit::{TestDatabase, eventually, soon};
use wakeline_wake::Wake;

use crate::{
    blog::{as_graph, post, references},
    database::Database,
    node::{Blog, GRAPH, Node, settings},
    stream_fixture::received,
};

async fn on_server(server: &Postgres) -> Database {
    Database(TestDatabase::on_server(&server.url(), postgres::MIGRATIONS).await)
}

/// Saves a post, as soon as the database answers again.
async fn save_after_outage(node: &Node, home: &Fact, post: &Fact) {
    let graph = as_graph(&[home.clone(), post.clone()]);
    eventually("a save", async || {
        let answer = node.post("", "/jinaga/save", GRAPH, &graph).await;
        answer.head.status == 201
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_stream_goes_on_after_an_outage() {
    let mut server = Postgres::start().unwrap();
    let database = on_server(&server).await;
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    server.crash().unwrap();
    // The follower reads the log in vain.
    node.bus.wake(&[Wake::all(topic::log())]);
    // A save that fails meanwhile wakes no stream.
    let lost = as_graph(&[home.clone(), post(&home, "lost")]);
    let answer = node.post("", "/jinaga/save", GRAPH, &lost).await;
    assert_eq!(answer.head.status, 503, "{answer:?}");
    server.start_again().unwrap();
    let new = post(&home, "new");
    save_after_outage(&node, &home, &new).await;
    assert_eq!(received(&stream.until(1).await), references(&[new]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_goes_on_after_an_outage() {
    let mut server = Postgres::start().unwrap();
    let database = on_server(&server).await;
    let paged = Settings {
        page_size: 10,
        ..settings()
    };
    let node = Node::with(&database, paged).await;
    let Blog { posts, path, .. } = node.blog(35).await;
    node.store.hold_up(1);
    let mut stream = node.stream(&path).await;
    let mut frames = vec![stream.next().await.unwrap()];
    soon("a page", node.store.is_held_up()).await;
    server.crash().unwrap();
    let before = node.store.delta_pages();
    node.store.let_go();
    frames.push(stream.next().await.unwrap());
    eventually("reads that fail", async || {
        node.store.delta_pages() > before + 1
    })
    .await;
    server.start_again().unwrap();
    frames.extend(stream.until_sync().await);
    assert_eq!(received(&frames), references(&posts));
}

/// The bus goes with the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_follows_another_node_after_an_outage_of_both() {
    let mut server = Postgres::start().unwrap();
    let database = on_server(&server).await;
    let nodes = Node::several(&database, 2).await;
    let Blog { home, path, .. } = nodes[0].blog(0).await;
    let mut stream = nodes[1].live(&path).await;
    let before = post(&home, "before");
    nodes[0].add(&before).await;
    assert_eq!(received(&stream.until_sync().await), references(&[before]));
    server.crash().unwrap();
    nodes[1].bus.wake(&[Wake::all(topic::log())]);
    server.start_again().unwrap();
    let new = post(&home, "new");
    save_after_outage(&nodes[0], &home, &new).await;
    assert_eq!(received(&stream.until(1).await), references(&[new]));
    stream.until_sync().await;
    // The follower that read in vain has found that one. This one needs a wake.
    let later = post(&home, "later");
    nodes[0].add(&later).await;
    assert_eq!(received(&stream.until(1).await), references(&[later]));
}

/// Facts in PostgreSQL, wakes over Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_wake_each_other_over_redis() {
    let redis = Redis::start().unwrap();
    let server = Postgres::start().unwrap();
    let database = on_server(&server).await;
    let bus = |engine| Bus::redis(engine, &redis.url(), &Options::default()).unwrap();
    let nodes = Node::over(&database, 2, bus).await;
    let Blog { home, path, .. } = nodes[0].blog(0).await;
    let mut streams = [nodes[0].live(&path).await, nodes[1].live(&path).await];
    for (saver, name) in nodes.iter().zip(["one", "two"]) {
        let new = post(&home, name);
        saver.add(&new).await;
        for stream in &mut streams {
            let frames = stream.until_sync().await;
            assert_eq!(received(&frames), references(std::slice::from_ref(&new)));
        }
    }
}
