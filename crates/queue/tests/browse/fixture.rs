//! A store of the test's own, and the steps that tests share.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_bus::Bus;
use wakeline_queue::{
    Limits, Queue,
    ack::{Ack, AckOutcome, AckStatus},
    browse::{MessageAddress, MessageFilter, Page},
    claim::{Claim, PopOutcome, PopRequest, Source, Start},
    message::{NewMessage, PushReceipt},
    store::{
        Store,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
    write_batch::WriteBatch,
};
use wakeline_testkit::{CommitAlone, DatabaseKind, OpenStore, TestDatabase};
use wakeline_wake::Engine;

pub(crate) const QUEUE_MODE: &str = "__QUEUE_MODE__";
const LEASE: Duration = Duration::from_secs(3_600);
/// More than any test has.
pub(crate) const ALL: Page = Page {
    limit: 1_000,
    offset: 0,
};

fn door(store: Arc<dyn Store>) -> Arc<Queue> {
    let engine = Engine::new(wakeline_wake::Limits::default());
    let bus = Bus::local(engine.clone());
    Queue::new(store, engine, bus, Limits::default(), None)
}

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<Queue>,
    _database: TestDatabase,
}

impl Fixture {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await;
        let store: Arc<dyn Store> = match database.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        };
        Self {
            queue: door(store.clone()),
            store,
            _database: database,
        }
    }

    /// Another node on the same store.
    pub(crate) fn door(&self) -> Arc<Queue> {
        door(self.store.clone())
    }

    /// One push per transaction id, so that each is a segment of its own.
    pub(crate) async fn push(
        &self,
        queue: &str,
        partition: &str,
        ids: &[&str],
    ) -> Vec<PushReceipt> {
        let mut all = Vec::new();
        for id in ids {
            all.extend(self.push_together(queue, partition, &[id]).await);
        }
        all
    }

    /// One segment.
    pub(crate) async fn push_together(
        &self,
        queue: &str,
        partition: &str,
        ids: &[&str],
    ) -> Vec<PushReceipt> {
        let message = |id: &&str| NewMessage {
            queue: queue.into(),
            partition: partition.into(),
            transaction_id: Some((*id).into()),
            payload: format!("\"{id}\"").into(),
            ..NewMessage::default()
        };
        let batch = WriteBatch::of_pushes(ids.iter().map(message).collect());
        let done = self.store.apply(Arc::new(batch)).done().await;
        done.pushed.into_iter().map(Result::unwrap).collect()
    }

    pub(crate) async fn pop(&self, queue: &str, group: &str, batch: u32) -> Option<Claim> {
        let request = PopRequest {
            source: Source::Queue {
                queue: queue.into(),
                partition: None,
            },
            group: group.into(),
            start: Start::All,
            batch,
            partitions: 1,
            auto_ack: false,
        };
        // A store may ask to look again at once: a group may still have to learn of partitions.
        for _ in 0..100 {
            let popped = self
                .store
                .pop(Arc::new(request.clone()), Uuid::now_v7(), LEASE)
                .commit_alone()
                .await;
            match popped.unwrap() {
                PopOutcome::Claimed(claimed) => return Some(claimed),
                PopOutcome::Empty {
                    recheck_after: Some(Duration::ZERO),
                } => {}
                PopOutcome::Empty { .. } => return None,
            }
        }
        panic!("it says for ever that there is something");
    }

    /// Says the same of these messages of a claim.
    pub(crate) async fn say(&self, claimed: &Claim, ids: &[&str], status: AckStatus) {
        for id in ids {
            let ack = Ack {
                partition: claimed.parts[0].number,
                group: claimed.group.clone(),
                transaction_id: (*id).into(),
                lease: claimed.lease,
                status,
                error: Some("because".into()),
                keeps_lease: false,
            };
            let batch = WriteBatch::of_acks(vec![ack]);
            let done = self.store.apply(Arc::new(batch)).done().await;
            assert!(done.acked[0].is_success(), "{id}: {:?}", done.acked[0]);
        }
    }

    /// Pops one message and makes it a dead letter.
    pub(crate) async fn make_next_dead_letter(&self, queue: &str, group: &str) -> String {
        let claimed = self.pop(queue, group, 1).await.expect("a message");
        let id = ids(&claimed).remove(0);
        self.say(&claimed, &[&id], AckStatus::DeadLetter).await;
        id
    }

    pub(crate) async fn complete(&self, queue: &str, group: &str, batch: u32) -> Vec<String> {
        let claimed = self.pop(queue, group, batch).await.expect("a message");
        let all = ids(&claimed);
        let last = all.last().expect("a claim has messages").clone();
        self.say(&claimed, &[&last], AckStatus::Completed).await;
        all
    }
}

pub(crate) fn ids(claimed: &Claim) -> Vec<String> {
    claimed
        .messages()
        .map(|message| message.transaction_id.clone())
        .collect()
}

pub(crate) fn page(limit: i64, offset: i64) -> Page {
    Page { limit, offset }
}

pub(crate) fn of_queue(queue: &str) -> MessageFilter {
    MessageFilter {
        queue: Some(queue.into()),
        ..MessageFilter::default()
    }
}

pub(crate) fn address(pushed: &PushReceipt) -> MessageAddress {
    MessageAddress {
        partition: wakeline_queue::id::partition_number(&pushed.partition_id).unwrap(),
        transaction_id: pushed.transaction_id.clone(),
    }
}

/// The outcome of an acknowledgement without a lease.
pub(crate) async fn ack(
    fixture: &Fixture,
    at: &MessageAddress,
    group: &str,
    status: AckStatus,
) -> AckOutcome {
    let ack = Ack {
        partition: at.partition,
        group: group.into(),
        transaction_id: at.transaction_id.clone(),
        lease: None,
        status,
        error: None,
        keeps_lease: false,
    };
    let batch = WriteBatch::of_acks(vec![ack]);
    fixture.store.apply(Arc::new(batch)).done().await.acked[0]
}
