//! The operations, in the order of a fact's life: saved, declared a feed of, followed, loaded, read.

mod definitions;
mod feeds;
mod loading;
mod recheck;
mod saving;

use std::{sync::Arc, time::Duration};

use wakeline_bus::Bus;
use wakeline_wake::Engine;

use crate::{
    error::Error,
    fact::Reference,
    hub::{Follower, Hub},
    login::{Caller, User, Users},
    pages::Pages,
    policy::Policies,
    session::{self, Ground},
    store::Store,
};
use definitions::Definitions;
pub use feeds::{Declared, Held};
pub use loading::Loaded;

#[derive(Clone, Debug)]
pub struct Settings {
    pub stream: session::Limits,
    pub page_size: usize,
    pub max_facts: usize,
    pub max_references: usize,
    /// Longest hold of a page that is waited for.
    pub max_hold: Duration,
    /// How long a feed is known that nobody asks for.
    pub keep_definitions: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Feeds {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    ground: Ground,
    definitions: Definitions,
    policies: Arc<Policies>,
    users: Users,
    settings: Settings,
}

impl Feeds {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        policies: Policies,
        settings: Settings,
    ) -> Arc<Self> {
        let hub = Hub::new(store.clone(), engine.clone());
        let follower = Follower::new(hub.clone(), store.clone(), engine.clone());
        let pages = Arc::new(Pages::new(store.clone(), settings.page_size));
        let ground = Ground {
            store: store.clone(),
            engine,
            hub,
            follower,
            pages,
            limits: Arc::new(settings.stream.clone()),
        };
        Arc::new(Self {
            users: Users::new(store.clone()),
            definitions: Definitions::new(store.clone()),
            store,
            bus,
            ground,
            policies: Arc::new(policies),
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
        self.ground.hub.streams()
    }

    /// The caller's fact and key; made when somebody comes for the first time.
    pub async fn user(&self, caller: &Caller) -> Result<Option<Arc<User>>, Error> {
        match &caller.principal {
            None => Ok(None),
            Some(principal) => Ok(Some(self.users.user(principal).await?)),
        }
    }

    async fn user_reference(&self, caller: &Caller) -> Result<Option<Reference>, Error> {
        let user = self.user(caller).await?;
        Ok(user.map(|user| user.fact.reference.clone()))
    }
}
