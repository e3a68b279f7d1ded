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
    session::{Decide, Decision, Denial, Event, Session},
};

/// A page, and how long it was waited for.
#[derive(Debug)]
pub struct Held {
    /// `None`: nothing after the bookmark.
    pub page: Option<Arc<Page>>,
    /// What ended the wait, if it was waited for.
    pub woken_by: Option<Cause>,
    pub hold: Duration,
    /// How much of it the store took.
    pub store: Duration,
}

impl Feeds {
    /// A page of what is there now; with `wait`, the first that comes.
    pub async fn page(
        &self,
        caller: &Caller,
        hash: &str,
        bookmark: Bookmark,
        wait: Duration,
    ) -> Result<Held, Error> {
        let began = Instant::now();
        if wait.is_zero() {
            let feed = self.definitions.find(hash).await?;
            check_cursor(&feed.query, &bookmark)?;
            let decide = self.decision(caller, &feed).await?;
            let page = match decide().await? {
                Decision::Denied(_) => None,
                Decision::Allowed => self.page_now(&feed, bookmark).await?,
            };
            return Ok(Held {
                page,
                woken_by: None,
                hold: began.elapsed(),
                store: began.elapsed(),
            });
        }
        let deadline = began + wait.min(self.settings.max_hold);
        let mut session = self.stream(caller, hash, bookmark).await?;
        loop {
            let event = timeout_at(deadline, session.next()).await;
            let page = match event {
                Ok(Some(Event::Page { page, .. })) => Some(page),
                Ok(Some(Event::Sync(_) | Event::Denied { .. } | Event::Heartbeat)) => continue,
                // The end of a session is that of the server: its clients come again.
                Ok(None) | Err(_) => None,
            };
            return Ok(Held {
                woken_by: session.woken_by().filter(|_| page.is_some()),
                page,
                hold: began.elapsed(),
                store: session.looked(),
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
        let Some(given) = paging::find_given(store, &feed.query, &feed.given).await? else {
            return Ok(None);
        };
        let pages = &self.ground.pages;
        let page = pages.page(feed, &given, &bookmark, horizon.settled).await?;
        Ok((!page.references.is_empty()).then_some(page))
    }

    /// Registers at once, so that nothing saved after this is missed.
    pub async fn stream(
        &self,
        caller: &Caller,
        hash: &str,
        bookmark: Bookmark,
    ) -> Result<Session, Error> {
        let feed = self.definitions.find(hash).await?;
        check_cursor(&feed.query, &bookmark)?;
        let decide = self.decision(caller, &feed).await?;
        Ok(Session::open(self.ground.clone(), feed, decide, bookmark)?)
    }

    /// Asked again whenever a stream begins to look.
    async fn decision(&self, caller: &Caller, feed: &Arc<Feed>) -> Result<Decide, Error> {
        let Some(policies) = self.policies.clone() else {
            return Ok(Arc::new(|| Box::pin(async { Ok(Decision::Allowed) })));
        };
        let user = self.reader(caller).await?;
        // It was named for one user; what it is called tells others nothing.
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

/// A cursor has a place for each fact that is looked for. Another's would be refused by the database,
/// again and again.
fn check_cursor(query: &Query, bookmark: &Bookmark) -> Result<(), bookmark::Error> {
    let Bookmark::Within { newest, after, .. } = bookmark else {
        return Ok(());
    };
    if after.at.len() != query.variables.len() - query.givens
        || *newest >= query.outputs.len().max(1)
    {
        return Err(bookmark::Error::OfAnotherFeed);
    }
    Ok(())
}

/// What can make a denied feed be served.
fn watched(rules: &Distribution, feed: &Feed) -> Vec<(Arc<Query>, Vec<Reference>)> {
    let gates = rules.gates(&feed.specification, &feed.given).into_iter();
    gates.map(|gate| (gate.query, gate.given)).collect()
}
