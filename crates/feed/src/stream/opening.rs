//! Opening a feed: its givens have to be stored, and the caller admitted.

use wakeline_store::Error;

use super::{Decision, FeedStream, Stage, StreamEvent};
use crate::{bookmark::Bookmark, hub::Watch, paging};

impl FeedStream {
    /// Finds the givens and whether the caller may have the feed, watches for everything that can
    /// change either, and only then takes the horizon: so no fact after the horizon is missed.
    pub(super) async fn open_feed(&mut self) -> Result<Option<StreamEvent>, Error> {
        self.services.follower.ensure_running().await?;
        let store = &*self.services.store;
        let heard = self.registration.inbox().waitlist().span();
        // Before anything is read.
        self.registration.watch(Vec::new(), self.feed.given.clone());
        let decision = (self.decide)().await?;
        let mut watches = Vec::new();
        self.given = paging::find_givens(store, &self.feed.query, &self.feed.given).await?;
        let mut unresolved = Vec::new();
        let is_denied = matches!(decision, Decision::Denied(_));
        match &self.given {
            // New tuples of a denied feed are not announced.
            Some(_) if is_denied => {}
            Some(given) => watches.push(Watch {
                query: self.feed.query.clone(),
                given: given.clone(),
                is_dependency: false,
            }),
            None => unresolved.clone_from(&self.feed.given),
        }
        if let Decision::Denied(denial) = &decision {
            for (query, given) in &denial.watched {
                let at = store.find(given.clone()).await?;
                match at.into_iter().collect() {
                    Some(at) => watches.push(Watch {
                        query: query.clone(),
                        given: at,
                        is_dependency: true,
                    }),
                    None => unresolved.extend(given.iter().cloned()),
                }
            }
        }
        self.registration.watch(watches, unresolved);
        let horizon = paging::fresh_horizon(store).await?;
        let to = horizon.settled;
        // Check again after the horizon was taken: the facts up to it leave the waitlist, so they
        // must count here. If something has changed in between, the feed is opened again.
        let decision = match decision {
            Decision::Allowed => Decision::Allowed,
            Decision::Denied(_) => match (self.decide)().await? {
                Decision::Allowed => return Ok(None),
                denied => denied,
            },
        };
        if self.given.is_none() {
            let found = paging::find_givens(store, &self.feed.query, &self.feed.given).await?;
            if found.is_some() {
                return Ok(None);
            }
        }
        self.is_open = !is_denied && self.given.is_some();
        if self.bookmark.is_beyond(horizon.last) {
            // A bookmark of another store: the client skips the facts that it has.
            self.bookmark = Bookmark::Start;
        }
        if let Some(span) = heard {
            self.registration
                .inbox()
                .waitlist()
                .remove_through(span.to.min(to));
        }
        self.pages_of_cycle = 0;
        self.telemetry.cycle();
        match decision {
            Decision::Allowed => {
                self.stage = Stage::Cycle(to);
                Ok(None)
            }
            Decision::Denied(denial) => {
                self.stage = Stage::Live;
                // Once the caller is admitted, the feed is read from its beginning.
                self.bookmark = Bookmark::Start;
                // A SYNC that was due is not true any more.
                self.sync = None;
                Ok(Some(StreamEvent::Denied {
                    denial,
                    bookmark: self.client_bookmark.clone(),
                }))
            }
        }
    }
}
