//! Names that are forgotten while a save is prepared.

use std::sync::Arc;

use wakeline_testkit::OpenStore;

use super::NameCache;
use crate::{
    store::{
        Store,
        postgres::PostgresStore,
        sqlite::{SqliteStore, system_clock},
    },
    test_database::Database,
    test_facts::fact,
    test_saving::save,
};

/// A node that keeps three names in memory.
async fn forgetful(database: &Database) -> Arc<dyn Store> {
    let names = Arc::new(NameCache::at_most(3));
    match database.0.open().await {
        OpenStore::Sqlite(sqlite) => {
            let mut store = SqliteStore::new(sqlite, system_clock());
            store.names = names;
            Arc::new(store)
        }
        OpenStore::Postgres(postgres) => {
            let mut store = PostgresStore::new(postgres);
            store.names = names;
            Arc::new(store)
        }
    }
}

pub(super) async fn a_stored_type_is_not_taken_for_unknown(database: Database) {
    let site = fact("Site", "site", &[]);
    save(&*database.store().await, std::slice::from_ref(&site)).await;
    let store = forgetful(&database).await;
    for kind in ["A", "B", "C"] {
        save(&*store, &[fact(kind, "a", &[])]).await;
    }
    // The site's type is learned first, and forgotten for those of the post.
    save(&*store, &[fact("Post", "post", &[("site", &site)])]).await;
}
