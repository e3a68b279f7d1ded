//! Feeds by their hash: in memory for those that are asked for, in the store for all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    error::Error,
    feed::Feed,
    query::Query,
    specification::parser,
    store::{Definition, Store},
};

/// Feeds that are kept in memory.
const KEPT: usize = 20_000;

#[derive(Debug)]
pub(super) struct Definitions {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<Arc<str>, Arc<Feed>>>,
}

impl Definitions {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// Keeps them where every node finds them, also after a restart: a client asks for a feed it was
    /// told of, and asks no more when it is not known.
    pub(super) async fn define(&self, feeds: Vec<Feed>) -> Result<Vec<Arc<Feed>>, Error> {
        let feeds: Vec<Arc<Feed>> = feeds.into_iter().map(Arc::new).collect();
        let new = feeds.iter().filter(|feed| self.known(&feed.hash).is_none());
        let definitions: Vec<Definition> = new
            .map(|feed| Definition {
                hash: Box::from(&*feed.hash),
                text: feed.specification.describe().into(),
                given: feed.given.clone(),
                owner: feed.owner.clone(),
            })
            .collect();
        if !definitions.is_empty() {
            self.store.define(definitions).await?;
            for feed in &feeds {
                self.remember(feed.clone());
            }
        }
        Ok(feeds)
    }

    pub(super) async fn find(&self, hash: &str) -> Result<Arc<Feed>, Error> {
        if let Some(feed) = self.known(hash) {
            return Ok(feed);
        }
        let found = self.store.definition(hash.to_owned()).await?;
        let definition = found.ok_or(Error::FeedNotFound)?;
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
        self.remember(feed.clone());
        Ok(feed)
    }

    fn known(&self, hash: &str) -> Option<Arc<Feed>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).cloned()
    }

    fn remember(&self, feed: Arc<Feed>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            // Those that are asked for come back from the store.
            known.clear();
        }
        known.insert(feed.hash.clone(), feed);
    }
}
