//! Feeds by their hash: in memory for those that are asked for, in the store for all.

#[cfg(test)]
mod tests;

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

/// Feeds that are kept in memory, beside those that are followed.
const KEPT: usize = 20_000;
/// The store is told of a feed that is asked for no later than this: it forgets what it hears
/// nothing of.
const FRESH: Duration = Duration::from_micros(REFRESHED_AFTER.unsigned_abs());
/// Feeds that the store is told of at once.
const TOLD_AT_ONCE: usize = 1_000;

#[derive(Debug)]
pub(super) struct Definitions {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    known: Mutex<HashMap<Arc<str>, Known>>,
}

#[derive(Debug)]
struct Known {
    feed: Arc<Feed>,
    /// When the store last heard of it.
    told: Instant,
}

impl Definitions {
    pub(super) fn new(store: Arc<dyn Store>, bus: Arc<Bus>) -> Self {
        Self {
            store,
            bus,
            known: Mutex::default(),
        }
    }

    /// Keeps them where every node finds them, also after a restart: a client asks for a feed it was
    /// told of, and asks no more when it is not known.
    pub(super) async fn define(
        &self,
        feeds: Vec<Feed>,
        now: Instant,
    ) -> Result<Vec<Arc<Feed>>, Error> {
        let feeds: Vec<Arc<Feed>> = feeds.into_iter().map(Arc::new).collect();
        let untold = feeds.iter().filter(|feed| {
            self.known(&feed.hash)
                .is_none_or(|(_, told)| is_old(told, now))
        });
        self.tell(untold.cloned().collect(), now).await?;
        Ok(feeds)
    }

    pub(super) async fn find(&self, hash: &str) -> Result<Arc<Feed>, Error> {
        self.find_at(hash, Instant::now()).await
    }

    async fn find_at(&self, hash: &str, now: Instant) -> Result<Arc<Feed>, Error> {
        match self.known(hash) {
            Some((feed, told)) => {
                if is_old(told, now) {
                    self.tell(vec![feed.clone()], now).await?;
                }
                Ok(feed)
            }
            None => self.read(hash, now).await,
        }
    }

    /// A feed is in use as long as somebody follows it, also if nobody asks for it again.
    pub(super) async fn tell_of_followed(&self, now: Instant) -> Result<(), Error> {
        let followed: Vec<Arc<Feed>> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let followed = known.values().filter(|known| known.is_followed());
            followed.map(|known| known.feed.clone()).collect()
        };
        for some in followed.chunks(TOLD_AT_ONCE) {
            self.tell(some.to_vec(), now).await?;
        }
        Ok(())
    }

    /// Writes what is new or has been forgotten; of others, at most once a day, that they are used.
    async fn tell(&self, feeds: Vec<Arc<Feed>>, now: Instant) -> Result<(), Error> {
        if feeds.is_empty() {
            return Ok(());
        }
        let definitions = feeds.iter().map(|feed| Definition {
            hash: Box::from(&*feed.hash),
            text: feed.specification.describe().into(),
            given: feed.given.clone(),
            owner: feed.owner.clone(),
        });
        let told = self.store.define(definitions.collect());
        told.commit(&self.bus).await?;
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

    fn known(&self, hash: &str) -> Option<(Arc<Feed>, Instant)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(hash)
            .map(|known| (known.feed.clone(), known.told))
    }

    fn remember(&self, feed: Arc<Feed>, told: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(&feed.hash) {
            // The one that streams have stays: by it they are seen to follow it.
            known.told = told;
            return;
        }
        if known.len() >= KEPT {
            // Those that are asked for come back from the store.
            known.retain(|_, known| known.is_followed());
        }
        known.insert(feed.hash.clone(), Known { feed, told });
    }
}

impl Known {
    /// Whether a stream has it.
    fn is_followed(&self) -> bool {
        Arc::strong_count(&self.feed) > 1
    }
}

fn is_old(told: Instant, now: Instant) -> bool {
    now.saturating_duration_since(told) >= FRESH
}
