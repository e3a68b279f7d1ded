//! Feeds by their hash: those that are used in memory, all of them in the store.

#[cfg(test)]
mod tests;
#[cfg(test)]
wakeline_testkit::conformance! {
    crate::test_database::Database;
    tests:
        finding_a_feed_stores_its_use_once_a_day,
        declaring_a_feed_again_stores_its_use_once_a_day,
        the_definition_of_a_followed_feed_is_not_forgotten;
}

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use wakeline_bus::Bus;

use crate::{
    error::Error,
    feed::Feed,
    query::Query,
    specification::parser,
    store::{Definition, REFRESHED_AFTER, Store},
};

/// Feeds that are kept in memory, beside those that streams follow.
const MAX_CACHED: usize = 20_000;
/// A use of a feed is noted in the store at least this often: the store forgets unused feeds.
const FRESH: Duration = Duration::from_micros(REFRESHED_AFTER.unsigned_abs());
/// Feeds that are stored by one write.
const STORED_AT_ONCE: usize = 1_000;

#[derive(Debug)]
pub(super) struct Definitions {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    cache: Mutex<HashMap<Arc<str>, CachedFeed>>,
}

#[derive(Debug)]
struct CachedFeed {
    feed: Arc<Feed>,
    /// When its use was last noted in the store.
    stored_at: Instant,
}

impl Definitions {
    pub(super) fn new(store: Arc<dyn Store>, bus: Arc<Bus>) -> Self {
        Self {
            store,
            bus,
            cache: Mutex::default(),
        }
    }

    /// Stores feeds for every node, also after a restart: a client gives up a feed whose hash is
    /// not found.
    pub(super) async fn define(
        &self,
        feeds: Vec<Feed>,
        now: Instant,
    ) -> Result<Vec<Arc<Feed>>, Error> {
        let feeds: Vec<Arc<Feed>> = feeds.into_iter().map(Arc::new).collect();
        let untold = feeds.iter().filter(|feed| {
            self.cached(&feed.hash)
                .is_none_or(|(_, stored_at)| is_old(stored_at, now))
        });
        self.store_definitions(untold.cloned().collect(), now)
            .await?;
        Ok(feeds)
    }

    pub(super) async fn find(&self, hash: &str) -> Result<Arc<Feed>, Error> {
        self.find_at(hash, Instant::now()).await
    }

    async fn find_at(&self, hash: &str, now: Instant) -> Result<Arc<Feed>, Error> {
        match self.cached(hash) {
            Some((feed, stored_at)) => {
                if is_old(stored_at, now) {
                    self.store_definitions(vec![feed.clone()], now).await?;
                }
                Ok(feed)
            }
            None => self.read(hash, now).await,
        }
    }

    /// A feed that a stream follows is used, also if no request names it again.
    pub(super) async fn refresh_followed(&self, now: Instant) -> Result<(), Error> {
        let followed: Vec<Arc<Feed>> = {
            let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            let followed = cache.values().filter(|cached| cached.is_followed());
            followed.map(|cached| cached.feed.clone()).collect()
        };
        for some in followed.chunks(STORED_AT_ONCE) {
            self.store_definitions(some.to_vec(), now).await?;
        }
        Ok(())
    }

    /// Stores new and forgotten feeds; for the others it notes, at most once a day, that they are
    /// used.
    async fn store_definitions(&self, feeds: Vec<Arc<Feed>>, now: Instant) -> Result<(), Error> {
        if feeds.is_empty() {
            return Ok(());
        }
        let definitions = feeds.iter().map(|feed| Definition {
            hash: Box::from(&*feed.hash),
            text: feed.specification.describe().into(),
            given: feed.given.clone(),
            owner: feed.owner.clone(),
        });
        let stored_at = self.store.define(definitions.collect());
        stored_at.commit(&self.bus).await?;
        for feed in feeds {
            self.remember(feed, now);
        }
        Ok(())
    }

    async fn read(&self, hash: &str, now: Instant) -> Result<Arc<Feed>, Error> {
        let found = self.store.definition(hash.to_owned()).await?;
        let found = found.ok_or(Error::FeedNotFound)?;
        if found.is_stale {
            let refreshed = self.store.refresh_definition(hash.to_owned());
            refreshed.commit(&self.bus).await?;
        }
        let definition = found.definition;
        let unreadable = |what: String| {
            wakeline_store::Error::Failed(format!("the feed {hash} cannot be read: {what}"))
        };
        let specification =
            parser::parse_feed(&definition.text).map_err(|error| unreadable(error.to_string()))?;
        let query = Query::of_specification(&specification)
            .map_err(|error| unreadable(error.to_string()))?;
        let feed = Arc::new(Feed {
            hash: hash.into(),
            specification,
            query: Arc::new(query),
            given: definition.given,
            owner: definition.owner,
        });
        self.remember(feed.clone(), now);
        Ok(feed)
    }

    fn cached(&self, hash: &str) -> Option<(Arc<Feed>, Instant)> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache
            .get(hash)
            .map(|cached| (cached.feed.clone(), cached.stored_at))
    }

    fn remember(&self, feed: Arc<Feed>, stored_at: Instant) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cache.get_mut(&feed.hash) {
            // The streams' own object stays: its count of references shows that they follow it.
            cached.stored_at = stored_at;
            return;
        }
        if cache.len() >= MAX_CACHED {
            // Feeds that are requested again come back from the store.
            cache.retain(|_, cached| cached.is_followed());
        }
        cache.insert(feed.hash.clone(), CachedFeed { feed, stored_at });
    }
}

impl CachedFeed {
    /// Whether a stream follows it.
    fn is_followed(&self) -> bool {
        Arc::strong_count(&self.feed) > 1
    }
}

fn is_old(stored_at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(stored_at) >= FRESH
}
