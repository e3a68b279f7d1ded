//! PostgreSQL goes away and comes back: streams wait, and lose nothing. And nodes on another bus.

use wakeline_bus::{Bus, Options};
use wakeline_feed::topic;
use wakeline_testbed::{Postgres, Redis};
use wakeline_testkit::{eventually, soon};
use wakeline_wake::Wake;

use crate::{
    client::request,
    database::Database,
    facts::{POSTS, as_graph, post, posts, references, site},
    node::{Node, settings},
    stream_fixture::received,
};

const GRAPH: (&str, &str) = ("Content-Type", "application/x-jinaga-graph-v1");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_stream_goes_on_after_an_outage() {
    let mut server = Postgres::start().unwrap();
    {
        let database = Database::on_server(&server.url()).await;
        let node = Node::new(&database).await;
        let home = site("home");
        node.save(std::slice::from_ref(&home)).await;
        let path = node.declare(POSTS, &[&home]).await;
        let mut stream = node.stream(&path).await;
        stream.until_sync().await;
        server.crash().unwrap();
        // Whoever reads what is saved reads in vain.
        node.bus.publish(&[Wake::all(topic::log())]);
        // Of what is saved meanwhile nothing is told, whatever the answer is.
        let lost = as_graph(&[home.clone(), post(&home, "lost")]);
        let answer = request(node.address, "POST /jinaga/save", &[GRAPH], &lost).await;
        assert_eq!(answer.head.status, 503, "{answer:?}");
        server.start_again().unwrap();
        let new = post(&home, "new");
        let graph = as_graph(&[home.clone(), new.clone()]);
        eventually("a save", async || {
            let answer = request(node.address, "POST /jinaga/save", &[GRAPH], &graph).await;
            answer.head.status == 201
        })
        .await;
        assert_eq!(received(&stream.until(1).await), references(&[new]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_goes_on_after_an_outage() {
    let mut server = Postgres::start().unwrap();
    {
        let database = Database::on_server(&server.url()).await;
        let paged = wakeline_feed::service::Settings {
            page_size: 10,
            ..settings()
        };
        let node = Node::with(&database, paged).await;
        let home = site("home");
        let all = posts(&home, "post", 35);
        node.save(&[vec![home.clone()], all.clone()].concat()).await;
        let path = node.declare(POSTS, &[&home]).await;
        node.store.hold_up(1);
        let mut stream = node.stream(&path).await;
        let mut frames = vec![stream.next().await.unwrap()];
        soon("a page", node.store.is_held_up()).await;
        server.crash().unwrap();
        let request_text = node.store.delta_pages();
        node.store.let_go();
        frames.push(stream.next().await.unwrap());
        eventually("pages in vain", async || {
            node.store.delta_pages() > request_text + 1
        })
        .await;
        server.start_again().unwrap();
        frames.extend(stream.until_sync().await);
        assert_eq!(received(&frames), references(&all));
    }
}

/// The bus goes with the database: what another node saves afterwards is heard of all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_hears_another_node_after_an_outage_of_both() {
    let mut server = Postgres::start().unwrap();
    {
        let database = Database::on_server(&server.url()).await;
        let nodes = Node::several(&database, 2).await;
        let home = site("home");
        nodes[0].save(std::slice::from_ref(&home)).await;
        let path = nodes[0].declare(POSTS, &[&home]).await;
        let mut stream = nodes[1].stream(&path).await;
        stream.until_sync().await;
        let before = post(&home, "before");
        nodes[0].add(&before).await;
        assert_eq!(received(&stream.until_sync().await), references(&[before]));
        server.crash().unwrap();
        nodes[1].bus.publish(&[Wake::all(topic::log())]);
        server.start_again().unwrap();
        let new = post(&home, "new");
        let graph = as_graph(&[home.clone(), new.clone()]);
        eventually("a save", async || {
            let address = nodes[0].address;
            let answer = request(address, "POST /jinaga/save", &[GRAPH], &graph).await;
            answer.head.status == 201
        })
        .await;
        assert_eq!(received(&stream.until(1).await), references(&[new]));
        stream.until_sync().await;
        // That one was found by whoever tried to read in vain. Now nobody tries: this one is told.
        let later = post(&home, "later");
        nodes[0].add(&later).await;
        assert_eq!(received(&stream.until(1).await), references(&[later]));
    }
}

/// Facts in PostgreSQL, wakes over Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_hear_one_another_over_redis() {
    let redis = Redis::start().unwrap();
    let server = Postgres::start().unwrap();
    let database = Database::on_server(&server.url()).await;
    let bus = |engine| Bus::redis(engine, &redis.url(), &Options::default()).unwrap();
    let nodes = Node::over(&database, 2, bus).await;
    let home = site("home");
    nodes[0].save(std::slice::from_ref(&home)).await;
    let path = nodes[0].declare(POSTS, &[&home]).await;
    let mut streams = [nodes[0].stream(&path).await, nodes[1].stream(&path).await];
    for stream in &mut streams {
        stream.until_sync().await;
    }
    for (saver, name) in nodes.iter().zip(["one", "two"]) {
        let new = post(&home, name);
        saver.add(&new).await;
        for stream in &mut streams {
            let frames = stream.until_sync().await;
            assert_eq!(received(&frames), references(std::slice::from_ref(&new)));
        }
    }
}
