//! The operations, in the order of a message's life: push, pop, ack.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use uuid::Uuid;
use wakeline_bus::{Bus, Due, Recheck};
use wakeline_wake::{Engine, Waiting};
use wakeline_web::{Checked, Held, Parcel, hold};

use crate::{
    ack::{Ack, Acked},
    claim::{Claimed, PopRequest, Popped},
    error::Error,
    message::{NewMessage, Pushed},
    store::Store,
    topic,
};

/// How long a held request leaves the store alone after it has failed to answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Messages per push.
    pub max_items: usize,
    /// Messages per pop.
    pub max_batch: u32,
    /// Characters of a queue's, partition's or group's name.
    pub max_name: usize,
    /// Characters of a transaction id.
    pub max_transaction_id: usize,
    /// How long a lease lasts if the queue does not say.
    pub lease: Duration,
    pub default_hold: Duration,
    pub max_hold: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_items: 10_000,
            max_batch: 10_000,
            max_name: 255,
            max_transaction_id: 255,
            lease: Duration::from_secs(300),
            default_hold: Duration::from_secs(30),
            max_hold: Duration::from_secs(600),
        }
    }
}

/// The door.
#[derive(Clone, Debug)]
pub struct Queue {
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    limits: Limits,
}

impl Queue {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        limits: Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            engine,
            bus,
            limits,
        })
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Stores all of `messages` or none. When it returns they are on disk, and whoever waits for
    /// them has been woken.
    pub async fn push(&self, messages: Vec<NewMessage>) -> Result<Vec<Pushed>, Error> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let (store, bus) = (self.store.clone(), self.bus.clone());
        // A task of its own: if the producer hangs up after the commit, the wake still happens.
        let pushing = tokio::spawn(async move {
            let (pushed, ready) = store.push(messages.into()).await?;
            // After the commit: whoever is woken must find what it is woken for.
            bus.publish(&ready);
            Ok(pushed)
        });
        finished(pushing.await)
    }

    /// Claims messages, held for at most `time` until there are any.
    pub async fn pop(
        self: &Arc<Self>,
        request: PopRequest,
        time: Duration,
    ) -> Result<Held<Claim>, Error> {
        let request = Arc::new(request);
        let place = request.place();
        let mut is_held = false;
        let check = || {
            let (door, request) = (self.clone(), request.clone());
            let was_held = std::mem::replace(&mut is_held, true);
            async move { door.check(request, was_held).await }
        };
        Ok(hold(
            &self.engine,
            topic::DOOR,
            std::slice::from_ref(&place),
            time,
            check,
        )
        .await?)
    }

    async fn check(
        self: Arc<Self>,
        request: Arc<PopRequest>,
        was_held: bool,
    ) -> Result<Checked<Claim>, Error> {
        match self.claim(request).await {
            // Whoever is already held sits the outage out.
            Err(Error::Store(error)) if was_held && error.is_outage() => Ok(Checked::Nothing {
                again: Some(OUTAGE_PAUSE),
            }),
            checked => checked,
        }
    }

    /// One claim. It goes on in a task of its own when the caller hangs up, so that what it claims
    /// is handed back at once and not when its lease ends.
    async fn claim(self: Arc<Self>, request: Arc<PopRequest>) -> Result<Checked<Claim>, Error> {
        let claiming = tokio::spawn(async move {
            let popped = self
                .store
                .pop(request, Uuid::now_v7(), self.limits.lease)
                .await?;
            Ok(match popped {
                Popped::Empty { again } => Checked::Nothing { again },
                Popped::Claimed(claimed) => {
                    if let Some(ready) = claimed.ready() {
                        self.bus.publish(&[ready]);
                    }
                    // Those who waited before the lease began do not know when it ends.
                    if let Some(time) = claimed.time {
                        for place in claimed.places() {
                            self.engine.alarm(&place, time);
                        }
                    }
                    Checked::Found(Claim {
                        claimed: Some(Arc::new(claimed)),
                        door: self,
                    })
                }
            })
        });
        finished(claiming.await)
    }

    async fn hand_back(&self, claimed: Arc<Claimed>) {
        match self.store.hand_back(claimed.clone()).await {
            Ok(true) => {
                let group = Some(claimed.group.as_str());
                self.bus
                    .publish(&[topic::ready(&claimed.queue, &claimed.partition, group, 1)]);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, queue = claimed.queue, "a claim could not be handed back; it comes again when its lease ends");
            }
        }
    }

    pub async fn ack(&self, ack: Ack) -> Result<Acked, Error> {
        let (store, bus) = (self.store.clone(), self.bus.clone());
        let acking = tokio::spawn(async move {
            let ack = Arc::new(ack);
            let acked = store.ack(ack.clone()).await?;
            if let Some(ready) = acked.wake(&ack.group) {
                bus.publish(&[ready]);
            }
            Ok(acked)
        });
        finished(acking.await)
    }
}

fn finished<T>(
    joined: Result<Result<T, wakeline_store::Error>, tokio::task::JoinError>,
) -> Result<T, Error> {
    let lost =
        |error: tokio::task::JoinError| wakeline_store::Error::OutcomeUnknown(error.to_string());
    Ok(joined.map_err(lost)??)
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
}

impl Parcel for Claim {
    fn delivered(mut self) {
        self.claimed = None;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let door = self.door.clone();
            runtime.spawn(async move { door.hand_back(claimed).await });
        }
    }
}

impl Recheck for Queue {
    fn door(&self) -> &'static str {
        topic::DOOR
    }

    fn recheck(
        &self,
        waiting: Vec<Waiting>,
    ) -> BoxFuture<'_, Result<Vec<Due>, wakeline_store::Error>> {
        self.store.recheck(waiting).boxed()
    }
}
