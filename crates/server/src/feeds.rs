//! The feed door: from the configuration to a running door.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::Mutex;
use wakeline_bus::Bus;
use wakeline_feed::{
    http::{Door, Limits},
    login::{KeySource, KeysUnavailable, Login},
    policy::Policies,
    service::{Feeds, Settings},
    store::Store,
    stream,
};
use wakeline_wake::Engine;
use wakeline_web::token::Key;

use crate::{auth::jwks::Jwks, config::Config};

/// Key sets at most, one per provider.
const MAX_SETS: usize = 100;

pub(crate) fn open(
    config: &Config,
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    bus: Arc<Bus>,
) -> Result<Door> {
    let settings = &config.feeds;
    let policies = match &settings.policies {
        None => None,
        Some(directory) => Policies::read(Path::new(directory)).context("feeds.policies")?,
    };
    let login = match &settings.authentication {
        None => None,
        Some(directory) => {
            let sets = Arc::new(KeySets {
                refresh: config.jwt.jwks_refresh,
                timeout: config.jwt.jwks_timeout,
                by_uri: Mutex::default(),
            });
            let login = Login::read(Path::new(directory), sets).context("feeds.authentication")?;
            Some(Arc::new(login))
        }
    };
    let feeds = Feeds::new(store, engine, bus, policies, service(config));
    tokio::spawn(feeds.clone().tidy());
    Ok(Door {
        feeds,
        login,
        limits: Limits {
            max_body: settings.max_body,
            max_graph: settings.max_graph,
            body_timeout: config.http.body_timeout,
        },
    })
}

fn service(config: &Config) -> Settings {
    let feeds = &config.feeds;
    Settings {
        stream: stream::Limits {
            max_initial_pages: feeds.max_initial_pages,
            waitlist_cap: feeds.waitlist_cap,
            page_delay_every: feeds.page_delay_every,
            page_delay: feeds.page_delay,
            sync_delay: feeds.sync_delay,
            heartbeat: feeds.heartbeat,
            slow_reader: feeds.slow_reader,
            max_age: (!feeds.max_age.is_zero()).then_some(feeds.max_age),
        },
        page_size: feeds.page_size,
        max_facts: feeds.max_facts,
        max_references: feeds.max_references,
        max_hold: config.http.max_hold,
        keep_definitions: feeds.keep_definitions,
    }
}

/// The key sets of the providers, each fetched as that of `auth.jwt` is.
#[derive(Debug)]
struct KeySets {
    refresh: Duration,
    timeout: Duration,
    by_uri: Mutex<HashMap<String, Arc<Jwks>>>,
}

impl KeySets {
    async fn set(&self, uri: &str) -> Result<Arc<Jwks>> {
        let mut sets = self.by_uri.lock().await;
        if let Some(set) = sets.get(uri) {
            return Ok(set.clone());
        }
        anyhow::ensure!(sets.len() < MAX_SETS, "more than {MAX_SETS} key sets");
        let set = Jwks::at(uri, self.timeout, self.refresh)?;
        sets.insert(uri.to_owned(), set.clone());
        Ok(set)
    }
}

impl KeySource for KeySets {
    fn key<'a>(
        &'a self,
        uri: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Key>, KeysUnavailable>> {
        async move {
            let set = self.set(uri).await.map_err(|error| {
                tracing::warn!("feeds.authentication: {uri}: {error:#}");
                KeysUnavailable
            })?;
            if let Some(key) = set.key(id) {
                return Ok(Some(key));
            }
            if set.renew().await {
                Ok(set.key(id))
            } else {
                Err(KeysUnavailable)
            }
        }
        .boxed()
    }
}
