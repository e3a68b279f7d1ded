//! The settled horizon while saves are under way: PostgreSQL only, as SQLite has one writer.

use std::{collections::BTreeSet, sync::Arc};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio_postgres::Client;
use wakeline_feed::{
    fact::{Fact, Reference},
    store::Store,
};
use wakeline_testkit::eventually;

use crate::{
    facts::fact,
    fixture::{Fixture, LogFollower, new_facts, read_log, save},
    transactions::{hold, save_in},
};

const ROUNDS: usize = 60;
const WRITERS: usize = 3;

fn site(name: &str) -> Fact {
    fact("Site", name, &[])
}

async fn fixture() -> Fixture {
    let fixture = Fixture::postgres().await;
    fixture.save(&[&site("first")]).await;
    fixture
}

/// A save is under way while two others commit; then it `ends`.
async fn held_until(ends: &str, expected: &[&str]) {
    let fixture = fixture().await;
    let first = fixture.seq(&site("first")).await;
    let session = hold(&fixture.database, &site("held")).await;
    for later in ["a", "b"] {
        fixture.save(&[&site(later)]).await;
    }
    let last = fixture.seq(&site("b")).await;
    // Another node has read no earlier horizon.
    for store in [fixture.store.clone(), fixture.database.store().await] {
        let horizon = store.horizon().await.unwrap();
        assert_eq!((horizon.settled, horizon.last), (first, last));
        let page = store.log(first, 10).await.unwrap();
        assert!(page.entries.is_empty());
        assert_eq!((page.to, page.last), (first, last));
    }
    session.batch_execute(ends).await.unwrap();
    let horizon = fixture.store.horizon().await.unwrap();
    assert_eq!((horizon.settled, horizon.last), (last, last));
    let (entries, to) = read_log(&*fixture.store, first, 10).await;
    assert_eq!(to, last);
    let references: Vec<_> = entries.into_iter().map(|entry| entry.reference).collect();
    let expected: Vec<_> = expected.iter().map(|name| site(name).reference).collect();
    assert_eq!(references, expected);
}

#[tokio::test]
async fn a_late_commit_is_not_missed() {
    held_until("COMMIT", &["held", "a", "b"]).await;
}

#[tokio::test]
async fn a_rollback_delays_no_reader() {
    held_until("ROLLBACK", &["a", "b"]).await;
}

#[tokio::test]
async fn other_transactions_delay_no_reader() {
    let fixture = fixture().await;
    let session = fixture.database.session().await;
    let foreign = "BEGIN; CREATE TABLE public.foreign_table (a int);
        SELECT pg_current_xact_id(), pg_advisory_xact_lock(1), pg_advisory_xact_lock(1, 1)";
    session.batch_execute(foreign).await.unwrap();
    fixture.save(&[&site("a")]).await;
    let at = fixture.seq(&site("a")).await;
    let horizon = fixture.store.horizon().await.unwrap();
    assert_eq!((horizon.settled, horizon.last), (at, at));
}

#[tokio::test]
async fn saves_of_another_database_delay_no_reader() {
    let (fixture, other) = (fixture().await, fixture().await);
    let _session = hold(&other.database, &site("held")).await;
    fixture.save(&[&site("a")]).await;
    let at = fixture.seq(&site("a")).await;
    assert_eq!(fixture.store.horizon().await.unwrap().settled, at);
}

#[tokio::test]
async fn seqs_may_need_more_bits_than_a_lock_has() {
    for before in [i64::from(i32::MAX) - 1, i64::from(u32::MAX) - 1, 1 << 40] {
        let fixture = fixture().await;
        let set = format!("SELECT setval('wakeline.feed_seq', {before})");
        fixture.database.execute(&set).await;
        let session = hold(&fixture.database, &site("held")).await;
        for later in ["a", "b", "c", "d"] {
            fixture.save(&[&site(later)]).await;
        }
        let horizon = fixture.store.horizon().await.unwrap();
        assert_eq!((horizon.settled, horizon.last), (before, before + 5));
        session.batch_execute("COMMIT").await.unwrap();
        assert_eq!(fixture.store.horizon().await.unwrap().settled, before + 5);
    }
}

#[tokio::test]
async fn a_save_waits_for_another_save_of_the_same_fact() {
    let fixture = fixture().await;
    let shared = site("shared");
    let post = fact("Post", "post", &[("site", &shared)]);
    let session = hold(&fixture.database, &shared).await;
    let store = fixture.store.clone();
    let saving = {
        let (shared, post) = (shared.clone(), post.clone());
        tokio::spawn(async move { save(&*store, &[&shared, &post]).await })
    };
    eventually("the save to wait", async || {
        fixture.database.is_write_blocked().await
    })
    .await;
    session.batch_execute("COMMIT").await.unwrap();
    let new = new_facts(saving.await.unwrap());
    assert_eq!(new, [(1, fixture.seq(&post).await)]);
    assert!(fixture.seq(&shared).await < fixture.seq(&post).await);
}

/// Sessions that hold their saves open for a while and commit or not, beside nodes that save, and a
/// follower of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_misses_nothing_while_transactions_are_open() {
    let given = std::env::var("WAKELINE_SEED").ok();
    let seed: u64 = given.map_or_else(rand::random, |seed| seed.parse().unwrap());
    eprintln!("WAKELINE_SEED={seed}");
    let fixture = fixture().await;
    let follower = LogFollower::start(&fixture).await;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let (store, session) = (
            fixture.database.store().await,
            fixture.database.session().await,
        );
        let random = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
        writers.push(tokio::spawn(write(store, session, random, number)));
    }
    let mut expected = BTreeSet::from([site("first").reference]);
    for writer in writers {
        expected.extend(writer.await.unwrap());
    }
    assert_eq!(follower.finish().await, expected);
}

/// Returns the committed facts.
async fn write(
    store: Arc<dyn Store>,
    session: Client,
    mut random: StdRng,
    number: usize,
) -> BTreeSet<Reference> {
    let mut committed = BTreeSet::new();
    for round in 0..ROUNDS {
        session.batch_execute("BEGIN").await.unwrap();
        let held: Vec<Fact> = (0..random.random_range(0..3))
            .map(|which| site(&format!("held {number} {round} {which}")))
            .collect();
        for fact in &held {
            save_in(&session, fact).await;
        }
        for which in 0..random.random_range(0..4) {
            let fact = site(&format!("{number} {round} {which}"));
            save(&*store, &[&fact]).await;
            committed.insert(fact.reference);
        }
        let is_kept = random.random_bool(0.7);
        let end = if is_kept { "COMMIT" } else { "ROLLBACK" };
        session.batch_execute(end).await.unwrap();
        if is_kept {
            committed.extend(held.into_iter().map(|fact| fact.reference));
        }
    }
    committed
}
