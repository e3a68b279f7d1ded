//! Feeds: read by the page, followed as streams.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use wakeline_wake::Cause;

use super::Feeds;
use crate::{
    bookmark::{self, Bookmark},
    error::Error,
    fact::Reference,
    feed::Feed,
    login::Caller,
    pages::Page,
    paging,
    policy::distribution::{Answer, Distribution},
    query::Query,
    stream::{DecideAccess, Decision, Denial, FeedStream, StreamEvent},
};

/// A page, and how long the request was held for it.
#[derive(Debug)]
pub struct PageResult {
    /// `None`: nothing after the bookmark.
    pub page: Option<Arc<Page>>,
    /// What woke the request, if it was held.
    pub woken_by: Option<Cause>,
    pub hold: Duration,
    /// How much of it the store took.
    pub store: Duration,
}

impl Feeds {
    /// A page of what is stored now; with `wait`, the first page that is not empty.
    pub async fn page(
        &self,
        caller: &Caller,
        hash: &str,
        bookmark: Bookmark,
        wait: Duration,
    ) -> Result<PageResult, Error> {
        let began = Instant::now();
        if wait.is_zero() {
            let feed = self.definitions.find(hash).await?;
            check_cursor(&feed.query, &bookmark)?;
            let decide = self.decision(caller, &feed).await?;
            let page = match decide().await? {
                Decision::Denied(_) => None,
                Decision::Allowed => self.page_now(&feed, bookmark).await?,
            };
            return Ok(PageResult {
                page,
                woken_by: None,
                hold: began.elapsed(),
                store: began.elapsed(),
            });
        }
        let deadline = began + wait.min(self.settings.max_hold);
        let mut stream = self.stream(caller, hash, bookmark).await?;
        loop {
            let event = timeout_at(deadline, stream.next()).await;
            let page = match event {
                Ok(Some(StreamEvent::Page { page, .. })) => Some(page),
                Ok(Some(
                    StreamEvent::Sync(_) | StreamEvent::Denied { .. } | StreamEvent::Heartbeat,
                )) => continue,
                // The stream ends because the server stops: the client asks the next one.
                Ok(None) | Err(_) => None,
            };
            return Ok(PageResult {
                woken_by: stream.woken_by().filter(|_| page.is_some()),
                page,
                hold: began.elapsed(),
                store: stream.store_time(),
            });
        }
    }

    async fn page_now(
        &self,
        feed: &Arc<Feed>,
        bookmark: Bookmark,
    ) -> Result<Option<Arc<Page>>, Error> {
        let store = &*self.store;
        let horizon = paging::fresh_horizon(store).await?;
        // Of another store: clients skip what they have.
        let bookmark = if bookmark.is_beyond(horizon.last) {
            Bookmark::Start
        } else {
            bookmark
        };
        let Some(given) = paging::find_givens(store, &feed.query, &feed.given).await? else {
            return Ok(None);
        };
        let pages = &self.services.pages;
        let page = pages.page(feed, &given, &bookmark, horizon.settled).await?;
        Ok((!page.references.is_empty()).then_some(page))
    }

    /// Registers at once, so that nothing saved after this is missed.
    pub async fn stream(
        &self,
        caller: &Caller,
        hash: &str,
        bookmark: Bookmark,
    ) -> Result<FeedStream, Error> {
        let feed = self.definitions.find(hash).await?;
        check_cursor(&feed.query, &bookmark)?;
        let decide = self.decision(caller, &feed).await?;
        Ok(FeedStream::open(
            self.services.clone(),
            feed,
            decide,
            bookmark,
        )?)
    }

    /// The rules are checked again with every page.
    async fn decision(&self, caller: &Caller, feed: &Arc<Feed>) -> Result<DecideAccess, Error> {
        let Some(policies) = self.policies.clone() else {
            return Ok(Arc::new(|| Box::pin(async { Ok(Decision::Allowed) })));
        };
        let user = self.reader(caller).await?;
        // A feed for one user does not exist for others.
        if feed.owner.is_some() && feed.owner != user {
            return Err(Error::FeedNotFound);
        }
        let (store, feed) = (self.store.clone(), feed.clone());
        Ok(Arc::new(move || {
            let (policies, store) = (policies.clone(), store.clone());
            let (user, feed) = (user.clone(), feed.clone());
            Box::pin(async move {
                let rules = &policies.distribution;
                let answer = rules
                    .answer(&*store, &feed.specification, &feed.given, user.as_ref())
                    .await?;
                Ok(match answer {
                    Answer::Granted => Decision::Allowed,
                    Answer::Denied { code, reason } => Decision::Denied(Denial {
                        code: code.as_str(),
                        reason,
                        watched: watched(rules, &feed),
                    }),
                })
            })
        }))
    }
}

/// A cursor has a seq for each variable of its feed. With another feed's cursor every read would
/// fail.
fn check_cursor(query: &Query, bookmark: &Bookmark) -> Result<(), bookmark::Error> {
    let Bookmark::Within {
        first_new_output,
        cursor,
        ..
    } = bookmark
    else {
        return Ok(());
    };
    if cursor.at.len() != query.variables.len() - query.givens
        || *first_new_output >= query.outputs.len().max(1)
    {
        return Err(bookmark::Error::OfAnotherFeed);
    }
    Ok(())
}

/// The queries whose new tuples may admit the caller to a denied feed.
fn watched(rules: &Distribution, feed: &Feed) -> Vec<(Arc<Query>, Vec<Reference>)> {
    let gates = rules.gates(&feed.specification, &feed.given).into_iter();
    gates.map(|gate| (gate.query, gate.given)).collect()
}
