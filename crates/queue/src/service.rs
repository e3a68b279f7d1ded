//! The operations, in the order of a message's life: push, pop, ack.

mod browse;
mod counting;
mod manage;

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
    claim::{Claimed, PopRequest, Popped, Start},
    error::Error,
    message::{NewMessage, Pushed, Refusal},
    node::Node,
    seal::{Sealer, Sealing},
    step::{Done, Rejection, Step},
    store::Store,
    tally::{Pulse, Samples, Tally},
    topic,
};

/// How long a held request leaves the store alone after it has failed to answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Limits {
    /// Messages per push, acknowledgements per call.
    pub max_items: usize,
    /// Messages per pop.
    pub max_batch: u32,
    /// Messages per pop that does not say.
    pub default_batch: u32,
    /// Partitions per pop.
    pub max_partitions: u32,
    /// Characters of a queue's, partition's or group's name.
    pub max_name: usize,
    /// Characters of a transaction id.
    pub max_transaction_id: usize,
    /// How long a lease lasts if the queue does not say.
    pub lease: Duration,
    /// How long a lease may be made to last at once.
    pub max_lease: Duration,
    pub default_hold: Duration,
    pub max_hold: Duration,
    /// Where a group begins that does not say.
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

/// The door.
#[derive(Debug)]
pub struct Queue {
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    limits: Limits,
    sealing: Option<Arc<Sealing>>,
    tally: Arc<Tally>,
    parked: Samples,
    pulse: Pulse,
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
            sealing: sealer.map(|sealer| Arc::new(Sealing::new(sealer))),
            tally: Arc::default(),
            parked: Samples::default(),
            pulse: Pulse::default(),
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

    /// Stores the messages, each for itself. When it returns, what was not refused is on disk, and
    /// whoever waits for it has been woken.
    pub async fn push(
        &self,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Pushed, Refusal>>, Error> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let step = Step {
            pushes: messages,
            ..Step::default()
        };
        Ok(self.step(step).await?.pushed)
    }

    /// Pushes and acknowledges. When it returns, what was done is on disk, and whoever it concerns
    /// has been woken.
    pub async fn step(&self, mut step: Step) -> Result<Done, Error> {
        self.tally.asked(&step);
        let Some(sealing) = &self.sealing else {
            return self.commit(Arc::new(step)).await;
        };
        sealing.seal_known(&mut step.pushes);
        let step = Arc::new(step);
        let mut done = self.commit(step.clone()).await?;
        // A queue that keeps its messages sealed refuses plain ones: seal what it refused.
        if let Some(Rejection::Push(_, Refusal::Unsealed)) = done.rejection {
            let mut recheck_after = Step::clone(&step);
            sealing.seal_refused(&mut recheck_after.pushes);
            return self.commit(Arc::new(recheck_after)).await;
        }
        let refused: Vec<usize> = (0..done.pushed.len())
            .filter(|index| done.pushed[*index] == Err(Refusal::Unsealed))
            .collect();
        if !refused.is_empty() {
            let mut pushes: Vec<NewMessage> = refused
                .iter()
                .map(|index| step.pushes[*index].clone())
                .collect();
            sealing.seal_refused(&mut pushes);
            let recheck_after = Step {
                pushes,
                ..Step::default()
            };
            let recheck_after = self.commit(Arc::new(recheck_after)).await?;
            for (index, pushed) in refused.into_iter().zip(recheck_after.pushed) {
                done.pushed[index] = pushed;
            }
        }
        Ok(done)
    }

    async fn commit(&self, step: Arc<Step>) -> Result<Done, Error> {
        let (tally, asked) = (self.tally.clone(), step.clone());
        let write = self.store.step(step).map(move |done| {
            tally.step(&asked, &done);
            done
        });
        Ok(write.commit(&self.bus).await?)
    }

    /// Opens what is sealed in messages that are shown or handed out.
    pub fn open(&self, message: &mut crate::message::Message) -> Result<(), Error> {
        if message.is_sealed {
            let sealing = self.sealing.as_ref().ok_or(Error::NoKey)?;
            message.payload = sealing.sealer().open(&message.payload)?;
            message.is_sealed = false;
        }
        Ok(())
    }

    /// Claims messages, held for at most `time` until there are any.
    pub async fn pop(
        self: &Arc<Self>,
        request: PopRequest,
        time: Duration,
    ) -> Result<HoldOutcome<Claim>, Error> {
        self.tally.asked_for(&request.source);
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
            self.tally.found_nothing(&request.source);
        }
        Ok(held)
    }

    async fn check(
        self: Arc<Self>,
        request: Arc<PopRequest>,
        was_held: bool,
    ) -> Result<CheckResult<Claim>, Error> {
        match self.claim(request).await {
            // Whoever is already held sits the outage out.
            Err(Error::Store(error)) if was_held && error.is_outage() => Ok(CheckResult::Nothing {
                recheck_after: Some(OUTAGE_PAUSE),
            }),
            checked => checked,
        }
    }

    /// One claim. A caller that hangs up leaves it to the write's task, which drops it: so what it
    /// claims is handed back at once and not when its lease ends.
    async fn claim(self: Arc<Self>, request: Arc<PopRequest>) -> Result<CheckResult<Claim>, Error> {
        let door = self.clone();
        let claiming = self
            .store
            .pop(request, Uuid::now_v7(), self.limits.lease)
            .map(move |popped| match popped {
                Popped::Empty { recheck_after } => CheckResult::Nothing { recheck_after },
                Popped::Claimed(claimed) => CheckResult::Found(door.guard(claimed)),
            });
        let mut checked = claiming.commit(&self.bus).await?;
        if let CheckResult::Found(claim) = &mut checked {
            claim.open()?;
        }
        Ok(checked)
    }

    fn guard(self: Arc<Self>, claimed: Claimed) -> Claim {
        self.tally.claim(&claimed);
        // Those who waited before the lease began do not know when it ends.
        if let Some(time) = claimed.time {
            for key in claimed.keys() {
                self.engine.recheck_after(&key, time);
            }
        }
        Claim {
            claimed: Some(Arc::new(claimed)),
            door: self,
        }
    }

    /// Makes a lease last longer. In how many partitions, and until when.
    pub async fn extend(&self, lease: Uuid, time: Duration) -> Result<Option<(usize, i64)>, Error> {
        let extending = self.store.extend(lease, time.min(self.limits.max_lease));
        Ok(extending.commit(&self.bus).await?)
    }
}

/// A claim on its way to the caller. Dropped before it was delivered, it is handed back.
#[derive(Debug)]
pub struct Claim {
    claimed: Option<Arc<Claimed>>,
    door: Arc<Queue>,
}

impl Claim {
    #[must_use]
    pub fn claimed(&self) -> &Claimed {
        self.claimed
            .as_deref()
            .expect("a claim is there until it is delivered or dropped")
    }

    /// Opens what is sealed. If it cannot be, the claim is handed back by being dropped.
    fn open(&mut self) -> Result<(), Error> {
        if !self.claimed().messages().any(|message| message.is_sealed) {
            return Ok(());
        }
        let mut opened = self.claimed().clone();
        for part in &mut opened.parts {
            for message in &mut part.messages {
                self.door.open(message)?;
            }
        }
        self.claimed = Some(Arc::new(opened));
        Ok(())
    }
}

impl DeliveryGuard for Claim {
    fn delivered(mut self) {
        self.claimed = None;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let queue = claimed.queue.clone();
            let returning = self.door.store.hand_back(claimed).commit(&self.door.bus);
            runtime.spawn(async move {
                if let Err(error) = returning.await {
                    tracing::warn!(%error, queue, "a claim could not be handed back; it comes again when its lease ends");
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
