//! The steps of a store as a test says them.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, Acked, Outcome, Status},
    claim::{Claimed, PopRequest, Popped},
    message::{NewMessage, Pushed},
    store::Store,
};
use wakeline_wake::Wake;

/// What the caller of `pop` says of a lease's time; the queues of these tests say nothing else.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// Time that passes on PostgreSQL while a test runs.
const TOLERANCE: Duration = Duration::from_secs(20);

pub(crate) fn message(queue: &str, partition: &str, transaction: &str) -> NewMessage {
    NewMessage {
        queue: queue.to_owned(),
        partition: partition.to_owned(),
        id: Uuid::now_v7(),
        transaction_id: transaction.to_owned(),
        trace_id: None,
        payload: format!("\"{transaction}\"").into(),
        producer_sub: None,
    }
}

/// One push of these transactions to a partition; says whom it made ready.
pub(crate) async fn push(
    store: &dyn Store,
    queue: &str,
    partition: &str,
    transactions: &[&str],
) -> Vec<Wake> {
    let messages: Vec<_> = transactions
        .iter()
        .map(|transaction| message(queue, partition, transaction))
        .collect();
    let (pushed, ready) = store.push(messages.into()).await.unwrap();
    let stored: Vec<bool> = pushed.iter().map(|pushed| !pushed.duplicate).collect();
    assert_eq!(stored, vec![true; transactions.len()]);
    ready
}

pub(crate) async fn push_all(store: &dyn Store, messages: Vec<NewMessage>) -> Vec<Pushed> {
    store.push(messages.into()).await.unwrap().0
}

/// A request of group `g` for one message of any partition; the methods change that.
pub(crate) fn from(queue: &str) -> Request {
    Request(PopRequest {
        queue: queue.to_owned(),
        partition: None,
        group: "g".to_owned(),
        batch: 1,
        auto_ack: false,
    })
}

#[derive(Clone)]
pub(crate) struct Request(pub(crate) PopRequest);

impl Request {
    pub(crate) fn partition(mut self, name: &str) -> Self {
        self.0.partition = Some(name.to_owned());
        self
    }

    pub(crate) fn group(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.group);
        self
    }

    pub(crate) fn batch(mut self, count: u32) -> Self {
        self.0.batch = count;
        self
    }

    pub(crate) fn auto_ack(mut self) -> Self {
        self.0.auto_ack = true;
        self
    }

    pub(crate) async fn pop(&self, store: &dyn Store) -> Popped {
        let request = Arc::new(self.0.clone());
        store.pop(request, Uuid::now_v7(), LEASE).await.unwrap()
    }

    /// There is something.
    pub(crate) async fn claim(&self, store: &dyn Store) -> Claimed {
        match self.pop(store).await {
            Popped::Claimed(claimed) => claimed,
            Popped::Empty { again } => panic!("nothing was found for {:?}: {again:?}", self.0),
        }
    }

    /// There is nothing; when to look again.
    pub(crate) async fn nothing(&self, store: &dyn Store) -> Option<Duration> {
        match self.pop(store).await {
            Popped::Claimed(claimed) => panic!("something was found: {claimed:?}"),
            Popped::Empty { again } => again,
        }
    }
}

pub(crate) fn names(claimed: &Claimed) -> Vec<&str> {
    claimed
        .messages
        .iter()
        .map(|message| &*message.transaction_id)
        .collect()
}

/// What the holder of a claim says of one of its messages.
pub(crate) fn say(claimed: &Claimed, transaction: &str, status: Status) -> Ack {
    Ack {
        partition_id: claimed.partition_id,
        group: claimed.group.clone(),
        transaction_id: transaction.to_owned(),
        lease: claimed.lease,
        status,
        error: (status != Status::Completed).then(|| "no".to_owned()),
    }
}

pub(crate) async fn ack(
    store: &dyn Store,
    claimed: &Claimed,
    transaction: &str,
    status: Status,
) -> Acked {
    let ack = say(claimed, transaction, status);
    store.ack(Arc::new(ack)).await.unwrap()
}

pub(crate) async fn outcome(
    store: &dyn Store,
    claimed: &Claimed,
    transaction: &str,
    status: Status,
) -> Outcome {
    ack(store, claimed, transaction, status).await.outcome
}

/// Done, and the lease stays.
pub(crate) const GOES_ON: Outcome = Outcome::Done {
    lease_released: false,
    dead: false,
};
/// Done, and the lease is over.
pub(crate) const RELEASED: Outcome = Outcome::Done {
    lease_released: true,
    dead: false,
};

pub(crate) async fn hand_back(store: &dyn Store, claimed: &Claimed) -> bool {
    store.hand_back(Arc::new(claimed.clone())).await.unwrap()
}

#[track_caller]
pub(crate) fn assert_about(actual: Option<Duration>, expected: Duration) {
    let actual = actual.expect("a time to look again is known");
    assert!(
        actual <= expected && actual + TOLERANCE > expected,
        "{actual:?} is not about {expected:?}"
    );
}
