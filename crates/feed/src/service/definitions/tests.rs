//! Feeds that are in use stay known to all nodes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_bus::Bus;
use wakeline_testkit::{PostgresDatabase, SqliteDatabase};
use wakeline_wake::{Engine, Limits};

use super::{Definitions, FRESH};
use crate::{
    feed::Feed,
    query::Query,
    specification::parser,
    store::{
        Store,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};

fn bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}

const HASH: &str = "abc";

fn feed() -> Feed {
    let text = "(s: Site) {\n    p: Post [\n        p->site: Site = s\n    ]\n}";
    let specification = parser::parse_feed(text).unwrap();
    let query = Query::of_specification(&specification).unwrap();
    Feed {
        hash: HASH.into(),
        specification,
        query: Arc::new(query),
        given: Vec::new(),
        owner: None,
    }
}

/// A node that knows a feed, and the time a moment less than a day later, and a day later.
async fn defined(store: &Arc<dyn Store>) -> (Definitions, Instant, Instant) {
    let definitions = Definitions::new(store.clone(), bus());
    let now = Instant::now();
    definitions.define(vec![feed()], now).await.unwrap();
    (
        definitions,
        now + FRESH - Duration::from_secs(1),
        now + FRESH,
    )
}

/// Another node finds that nobody has asked for anything.
async fn forget(store: &Arc<dyn Store>) {
    let forgotten = store.forget_definitions(i64::MAX).commit(&bus()).await;
    assert_eq!(forgotten.unwrap(), 1);
}

async fn is_stored(store: &Arc<dyn Store>) -> bool {
    store.definition(HASH.into()).await.unwrap().is_some()
}

async fn what_is_asked_for_reaches_the_store_once_a_day(store: Arc<dyn Store>) {
    let (definitions, before, after) = defined(&store).await;
    forget(&store).await;
    definitions.find_at(HASH, before).await.unwrap();
    assert!(!is_stored(&store).await, "the memory knows it");
    definitions.find_at(HASH, after).await.unwrap();
    assert!(is_stored(&store).await);
}

async fn what_is_declared_again_reaches_the_store_once_a_day(store: Arc<dyn Store>) {
    let (definitions, before, after) = defined(&store).await;
    forget(&store).await;
    definitions.define(vec![feed()], before).await.unwrap();
    assert!(!is_stored(&store).await, "the memory knows it");
    definitions.define(vec![feed()], after).await.unwrap();
    assert!(is_stored(&store).await);
}

async fn what_is_followed_reaches_the_store(store: Arc<dyn Store>) {
    let (definitions, before, after) = defined(&store).await;
    let followed = definitions.find_at(HASH, before).await.unwrap();
    forget(&store).await;
    definitions.refresh_followed(after).await.unwrap();
    assert!(is_stored(&store).await);
    drop(followed);
    forget(&store).await;
    definitions.refresh_followed(after + FRESH).await.unwrap();
    assert!(!is_stored(&store).await, "nobody follows it");
}

macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod on_sqlite { $(
            #[tokio::test]
            async fn $case() {
                let file = super::SqliteDatabase::new();
                let sqlite = file.open(&[super::sqlite::MIGRATIONS]);
                let store = super::SqliteStore::new(sqlite, super::system_clock());
                super::$case(std::sync::Arc::new(store)).await;
            }
        )+ }
        mod on_postgres { $(
            #[tokio::test]
            async fn $case() {
                let database = super::PostgresDatabase::new(&[super::postgres::MIGRATIONS]).await;
                let opened = database.open(&[super::postgres::MIGRATIONS]).await;
                super::$case(std::sync::Arc::new(super::PostgresStore::new(opened))).await;
            }
        )+ }
    };
}

on_both! {
    what_is_asked_for_reaches_the_store_once_a_day,
    what_is_declared_again_reaches_the_store_once_a_day,
    what_is_followed_reaches_the_store,
}
