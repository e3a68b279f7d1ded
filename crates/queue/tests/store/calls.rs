//! Calls of a store, with short names for tests.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    browse::{MessageAddress, MessageFilter, Page},
    claim::{Claim, ClaimedPartition, PopOutcome, PopRequest, Source, Start},
    id,
    message::{NewMessage, PushReceipt},
    options::Options,
    queue_admin::{ConfigureRequest, GroupScope},
    store::Store,
    write_batch::{BatchOutcome, WriteBatch},
};
use wakeline_testkit::CommitAlone;
use wakeline_wake::{WaitKey, WaitedKey, Wake};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const HOUR_US: i64 = 3_600_000_000;
/// The lease time that the caller of `pop` names.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A pop that must check again within this time does so at once.
const AT_ONCE: Duration = Duration::from_millis(10);
const MAX_POPS: usize = 50;

/// Time that passes on PostgreSQL while a test runs.
const TOLERANCE: Duration = Duration::from_secs(20);

/// More rows than any test has.
pub(crate) const ALL: Page = Page {
    limit: 1_000,
    offset: 0,
};

pub(crate) fn message(queue: &str, partition: &str, transaction: &str) -> NewMessage {
    NewMessage {
        queue: queue.to_owned(),
        partition: partition.to_owned(),
        transaction_id: Some(transaction.to_owned()),
        payload: format!("\"{transaction}\"").into(),
        ..NewMessage::default()
    }
}

fn messages(queue: &str, partition: &str, transactions: &[&str]) -> Vec<NewMessage> {
    let transactions = transactions.iter();
    transactions
        .map(|transaction| message(queue, partition, transaction))
        .collect()
}

/// One push of these transactions to a partition; returns the groups that it made ready.
pub(crate) async fn push(
    store: &dyn Store,
    queue: &str,
    partition: &str,
    transactions: &[&str],
) -> Vec<Wake> {
    let done = try_push(store, messages(queue, partition, transactions)).await;
    assert_eq!(done.pushed.len(), transactions.len());
    for pushed in &done.pushed {
        assert!(pushed.as_ref().is_ok_and(|pushed| !pushed.duplicate));
    }
    done.wakes
}

/// Like [`push`], but one push for each transaction, so that each message is a segment of its own.
pub(crate) async fn push_each(
    store: &dyn Store,
    queue: &str,
    partition: &str,
    transactions: &[&str],
) -> Vec<PushReceipt> {
    let mut pushed = Vec::new();
    for message in messages(queue, partition, transactions) {
        pushed.extend(push_all(store, vec![message]).await);
    }
    pushed
}

pub(crate) async fn push_together(
    store: &dyn Store,
    queue: &str,
    partition: &str,
    transactions: &[&str],
) -> Vec<PushReceipt> {
    push_all(store, messages(queue, partition, transactions)).await
}

pub(crate) async fn apply(store: &dyn Store, batch: WriteBatch) -> BatchOutcome {
    store.apply(Arc::new(batch)).done().await
}

pub(crate) async fn try_push(store: &dyn Store, pushes: Vec<NewMessage>) -> BatchOutcome {
    apply(store, WriteBatch::of_pushes(pushes)).await
}

pub(crate) async fn push_all(store: &dyn Store, messages: Vec<NewMessage>) -> Vec<PushReceipt> {
    let done = try_push(store, messages).await;
    done.pushed.into_iter().map(Result::unwrap).collect()
}

/// A write batch that is done as a whole or rejected.
pub(crate) fn whole_batch(acks: Vec<Ack>, pushes: Vec<NewMessage>) -> WriteBatch {
    WriteBatch {
        pushes,
        acks,
        is_whole: true,
        ..WriteBatch::default()
    }
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
        lease_time: None,
    })
}

/// A request of group `g` for one message of any queue with this namespace or task.
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

    pub(crate) fn lease_time(mut self, time: Duration) -> Self {
        self.0.lease_time = Some(time);
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

    async fn pop_with(&self, store: &dyn Store, lease: Uuid) -> PopOutcome {
        let request = Arc::new(self.0.clone());
        store.pop(request, lease, LEASE).done().await
    }

    pub(crate) async fn pop(&self, store: &dyn Store) -> PopOutcome {
        self.pop_with(store, Uuid::now_v7()).await
    }

    /// Pops again as long as it must check again at once, as a held request does.
    pub(crate) async fn pop_until_sure(&self, store: &dyn Store, lease: Uuid) -> PopOutcome {
        self.pop_of_any_until_sure(|| store, lease).await
    }

    /// Like [`Self::pop_until_sure`], each time from the store that `node` chooses.
    pub(crate) async fn pop_of_any_until_sure<'a>(
        &self,
        mut node: impl FnMut() -> &'a dyn Store,
        lease: Uuid,
    ) -> PopOutcome {
        for _ in 0..MAX_POPS {
            match self.pop_with(node(), lease).await {
                PopOutcome::Empty {
                    recheck_after: Some(time),
                } if time <= AT_ONCE => tokio::time::sleep(time).await,
                popped => return popped,
            }
        }
        panic!("it is told to check again for ever: {:?}", self.0);
    }

    fn claimed(&self, popped: PopOutcome) -> Claim {
        match popped {
            PopOutcome::Claimed(claimed) => claimed,
            PopOutcome::Empty { recheck_after } => {
                panic!("nothing was found for {:?}: {recheck_after:?}", self.0)
            }
        }
    }

    /// The claim of a pop, which must find messages.
    pub(crate) async fn claim(&self, store: &dyn Store) -> Claim {
        self.claimed(self.pop(store).await)
    }

    /// The claim of a pop that must find messages, if not at once then at its immediate check
    /// again.
    pub(crate) async fn claim_soon(&self, store: &dyn Store) -> Claim {
        self.claimed(self.pop_until_sure(store, Uuid::now_v7()).await)
    }

    /// The pop must find nothing; returns when to check again.
    pub(crate) async fn nothing(&self, store: &dyn Store) -> Option<Duration> {
        match self.pop_until_sure(store, Uuid::now_v7()).await {
            PopOutcome::Claimed(claimed) => panic!("something was found: {claimed:?}"),
            PopOutcome::Empty { recheck_after } => recheck_after,
        }
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

/// The acknowledgement of a message by the consumer that has the claim.
pub(crate) fn ack_of(claimed: &Claim, transaction: &str, status: AckStatus) -> Ack {
    let has_it = |part: &&ClaimedPartition| {
        let mut messages = part.messages.iter();
        messages.any(|message| message.transaction_id == transaction)
    };
    let part = claimed.parts.iter().find(has_it);
    Ack {
        partition: part.unwrap_or(&claimed.parts[0]).number,
        group: claimed.group.clone(),
        transaction_id: transaction.to_owned(),
        lease: claimed.lease,
        status,
        error: (status != AckStatus::Completed).then(|| "no".to_owned()),
        keeps_lease: false,
    }
}

/// The same claim of a consumer that does not send its lease.
pub(crate) fn without_lease(claimed: &Claim) -> Claim {
    Claim {
        lease: None,
        ..claimed.clone()
    }
}

/// All messages of the claim in one call.
pub(crate) async fn ack_all(store: &dyn Store, acks: Vec<Ack>) -> Vec<AckOutcome> {
    apply(store, WriteBatch::of_acks(acks)).await.acked
}

/// The outcome of one acknowledgement, and the groups that it wakes.
pub(crate) async fn ack(
    store: &dyn Store,
    claimed: &Claim,
    transaction: &str,
    status: AckStatus,
) -> (AckOutcome, Vec<Wake>) {
    let batch = WriteBatch::of_acks(vec![ack_of(claimed, transaction, status)]);
    let done = apply(store, batch).await;
    (done.acked[0], done.wakes)
}

pub(crate) async fn outcome(
    store: &dyn Store,
    claimed: &Claim,
    transaction: &str,
    status: AckStatus,
) -> AckOutcome {
    ack(store, claimed, transaction, status).await.0
}

macro_rules! acks {
    ($($name:ident: $status:ident;)+) => {
        $(pub(crate) async fn $name(
            store: &dyn Store,
            claimed: &Claim,
            transaction: &str,
        ) -> AckOutcome {
            outcome(store, claimed, transaction, AckStatus::$status).await
        })+
    };
}

acks! {
    complete: Completed;
    fail: Failed;
    retry: Retry;
    make_dead: DeadLetter;
}

/// Claims up to `batch` messages and completes them.
pub(crate) async fn consume(
    store: &dyn Store,
    queue: &str,
    group: &str,
    batch: u32,
) -> Vec<String> {
    let request = from(queue).group(group).batch(batch);
    let claimed = request.claim_soon(store).await;
    let names: Vec<String> = names(&claimed).into_iter().map(str::to_owned).collect();
    let last = names.last().expect("a claim has messages");
    assert!(complete(store, &claimed, last).await.is_success());
    names
}

/// Claims one message and makes it a dead letter.
pub(crate) async fn make_next_dead(store: &dyn Store, queue: &str, group: &str) -> String {
    let claimed = from(queue).group(group).claim_soon(store).await;
    let name = names(&claimed)[0];
    assert!(make_dead(store, &claimed, name).await.is_success());
    name.to_owned()
}

/// The ack is done, and the lease stays.
pub(crate) const GOES_ON: AckOutcome = AckOutcome::Done {
    lease_released: false,
    dead: false,
};
/// The ack is done, and the lease is released.
pub(crate) const RELEASED: AckOutcome = AckOutcome::Done {
    lease_released: true,
    dead: false,
};
/// The message is a dead letter now, and the lease is released.
pub(crate) const DEAD: AckOutcome = AckOutcome::Done {
    lease_released: true,
    dead: true,
};

/// Position and failures of every dead letter.
pub(crate) const DEAD_LETTERS: &str =
    "SELECT position, CAST(failures AS bigint) FROM queue_dead_letter ORDER BY 1";

pub(crate) async fn release_claim(store: &dyn Store, claimed: &Claim) -> bool {
    let returned = store.release_claim(Arc::new(claimed.clone())).done().await;
    !returned.is_empty()
}

/// A queue's configuration with these options, the others at their defaults.
pub(crate) fn configuration(queue: &str, change: impl FnOnce(&mut Options)) -> ConfigureRequest {
    let mut options = Options::default();
    change(&mut options);
    ConfigureRequest {
        queue: queue.to_owned(),
        namespace: None,
        task: None,
        options,
        given: serde_json::Map::new(),
        made_of: None,
    }
}

pub(crate) async fn configure(store: &dyn Store, queue: &str, change: impl FnOnce(&mut Options)) {
    let request = configuration(queue, change);
    store.configure(request).done().await;
}

/// Group `g`, in one queue or in all, in one partition or in all.
pub(crate) fn scope(queue: Option<&str>, partition: Option<&str>) -> GroupScope {
    GroupScope {
        group: "g".to_owned(),
        queue: queue.map(str::to_owned),
        partition: partition.map(str::to_owned),
    }
}

/// When each of these keys may have messages, in their order.
pub(crate) async fn recheck(store: &dyn Store, keys: &[WaitKey]) -> Vec<Option<Duration>> {
    let waiting = keys.iter().map(|key| WaitedKey {
        topic: key.topic.clone(),
        group: key.group.clone(),
        waiters: 1,
    });
    let dues = store.recheck(waiting.collect()).await.unwrap();
    assert!(dues.iter().all(|due| keys.contains(&due.key)));
    let due = |key: &WaitKey| {
        let mut of_key = dues.iter().filter(|due| due.key == *key);
        let due = of_key.next().map(|due| due.after);
        assert!(of_key.next().is_none(), "one answer per key");
        due
    };
    keys.iter().map(due).collect()
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
        partition: id::partition_number(&pushed.partition_id).unwrap(),
        transaction_id: pushed.transaction_id.clone(),
    }
}

#[track_caller]
pub(crate) fn assert_about(actual: Option<Duration>, expected: Duration) {
    let actual = actual.expect("a time to check again is known");
    assert!(
        actual <= expected && actual + TOLERANCE > expected,
        "{actual:?} is not about {expected:?}"
    );
}
