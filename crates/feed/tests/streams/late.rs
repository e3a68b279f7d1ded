//! Transactions that commit late, on PostgreSQL: their seqs are below some that were read already.

use std::{cmp::Ordering, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio_postgres::Client;
use wakeline_feed::fact::{Fact, Reference};
use wakeline_testkit::{DatabaseKind, eventually, soon};

use crate::{
    blog::{post, references, sorted},
    client::{Frame, Stream},
    database::Database,
    node::{Blog, Node},
    stream_fixture::received,
    transactions,
};

const CLIENTS: usize = 6;
const WRITERS: usize = 3;
const ROUNDS: usize = 25;

struct LateFixture {
    database: Database,
    node: Node,
    home: Fact,
    posts: Vec<Fact>,
    path: String,
}

impl LateFixture {
    async fn new() -> Self {
        let database = Database::open(DatabaseKind::Postgres).await;
        let node = Node::new(&database).await;
        let Blog { home, posts, path } = node.blog(1).await;
        Self {
            database,
            node,
            home,
            posts,
            path,
        }
    }

    async fn hold(&self, post: &Fact) -> Client {
        transactions::hold(&self.database, post).await
    }
}

fn assert_in_order(frames: &[Frame]) {
    let is_before = |pair: &[Frame]| pair[0].place().compare(&pair[1].place()) != Ordering::Greater;
    assert!(frames.windows(2).all(is_before), "{frames:?}");
}

/// A save is under way while two others commit; then it `ends`, while streams are open.
async fn held_until(ends: &str, is_kept: bool) {
    let fixture = LateFixture::new().await;
    let (node, home) = (&fixture.node, &fixture.home);
    let mut before = node.stream(&fixture.path).await;
    let mut frames = before.until_sync().await;
    let held = post(home, "held");
    let session = fixture.hold(&held).await;
    let later = ["a", "b"].map(|name| post(home, name));
    for post in &later {
        node.add(post).await;
    }
    // A stream opened while the save is held gets the settled facts.
    let mut between = node.stream(&fixture.path).await;
    let mut other_frames = between.until_sync().await;
    assert_eq!(received(&other_frames), references(&fixture.posts));
    session.batch_execute(ends).await.unwrap();
    let mut all = later.to_vec();
    if is_kept {
        all.push(held);
    }
    frames.extend(before.until(all.len()).await);
    frames.extend(before.until_sync().await);
    other_frames.extend(between.until(all.len()).await);
    other_frames.extend(between.until_sync().await);
    all.extend(fixture.posts.clone());
    for frames in [frames, other_frames] {
        assert_eq!(sorted(received(&frames)), sorted(references(&all)));
        assert_in_order(&frames);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_is_not_missed() {
    held_until("COMMIT", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_delays_no_stream() {
    held_until("ROLLBACK", false).await;
}

/// No node makes the commit, so none wakes the streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_commit_without_a_wake_is_not_missed() {
    let fixture = LateFixture::new().await;
    let mut stream = fixture.node.live(&fixture.path).await;
    let held = post(&fixture.home, "held");
    let session = fixture.hold(&held).await;
    let later = post(&fixture.home, "later");
    fixture.node.add(&later).await;
    let silent = tokio::time::timeout(Duration::from_millis(300), stream.line()).await;
    assert!(silent.is_err(), "it is not settled: {silent:?}");
    session.batch_execute("COMMIT").await.unwrap();
    let frames = stream.until(2).await;
    let both = sorted(references(&[held, later]));
    assert_eq!(sorted(received(&frames)), both);
}

/// The log is so far behind that streams would read for themselves, but nothing is settled: a
/// transaction that was left open must not keep the node busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_left_open_delays_no_stream() {
    let fixture = LateFixture::new().await;
    let (node, home) = (&fixture.node, &fixture.home);
    let mut streams = [
        node.live(&fixture.path).await,
        node.live(&fixture.path).await,
    ];
    let held = post(home, "held");
    let session = fixture.hold(&held).await;
    let sequence = "'wakeline.feed_seq'";
    let skip = format!("SELECT setval({sequence}, nextval({sequence}) + 200000)");
    session.batch_execute(&skip).await.unwrap();
    let later = post(home, "later");
    node.add(&later).await;
    // The follower finds it, and cannot deliver it; the node answers as before.
    let before = node.store.calls();
    eventually("the follower", async || node.store.calls() > before + 3).await;
    let mut third = node.stream(&fixture.path).await;
    let first = references(&fixture.posts);
    assert_eq!(received(&third.until_sync().await), first);
    session.batch_execute("COMMIT").await.unwrap();
    let both = sorted(references(&[held, later]));
    for stream in streams.iter_mut().chain([&mut third]) {
        assert_eq!(sorted(received(&stream.until(2).await)), both);
    }
}

/// A bookmark that was sent while a save was under way, used after it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bookmark_from_before_a_late_commit_misses_nothing() {
    let fixture = LateFixture::new().await;
    let held = post(&fixture.home, "held");
    let session = fixture.hold(&held).await;
    let later = post(&fixture.home, "later");
    fixture.node.add(&later).await;
    let page = fixture.node.get(&fixture.path, &[]).await.page();
    assert_eq!(page.references, references(&fixture.posts));
    session.batch_execute("COMMIT").await.unwrap();
    let path = format!("{}?b={}", fixture.path, page.bookmark);
    let page = fixture.node.get(&path, &[]).await.page();
    assert_eq!(sorted(page.references), sorted(references(&[held, later])));
}

/// A save holds a floor that it read before others were settled: a horizon can be behind an earlier
/// one of another node or of this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bookmark_never_goes_back() {
    let fixture = LateFixture::new().await;
    let frames = fixture.node.stream(&fixture.path).await.until_sync().await;
    let bookmark = &frames.last().unwrap().bookmark;
    let session = fixture.database.session().await;
    let floor = "BEGIN; SELECT pg_advisory_xact_lock_shared(1717921124, 1)";
    session.batch_execute(floor).await.unwrap();
    // A node that has not seen more.
    let other = Node::new(&fixture.database).await;
    let resumed = format!("{}?b={bookmark}", fixture.path);
    let mut stream = other.stream(&resumed).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), &frames[0].bookmark), (1, bookmark));
    session.batch_execute("COMMIT").await.unwrap();
    let new = post(&fixture.home, "new");
    other.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
}

/// Sessions that hold their saves open for a while and commit or not, beside nodes that save, while
/// clients stay or connect again with their bookmarks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_miss_nothing_while_transactions_are_open() {
    let given = std::env::var("WAKELINE_SEED").ok();
    let seed: u64 = given.map_or_else(rand::random, |seed| seed.parse().unwrap());
    eprintln!("WAKELINE_SEED={seed}");
    let fixture = LateFixture::new().await;
    let last = post(&fixture.home, "last");
    let fixture = Arc::new(fixture);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (fixture, last) = (fixture.clone(), last.reference.clone());
            tokio::spawn(async move {
                let (mut frames, mut bookmark) = (Vec::new(), String::new());
                while !received(&frames).contains(&last) {
                    let path = format!("{}?b={bookmark}", fixture.path);
                    let stream = fixture.node.stream(&path).await;
                    frames.extend(read(stream, client % 2 == 0, &last).await);
                    bookmark = frames.last().unwrap().bookmark.clone();
                }
                frames
            })
        })
        .collect();
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let random = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
        writers.push(tokio::spawn(write(fixture.clone(), random, number)));
    }
    let mut all = references(&fixture.posts);
    for writer in writers {
        all.extend(soon("a writer", writer).await.unwrap());
    }
    fixture.node.add(&last).await;
    all.push(last.reference);
    let all = sorted(all);
    for client in clients {
        let frames = soon("a client", client).await.unwrap();
        assert_eq!(sorted(received(&frames)), all);
        assert_in_order(&frames);
    }
}

/// To the last post, or only to the next SYNC.
async fn read(mut stream: Stream, reconnects: bool, last: &Reference) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        let frame = stream.next().await.unwrap();
        let is_end = frame.references.contains(last) || (reconnects && frame.is_sync());
        frames.push(frame);
        if is_end {
            return frames;
        }
    }
}

/// Returns the committed facts.
async fn write(fixture: Arc<LateFixture>, mut random: StdRng, number: usize) -> Vec<Reference> {
    let session = fixture.database.session().await;
    let mut committed = Vec::new();
    for round in 0..ROUNDS {
        session.batch_execute("BEGIN").await.unwrap();
        let held: Vec<Fact> = (0..random.random_range(0..3))
            .map(|which| post(&fixture.home, &format!("held {number} {round} {which}")))
            .collect();
        for post in &held {
            transactions::save_in(&session, post).await;
        }
        for which in 0..random.random_range(0..3) {
            let new = post(&fixture.home, &format!("{number} {round} {which}"));
            fixture.node.add(&new).await;
            committed.push(new.reference);
        }
        let is_kept = random.random_bool(0.7);
        let end = if is_kept { "COMMIT" } else { "ROLLBACK" };
        session.batch_execute(end).await.unwrap();
        if is_kept {
            committed.extend(references(&held));
        }
    }
    committed
}
