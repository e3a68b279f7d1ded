//! Calls of a store, in a test's words.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::{Claim, ClaimedPartition, PopOutcome, PopRequest, Source, Start},
    message::{NewMessage, PushReceipt},
    options::Options,
    queue_admin::ConfigureRequest,
    store::Store,
    write_batch::{BatchOutcome, WriteBatch},
};
use wakeline_testkit::CommitAlone;
use wakeline_wake::Wake;

/// What the caller of `pop` says of a lease's time; the queues of these tests say nothing else.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A store that cannot tell for the moment says to look again after this time at most.
const AT_ONCE: Duration = Duration::from_millis(10);
const MAX_LOOKS: usize = 50;

/// Time that passes on PostgreSQL while a test runs.
const TOLERANCE: Duration = Duration::from_secs(20);

pub(crate) fn message(queue: &str, partition: &str, transaction: &str) -> NewMessage {
    NewMessage {
        queue: queue.to_owned(),
        partition: partition.to_owned(),
        transaction_id: Some(transaction.to_owned()),
        payload: format!("\"{transaction}\"").into(),
        ..NewMessage::default()
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
    let done = try_push(store, messages).await;
    let stored: Vec<bool> = done
        .pushed
        .iter()
        .map(|pushed| pushed.as_ref().is_ok_and(|pushed| !pushed.duplicate))
        .collect();
    assert_eq!(stored, vec![true; transactions.len()]);
    done.wakes
}

pub(crate) async fn apply(store: &dyn Store, batch: WriteBatch) -> BatchOutcome {
    store.apply(Arc::new(batch)).done().await
}

pub(crate) async fn try_push(store: &dyn Store, pushes: Vec<NewMessage>) -> BatchOutcome {
    let pushing = WriteBatch::of_pushes(pushes);
    apply(store, pushing).await
}

pub(crate) async fn push_all(store: &dyn Store, messages: Vec<NewMessage>) -> Vec<PushReceipt> {
    let done = try_push(store, messages).await;
    done.pushed.into_iter().map(Result::unwrap).collect()
}

/// A request of group `g` for one message of any partition; the methods change that.
pub(crate) fn from(queue: &str) -> Request {
    Request(PopRequest {
        source: Source::Queue {
            queue: queue.to_owned(),
            partition: None,
        },
        group: "g".to_owned(),
        start: Start::All,
        batch: 1,
        partitions: 1,
        auto_ack: false,
    })
}

/// A request of group `g` for one message of whichever queue is of this namespace or task.
pub(crate) fn of(namespace: Option<&str>, task: Option<&str>) -> Request {
    let mut request = from("");
    request.0.source = Source::Matching {
        namespace: namespace.map(str::to_owned),
        task: task.map(str::to_owned),
    };
    request
}

#[derive(Clone)]
pub(crate) struct Request(pub(crate) PopRequest);

impl Request {
    pub(crate) fn partition(mut self, name: &str) -> Self {
        if let Source::Queue { partition, .. } = &mut self.0.source {
            *partition = Some(name.to_owned());
        }
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

    pub(crate) fn partitions(mut self, count: u32) -> Self {
        self.0.partitions = count;
        self
    }

    pub(crate) fn start(mut self, start: Start) -> Self {
        self.0.start = start;
        self
    }

    pub(crate) async fn pop(&self, store: &dyn Store) -> PopOutcome {
        let request = Arc::new(self.0.clone());
        store.pop(request, Uuid::now_v7(), LEASE).done().await
    }

    /// There is something.
    pub(crate) async fn claim(&self, store: &dyn Store) -> Claim {
        match self.pop(store).await {
            PopOutcome::Claimed(claimed) => claimed,
            PopOutcome::Empty { recheck_after } => {
                panic!("nothing was found for {:?}: {recheck_after:?}", self.0)
            }
        }
    }

    /// There is something, if not at the first look then at one that follows at once.
    pub(crate) async fn claim_soon(&self, store: &dyn Store) -> Claim {
        for _ in 0..MAX_LOOKS {
            match self.pop(store).await {
                PopOutcome::Claimed(claimed) => return claimed,
                PopOutcome::Empty {
                    recheck_after: Some(recheck_after),
                } if recheck_after <= AT_ONCE => {
                    tokio::time::sleep(recheck_after).await;
                }
                PopOutcome::Empty { recheck_after } => {
                    panic!("nothing was found for {:?}: {recheck_after:?}", self.0)
                }
            }
        }
        panic!("it is told to look again for ever: {:?}", self.0);
    }

    /// There is nothing; when to look again. A pop that is told to check again at once does so, as a
    /// held request does.
    pub(crate) async fn nothing(&self, store: &dyn Store) -> Option<Duration> {
        for _ in 0..MAX_LOOKS {
            match self.pop(store).await {
                PopOutcome::Claimed(claimed) => panic!("something was found: {claimed:?}"),
                PopOutcome::Empty {
                    recheck_after: Some(recheck_after),
                } if recheck_after <= AT_ONCE => {
                    tokio::time::sleep(recheck_after).await;
                }
                PopOutcome::Empty { recheck_after } => return recheck_after,
            }
        }
        panic!("it is told to look again for ever: {:?}", self.0);
    }
}

pub(crate) fn names(claimed: &Claim) -> Vec<&str> {
    claimed
        .messages()
        .map(|message| &*message.transaction_id)
        .collect()
}

/// The one partition that was claimed.
pub(crate) fn part(claimed: &Claim) -> &ClaimedPartition {
    assert_eq!(claimed.parts.len(), 1);
    &claimed.parts[0]
}

/// What the holder of a claim says of one of its messages.
pub(crate) fn say(claimed: &Claim, transaction: &str, status: AckStatus) -> Ack {
    let of = claimed
        .parts
        .iter()
        .find(|part| {
            part.messages
                .iter()
                .any(|m| m.transaction_id == transaction)
        })
        .unwrap_or(&claimed.parts[0]);
    Ack {
        partition: of.number,
        group: claimed.group.clone(),
        transaction_id: transaction.to_owned(),
        lease: claimed.lease,
        status,
        error: (status != AckStatus::Completed).then(|| "no".to_owned()),
        keeps_lease: false,
    }
}

/// What came of one acknowledgement.
#[derive(Debug)]
pub(crate) struct AckResult {
    pub(crate) outcome: AckOutcome,
    pub(crate) wakes: Vec<Wake>,
}

pub(crate) async fn say_one(store: &dyn Store, ack: Ack) -> AckResult {
    let acking = WriteBatch::of_acks(vec![ack]);
    let done = apply(store, acking).await;
    AckResult {
        outcome: done.acked[0],
        wakes: done.wakes,
    }
}

/// All in one call.
pub(crate) async fn say_all(store: &dyn Store, acks: Vec<Ack>) -> Vec<AckOutcome> {
    let acking = WriteBatch::of_acks(acks);
    apply(store, acking).await.acked
}

pub(crate) async fn ack(
    store: &dyn Store,
    claimed: &Claim,
    transaction: &str,
    status: AckStatus,
) -> AckResult {
    say_one(store, say(claimed, transaction, status)).await
}

pub(crate) async fn outcome(
    store: &dyn Store,
    claimed: &Claim,
    transaction: &str,
    status: AckStatus,
) -> AckOutcome {
    ack(store, claimed, transaction, status).await.outcome
}

/// Done, and the lease stays.
pub(crate) const GOES_ON: AckOutcome = AckOutcome::Done {
    lease_released: false,
    dead: false,
};
/// Done, and the lease is over.
pub(crate) const RELEASED: AckOutcome = AckOutcome::Done {
    lease_released: true,
    dead: false,
};

pub(crate) async fn release_claim(store: &dyn Store, claimed: &Claim) -> bool {
    let returned = store.release_claim(Arc::new(claimed.clone())).done().await;
    !returned.is_empty()
}

/// Gives a queue options.
pub(crate) async fn configure(store: &dyn Store, queue: &str, options: Options) {
    let new = ConfigureRequest {
        queue: queue.to_owned(),
        namespace: None,
        task: None,
        options,
        given: serde_json::Map::new(),
    };
    store.configure(new).done().await;
}

#[track_caller]
pub(crate) fn assert_about(actual: Option<Duration>, expected: Duration) {
    let actual = actual.expect("a time to look again is known");
    assert!(
        actual <= expected && actual + TOLERANCE > expected,
        "{actual:?} is not about {expected:?}"
    );
}
