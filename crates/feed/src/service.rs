//! The operations, in the order of a fact's life: save it, declare its feeds, follow them, load,
//! read.

mod declaring;
mod definitions;
mod following;
mod loading;
mod reading;
mod recheck;
mod saving;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_bus::Bus;
use wakeline_wake::Engine;

use crate::{
    error::Error,
    fact::Reference,
    hub::{Follower, Hub},
    login::{Caller, User, Users},
    pages::Pages,
    policy::Policies,
    signature::Verifier,
    store::{REFRESHED_AFTER, Store},
    stream::{self, StreamServices},
};
pub use declaring::DeclaredFeeds;
use definitions::Definitions;
pub use following::PageResult;
pub use loading::LoadedFacts;

const TIDYING: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Debug)]
pub struct Settings {
    pub stream: stream::Limits,
    pub page_size: usize,
    pub max_facts: usize,
    pub max_references: usize,
    /// Longest hold of a page that is waited for.
    pub max_hold: Duration,
    /// How long an unused feed is known.
    pub keep_definitions: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Feeds {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    services: StreamServices,
    definitions: Definitions,
    /// `None`: every caller may do everything.
    policies: Option<Arc<Policies>>,
    users: Users,
    verifier: Arc<Verifier>,
    settings: Settings,
}

impl Feeds {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        policies: Option<Policies>,
        settings: Settings,
    ) -> Arc<Self> {
        let hub = Hub::new(store.clone(), engine.clone());
        let follower = Follower::new(hub.clone(), store.clone(), engine.clone());
        let pages = Arc::new(Pages::new(store.clone(), settings.page_size));
        let services = StreamServices {
            store: store.clone(),
            engine,
            hub,
            follower,
            pages,
            limits: Arc::new(settings.stream.clone()),
        };
        Arc::new(Self {
            users: Users::new(store.clone(), bus.clone()),
            definitions: Definitions::new(store.clone(), bus.clone()),
            store,
            bus,
            services,
            policies: policies.map(Arc::new),
            verifier: Arc::default(),
            settings,
        })
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.services.hub.streams()
    }

    /// The caller's fact and key, which the first call makes and stores.
    pub async fn user(&self, caller: &Caller) -> Result<Option<Arc<User>>, Error> {
        match &caller.principal {
            None => Ok(None),
            // PostgreSQL cannot keep it.
            Some(principal) if principal.id.contains('\0') => {
                Err(Error::Unauthorized("Invalid subject".to_owned()))
            }
            Some(principal) => Ok(Some(self.users.of(principal).await?)),
        }
    }

    /// The user whom the rules are checked for.
    async fn reader(&self, caller: &Caller) -> Result<Option<Reference>, Error> {
        let user = self.user(caller).await?;
        Ok(user.map(|user| user.fact.reference.clone()))
    }

    /// Purges facts that match conditions which are newer than the facts. Then, for ever, it
    /// forgets unused feeds once a day.
    pub async fn tidy(self: Arc<Self>) {
        if let Some(policies) = &self.policies {
            match policies.purge.all(&*self.store, &self.bus).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "facts were purged"),
                Err(error) => tracing::warn!(%error, "not everything obsolete was purged"),
            }
        }
        loop {
            let now = jiff::Timestamp::now().as_microsecond();
            if let Err(error) = self.forget_feeds(now, Instant::now()).await {
                tracing::warn!(%error, "old feeds could not be forgotten");
            }
            tokio::time::sleep(TIDYING).await;
        }
    }

    /// `now` is in microseconds since 1970.
    async fn forget_feeds(&self, now: i64, instant: Instant) -> Result<u64, Error> {
        self.definitions.refresh_followed(instant).await?;
        let kept = i64::try_from(self.settings.keep_definitions.as_micros()).unwrap_or(i64::MAX);
        // A node notes a use at most once a day, and the store keeps its time to a day.
        let since = now.saturating_sub(kept).saturating_sub(2 * REFRESHED_AFTER);
        let forgotten = self.store.forget_definitions(since);
        Ok(forgotten.commit(&self.bus).await?)
    }
}
