//! What is settled, while saves are under way that nobody can see yet: PostgreSQL only, as SQLite
//! has one writer.

use std::{collections::BTreeSet, sync::Arc};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio_postgres::Client;
use wakeline_feed::{
    fact::{Fact, Reference},
    store::SaveOutcome,
};

use crate::{
    database::{Database, Store},
    fixture::{Fixture, LogFollower, fact, one, read_log, save},
};

const ROUNDS: usize = 60;
const WRITERS: usize = 3;

/// Saves a fact without predecessors in the session's transaction. Its type has to be known.
async fn save_in(session: &Client, fact: &Fact) {
    let hash: String = fact
        .reference
        .hash
        .0
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (kind, fields) = (&fact.reference.kind, &fact.fields);
    let sql = format!(
        "SELECT wakeline.feed_save(
             ARRAY[(SELECT id FROM wakeline.feed_type WHERE name = '{kind}')],
             ARRAY['\\x{hash}'::bytea], ARRAY['{fields}'], ARRAY['{{}}'], ARRAY[1],
             '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}')"
    );
    session.batch_execute(&sql).await.unwrap();
}

fn site(name: &str) -> Fact {
    fact("Site", name, &[])
}

async fn fixture() -> Fixture {
    let fixture = Fixture::new(Database::postgres().await).await;
    fixture.save(&[&site("first")]).await;
    fixture
}

/// A save is under way while two others commit; then it `ends`.
async fn held_until(ends: &str, expected: &[&str]) {
    let fixture = fixture().await;
    let first = fixture.at(&site("first")).await;
    let session = fixture.database.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    save_in(&session, &site("held")).await;
    for later in ["a", "b"] {
        fixture.save(&[&site(later)]).await;
    }
    let last = fixture.at(&site("b")).await;
    // Another node has not seen an earlier horizon.
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
    let seen: Vec<_> = entries.into_iter().map(|entry| entry.reference).collect();
    let expected: Vec<_> = expected.iter().map(|name| site(name).reference).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_commits_late_is_not_missed() {
    held_until("COMMIT", &["held", "a", "b"]).await;
}

#[tokio::test]
async fn what_is_rolled_back_holds_nobody_up() {
    held_until("ROLLBACK", &["a", "b"]).await;
}

#[tokio::test]
async fn other_transactions_hold_nobody_up() {
    let fixture = fixture().await;
    let session = fixture.database.session().await;
    let foreign = "BEGIN; CREATE TABLE public.foreign_table (a int);
        SELECT pg_current_xact_id(), pg_advisory_xact_lock(1), pg_advisory_xact_lock(1, 1)";
    session.batch_execute(foreign).await.unwrap();
    fixture.save(&[&site("a")]).await;
    let at = fixture.at(&site("a")).await;
    let horizon = fixture.store.horizon().await.unwrap();
    assert_eq!((horizon.settled, horizon.last), (at, at));
}

#[tokio::test]
async fn another_databases_saves_hold_nobody_up() {
    let (fixture, other) = (fixture().await, fixture().await);
    let session = other.database.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    save_in(&session, &site("held")).await;
    fixture.save(&[&site("a")]).await;
    let at = fixture.at(&site("a")).await;
    assert_eq!(fixture.store.horizon().await.unwrap().settled, at);
}

#[tokio::test]
async fn positions_may_need_more_bits_than_a_lock_has() {
    for before in [i64::from(i32::MAX) - 1, i64::from(u32::MAX) - 1, 1 << 40] {
        let fixture = fixture().await;
        let set = format!("SELECT setval('wakeline.feed_seq', {before})");
        fixture.database.execute(&set).await;
        let session = fixture.database.session().await;
        session.batch_execute("BEGIN").await.unwrap();
        save_in(&session, &site("held")).await;
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
async fn what_another_saves_meanwhile_is_waited_for() {
    let fixture = fixture().await;
    let shared = site("shared");
    let post = fact("Post", "post", &[("site", one(&shared))]);
    let session = fixture.database.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    save_in(&session, &shared).await;
    let store = fixture.store.clone();
    let saving = {
        let (shared, post) = (shared.clone(), post.clone());
        tokio::spawn(async move { save(&*store, &[&shared, &post]).await })
    };
    let waiting =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while fixture.database.count(waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    session.batch_execute("COMMIT").await.unwrap();
    let SaveOutcome::Stored { new } = saving.await.unwrap() else {
        panic!("it is refused");
    };
    assert_eq!(new, [(1, fixture.at(&post).await)]);
    assert!(fixture.at(&shared).await < fixture.at(&post).await);
}

/// Sessions that hold their saves open for a while and commit or not, beside nodes that save, and a
/// follower of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_misses_nothing_whatever_is_held_open() {
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

/// What it has committed.
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
