//! Feeds that are in use stay known to all nodes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_testkit::{CommitAlone, local_bus};

use super::{Definitions, FRESH};
use crate::{
    feed::Feed, query::Query, specification::parser, store::Store, test_database::Database,
};

const HASH: &str = "abc";

fn feed() -> Feed {
    let specification = parser::parse_feed("(s: Site) { p: Post [p->site: Site = s] }").unwrap();
    Feed {
        hash: HASH.into(),
        query: Arc::new(Query::of_specification(&specification).unwrap()),
        specification,
        given: Vec::new(),
        owner: None,
    }
}

/// A node that knows a feed, and the time a moment less than a day later, and a day later.
async fn defined(database: &Database) -> (Arc<dyn Store>, Definitions, [Instant; 2]) {
    let store = database.store().await;
    let definitions = Definitions::new(store.clone(), local_bus());
    let now = Instant::now();
    definitions.define(vec![feed()], now).await.unwrap();
    let times = [now + FRESH - Duration::from_secs(1), now + FRESH];
    (store, definitions, times)
}

/// Another node finds that no request has named a feed.
async fn forget(store: &Arc<dyn Store>) {
    assert_eq!(store.forget_definitions(i64::MAX).done().await, 1);
}

async fn is_stored(store: &Arc<dyn Store>) -> bool {
    store.definition(HASH.into()).await.unwrap().is_some()
}

pub(super) async fn finding_a_feed_stores_its_use_once_a_day(database: Database) {
    let (store, definitions, [before, after]) = defined(&database).await;
    forget(&store).await;
    definitions.find_at(HASH, before).await.unwrap();
    assert!(!is_stored(&store).await, "it is read from the memory");
    definitions.find_at(HASH, after).await.unwrap();
    assert!(is_stored(&store).await);
}

pub(super) async fn declaring_a_feed_again_stores_its_use_once_a_day(database: Database) {
    let (store, definitions, [before, after]) = defined(&database).await;
    forget(&store).await;
    definitions.define(vec![feed()], before).await.unwrap();
    assert!(!is_stored(&store).await, "it is in the memory");
    definitions.define(vec![feed()], after).await.unwrap();
    assert!(is_stored(&store).await);
}

pub(super) async fn the_definition_of_a_followed_feed_is_not_forgotten(database: Database) {
    let (store, definitions, [before, after]) = defined(&database).await;
    let followed = definitions.find_at(HASH, before).await.unwrap();
    forget(&store).await;
    definitions.refresh_followed(after).await.unwrap();
    assert!(is_stored(&store).await);
    drop(followed);
    forget(&store).await;
    definitions.refresh_followed(after + FRESH).await.unwrap();
    assert!(!is_stored(&store).await, "no stream follows it");
}
