//! What a stream stands on: its givens, and that the caller may have the feed.

use wakeline_store::Error;

use super::{Decision, Event, Session, Stage};
use crate::{bookmark::Bookmark, hub::Watch, paging};

impl Session {
    /// Finds out where the givens are and whether the caller may have the feed, hears of all that can
    /// change either, and only then takes the horizon: what comes after it is heard of.
    pub(super) async fn stand(&mut self) -> Result<Option<Event>, Error> {
        self.ground.follower.follows().await?;
        let store = &*self.ground.store;
        let heard = self.registration.signal().waitlist().span();
        // Before anything is looked up.
        self.registration.watch(Vec::new(), self.feed.given.clone());
        let decision = (self.decide)().await?;
        let mut watches = Vec::new();
        self.given = paging::find_given(store, &self.feed.query, &self.feed.given).await?;
        let mut anchors = Vec::new();
        let is_denied = matches!(decision, Decision::Denied(_));
        match &self.given {
            // What is denied is not heard of.
            Some(_) if is_denied => {}
            Some(given) => watches.push(Watch {
                query: self.feed.query.clone(),
                given: given.clone(),
                is_ground: false,
            }),
            None => anchors.clone_from(&self.feed.given),
        }
        if let Decision::Denied(denial) = &decision {
            for (query, given) in &denial.watched {
                let at = store.find(given.clone()).await?;
                match at.into_iter().collect() {
                    Some(at) => watches.push(Watch {
                        query: query.clone(),
                        given: at,
                        is_ground: true,
                    }),
                    None => anchors.extend(given.iter().cloned()),
                }
            }
        }
        self.registration.watch(watches, anchors);
        let horizon = paging::fresh_horizon(store).await?;
        let to = horizon.settled;
        // Again, behind the horizon: what was heard of up to it is settled, so it must be known. If
        // it has come in between, all begins anew.
        let decision = match decision {
            Decision::Allowed => Decision::Allowed,
            Decision::Denied(_) => match (self.decide)().await? {
                Decision::Allowed => return Ok(None),
                denied => denied,
            },
        };
        if self.given.is_none() {
            let found = paging::find_given(store, &self.feed.query, &self.feed.given).await?;
            if found.is_some() {
                return Ok(None);
            }
        }
        self.stands = !is_denied && self.given.is_some();
        if self.bookmark.is_beyond(horizon.last) {
            // Of another store: clients skip what they have.
            self.bookmark = Bookmark::Start;
        }
        if let Some(span) = heard {
            self.registration
                .signal()
                .waitlist()
                .settle(span.to.min(to));
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
                // Whatever comes while it is denied is looked at from the beginning.
                self.bookmark = Bookmark::Start;
                // What was to be said after a page is not true any more.
                self.sync = None;
                Ok(Some(Event::Denied {
                    denial,
                    bookmark: self.shown.clone(),
                }))
            }
        }
    }
}
