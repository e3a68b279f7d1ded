//! The operations, in the order of a message's life: push, pop, ack.

mod browse;
mod encryption;
mod message_admin;
mod queue_admin;
mod stats;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use uuid::Uuid;
use wakeline_bus::{Bus, DueWake, Recheck};
use wakeline_wake::{Engine, WaitedKey};
use wakeline_web::{CheckResult, DeliveryGuard, HoldOutcome, hold};

use crate::{
    claim::{Claim, PopOutcome, PopRequest, Start},
    counters::{Counters, HeldPopSamples, NodeStatsSampler},
    error::Error,
    message::{NewMessage, PushReceipt, PushRefusal},
    node::Node,
    seal::{KeyFile, QueueSealer, Sealer},
    store::Store,
    topic,
    write_batch::{BatchOutcome, Rejection, WriteBatch},
};

/// How long a held request leaves the store alone after it has failed to answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages per push, acknowledgements per call.
    pub max_items: usize,
    /// Messages per pop.
    pub max_batch: u32,
    /// Messages per pop that names no number.
    pub default_batch: u32,
    /// Partitions per pop.
    pub max_partitions: u32,
    /// Characters of a queue's, partition's or group's name.
    pub max_name: usize,
    /// Characters of a transaction id.
    pub max_transaction_id: usize,
    /// How long a lease lasts if the queue has no `leaseTime`.
    pub lease: Duration,
    /// How long a lease may be extended at once.
    pub max_lease: Duration,
    pub default_hold: Duration,
    pub max_hold: Duration,
    /// Where a new group starts if its first pop does not say.
    pub default_start: Start,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_items: 10_000,
            max_batch: 10_000,
            default_batch: 200,
            max_partitions: 1_000,
            max_name: 255,
            max_transaction_id: 255,
            lease: Duration::from_secs(300),
            max_lease: Duration::from_secs(86_400),
            default_hold: Duration::from_secs(30),
            max_hold: Duration::from_secs(600),
            default_start: Start::All,
        }
    }
}

/// The door: its store, its waiters, and what it counts.
#[derive(Debug)]
pub struct Queue {
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    limits: Limits,
    sealer: OnceLock<Arc<QueueSealer>>,
    /// Where a key may be made.
    key_file: OnceLock<KeyFile>,
    /// Held while a key is made, so that there is one only.
    making_key: tokio::sync::Mutex<()>,
    counters: Arc<Counters>,
    held_pops: HeldPopSamples,
    sampler: NodeStatsSampler,
    node: OnceLock<Node>,
}

impl Queue {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        limits: Limits,
        sealer: Option<Sealer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            engine,
            bus,
            limits,
            sealer: sealer.map_or_else(OnceLock::new, |sealer| {
                Arc::new(QueueSealer::new(sealer)).into()
            }),
            key_file: OnceLock::new(),
            making_key: tokio::sync::Mutex::default(),
            counters: Arc::default(),
            held_pops: HeldPopSamples::default(),
            sampler: NodeStatsSampler::default(),
            node: OnceLock::new(),
        })
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    #[must_use]
    pub fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// Stores the messages, each for itself. When it returns, the messages that were not refused are
    /// on disk and their waiters have been woken.
    pub async fn push(
        &self,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<PushReceipt, PushRefusal>>, Error> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let batch = WriteBatch::of_pushes(messages);
        Ok(self.apply(batch).await?.pushed)
    }

    /// Pushes and acknowledges. When it returns, what was done is on disk and the waiters that it
    /// concerns have been woken.
    pub async fn apply(&self, mut batch: WriteBatch) -> Result<BatchOutcome, Error> {
        self.counters.count_call(&batch);
        let Some(sealer) = self.sealer.get() else {
            return self.commit(Arc::new(batch)).await;
        };
        batch.keys = sealer.fingerprints();
        sealer.seal_known(&mut batch.pushes);
        let batch = Arc::new(batch);
        let mut done = self.commit(batch.clone()).await?;
        // A queue that keeps its messages sealed refuses plain ones: seal what it refused.
        if let Some(Rejection::Push(_, PushRefusal::Unsealed)) = done.rejection {
            let mut sealed = WriteBatch::clone(&batch);
            sealer.seal_refused(&mut sealed.pushes);
            return self.commit(Arc::new(sealed)).await;
        }
        let refused: Vec<usize> = (0..done.pushed.len())
            .filter(|index| done.pushed[*index] == Err(PushRefusal::Unsealed))
            .collect();
        if !refused.is_empty() {
            let mut pushes: Vec<NewMessage> = refused
                .iter()
                .map(|index| batch.pushes[*index].clone())
                .collect();
            sealer.seal_refused(&mut pushes);
            let sealed = WriteBatch {
                keys: sealer.fingerprints(),
                ..WriteBatch::of_pushes(pushes)
            };
            let sealed = self.commit(Arc::new(sealed)).await?;
            for (index, pushed) in refused.into_iter().zip(sealed.pushed) {
                done.pushed[index] = pushed;
            }
        }
        Ok(done)
    }

    async fn commit(&self, batch: Arc<WriteBatch>) -> Result<BatchOutcome, Error> {
        let (counters, counted) = (self.counters.clone(), batch.clone());
        let write = self.store.apply(batch).map(move |done| {
            counters.count_outcome(&counted, &done);
            done
        });
        Ok(write.commit(&self.bus).await?)
    }

    /// Decrypts a sealed payload.
    pub fn open(&self, message: &mut crate::message::Message) -> Result<(), Error> {
        if message.is_sealed {
            let sealer = self.sealer.get().map(|sealer| sealer.key());
            message.payload = Sealer::open(sealer, &message.payload)?;
            message.is_sealed = false;
        }
        Ok(())
    }

    /// Claims messages, held for at most `time` until there are any.
    pub async fn pop(
        self: &Arc<Self>,
        request: PopRequest,
        time: Duration,
    ) -> Result<HoldOutcome<ClaimGuard>, Error> {
        self.counters.count_pop(&request.source);
        let request = Arc::new(request);
        let key = request.key();
        let mut is_held = false;
        let check = || {
            let (door, request) = (self.clone(), request.clone());
            let was_held = std::mem::replace(&mut is_held, true);
            async move { door.check(request, was_held).await }
        };
        let held = hold(
            &self.engine,
            topic::DOOR,
            std::slice::from_ref(&key),
            time,
            check,
        )
        .await?;
        if held.value.is_none() {
            self.counters.count_empty_pop(&request.source);
        }
        Ok(held)
    }

    async fn check(
        self: Arc<Self>,
        request: Arc<PopRequest>,
        was_held: bool,
    ) -> Result<CheckResult<ClaimGuard>, Error> {
        match self.claim(request).await {
            // A pop that is already held waits until the outage is over.
            Err(Error::Store(error)) if was_held && error.is_outage() => Ok(CheckResult::Nothing {
                recheck_after: Some(OUTAGE_PAUSE),
            }),
            checked => checked,
        }
    }

    /// One claim. If the caller hangs up, the write's task drops the claim, which releases it at once
    /// and not when its lease ends.
    async fn claim(
        self: Arc<Self>,
        request: Arc<PopRequest>,
    ) -> Result<CheckResult<ClaimGuard>, Error> {
        let door = self.clone();
        let claiming = self
            .store
            .pop(request, Uuid::now_v7(), self.limits.lease)
            .map(move |popped| match popped {
                PopOutcome::Empty { recheck_after } => CheckResult::Nothing { recheck_after },
                PopOutcome::Claimed(claimed) => CheckResult::Found(door.guard(claimed)),
            });
        let mut checked = claiming.commit(&self.bus).await?;
        if let CheckResult::Found(claim) = &mut checked {
            claim.open()?;
        }
        Ok(checked)
    }

    fn guard(self: Arc<Self>, claimed: Claim) -> ClaimGuard {
        self.counters.count_claim(&claimed);
        // Pops that waited before the lease began have no timer for its end.
        if let Some(time) = claimed.time {
            for key in claimed.keys() {
                self.engine.recheck_after(&key, time);
            }
        }
        ClaimGuard {
            claim: Some(Arc::new(claimed)),
            door: self,
        }
    }

    /// Extends a lease. In how many partitions, and until when.
    pub async fn extend(&self, lease: Uuid, time: Duration) -> Result<Option<(usize, i64)>, Error> {
        let extending = self.store.extend(lease, time.min(self.limits.max_lease));
        Ok(extending.commit(&self.bus).await?)
    }
}

/// A claim on its way to the client. If it is dropped before it was delivered, it is released.
#[derive(Debug)]
pub struct ClaimGuard {
    claim: Option<Arc<Claim>>,
    door: Arc<Queue>,
}

impl ClaimGuard {
    #[must_use]
    pub fn claim(&self) -> &Claim {
        self.claim
            .as_deref()
            .expect("a claim is there until it is delivered or dropped")
    }

    /// Decrypts sealed payloads. If that fails, the claim is dropped and so released.
    fn open(&mut self) -> Result<(), Error> {
        if !self.claim().messages().any(|message| message.is_sealed) {
            return Ok(());
        }
        let mut opened = self.claim().clone();
        for part in &mut opened.parts {
            for message in &mut part.messages {
                self.door.open(message)?;
            }
        }
        self.claim = Some(Arc::new(opened));
        Ok(())
    }
}

impl DeliveryGuard for ClaimGuard {
    fn delivered(mut self) {
        self.claim = None;
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let queue = claim.queue.clone();
            let releasing = self.door.store.release_claim(claim).commit(&self.door.bus);
            runtime.spawn(async move {
                if let Err(error) = releasing.await {
                    tracing::warn!(%error, queue, "a claim could not be released; its messages are redelivered when its lease ends");
                }
            });
        }
    }
}

impl Recheck for Queue {
    fn door(&self) -> &'static str {
        topic::DOOR
    }

    fn recheck(
        &self,
        waiting: Vec<WaitedKey>,
    ) -> BoxFuture<'_, Result<Vec<DueWake>, wakeline_store::Error>> {
        self.store.recheck(waiting).boxed()
    }
}
