//! What the nodes recheck in these tests: items in memory, or in a real table.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::{ToSql, Type};
use wakeline_bus::{DueWake, Recheck};
use wakeline_store::{Error, Postgres, postgres};
use wakeline_wake::{Topic, WaitGroup, WaitKey, WaitedKey};

pub(crate) const DOOR: &str = "queue";

pub(crate) fn topic(name: &str) -> Topic {
    Topic::new(DOOR, [name])
}

/// Items that all nodes share and that no outage reaches.
#[derive(Clone, Default)]
pub(crate) struct MemoryItems(Arc<Mutex<HashSet<Topic>>>);

impl MemoryItems {
    pub(crate) fn put(&self, name: &str) {
        self.0.lock().unwrap().insert(topic(name));
    }
}

/// The rechecks of one node, counted.
#[derive(Clone, Default)]
pub(crate) struct MemoryRecheck {
    pub(crate) items: MemoryItems,
    rechecks: Arc<AtomicUsize>,
}

impl MemoryRecheck {
    pub(crate) fn of(items: &MemoryItems) -> Self {
        Self {
            items: items.clone(),
            rechecks: Arc::default(),
        }
    }

    pub(crate) fn rechecks(&self) -> usize {
        self.rechecks.load(Ordering::SeqCst)
    }
}

impl Recheck for MemoryRecheck {
    fn door(&self) -> &'static str {
        DOOR
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.rechecks.fetch_add(1, Ordering::SeqCst);
        let items = self.items.0.lock().unwrap();
        let dues = waiting
            .into_iter()
            .filter(|key| items.contains(&key.topic))
            .map(|key| now(key.topic, key.group))
            .collect();
        async { Ok(dues) }.boxed()
    }
}

/// The table `item(name)`, rechecked by one node.
#[derive(Clone)]
pub(crate) struct TableRecheck {
    store: Postgres,
    rechecks: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
}

impl TableRecheck {
    pub(crate) async fn create(url: &str) -> Self {
        let options = postgres::Options {
            connections: 1,
            ..postgres::Options::default()
        };
        let store = Postgres::open(url, &options, &[]).await.unwrap();
        let create = "CREATE TABLE item (name text)";
        store.query("create", create, &[]).await.unwrap();
        Self {
            store,
            rechecks: Arc::default(),
            answered: Arc::default(),
        }
    }

    pub(crate) async fn put(&self, name: &str) {
        let insert = "INSERT INTO item VALUES ($1)";
        let name = [(&name as &(dyn ToSql + Sync), Type::TEXT)];
        self.store.query("insert", insert, &name).await.unwrap();
    }

    pub(crate) fn rechecks(&self) -> usize {
        self.rechecks.load(Ordering::SeqCst)
    }

    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }
}

impl Recheck for TableRecheck {
    fn door(&self) -> &'static str {
        DOOR
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.rechecks.fetch_add(1, Ordering::SeqCst);
        async move {
            let statement = "SELECT name FROM item WHERE name = ANY ($1)";
            let names: Vec<String> = waiting
                .iter()
                .map(|key| key.topic.parts().collect())
                .collect();
            let rows = self
                .store
                .query("recheck", statement, &[(&names, Type::TEXT_ARRAY)])
                .await?;
            self.answered.fetch_add(1, Ordering::SeqCst);
            let found = rows.iter().map(|row| topic(row.get("name")));
            Ok(found
                .map(|topic| now(topic, WaitGroup::default()))
                .collect())
        }
        .boxed()
    }
}

fn now(topic: Topic, group: WaitGroup) -> DueWake {
    DueWake {
        key: WaitKey::new(topic, group),
        after: Duration::ZERO,
    }
}
