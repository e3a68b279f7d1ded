//! Pages of a feed. A reader goes through spans of positions, each up to what was settled when the
//! span began; inside a span through the slices (see [`Slice`]), each in an order of its own. So a
//! page is found by seeking to where the last one ended, and a late commit is in a later span.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_store::Error;

use crate::{
    bookmark::Bookmark,
    fact::Reference,
    query::Query,
    store::{Cursor, Horizon, Position, Row, Slice, Store},
};

/// How long a fresh horizon is waited for while saves are under way.
pub const PATIENCE: Duration = Duration::from_millis(300);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub tuples: Vec<Vec<Reference>>,
    /// Where the next page begins. An empty page can have come further too.
    pub reached: Bookmark,
    /// Everything up to the horizon has been read.
    pub is_last: bool,
}

impl Page {
    fn nothing(at: &Bookmark) -> Self {
        Self {
            tuples: Vec::new(),
            reached: at.clone(),
            is_last: true,
        }
    }
}

/// A horizon that covers all saves that were answered before. Saves that are still under way are
/// waited for, but not for long.
pub async fn fresh_horizon(store: &dyn Store) -> Result<Horizon, Error> {
    let began = Instant::now();
    let mut horizon = store.horizon().await?;
    let wanted = horizon.last;
    let mut pause = FIRST_PAUSE;
    while horizon.settled < wanted && began.elapsed() < PATIENCE {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let now = store.horizon().await?;
        // What was settled once stays so, whatever began since.
        horizon.settled = horizon.settled.max(now.settled);
        horizon.last = horizon.last.max(now.last);
    }
    Ok(horizon)
}

/// Where the givens are; `None` unless all are stored and of the right type.
pub async fn find_given(
    store: &dyn Store,
    query: &Query,
    given: &[Reference],
) -> Result<Option<Vec<Position>>, Error> {
    let is_right = given.len() == query.givens
        && given
            .iter()
            .zip(&query.variables)
            .all(|(given, kind)| given.kind == *kind);
    if !is_right {
        return Ok(None);
    }
    Ok(store.find(given.to_vec()).await?.into_iter().collect())
}

/// The page after a bookmark, up to a settled horizon. `given` is where the givens are.
pub async fn page_at(
    store: &dyn Store,
    query: &Arc<Query>,
    given: &[Position],
    bookmark: &Bookmark,
    to: Position,
    limit: usize,
) -> Result<Page, Error> {
    // A given beyond the horizon is not there yet.
    if given.iter().any(|given| *given > to) {
        return Ok(Page::nothing(bookmark));
    }
    let limit = limit.max(1);
    let mut place = Place::of(bookmark, to);
    let mut tuples: Vec<Vec<Reference>> = Vec::new();
    let mut reached = bookmark.clone();
    loop {
        place.begin_anew_for(given);
        while place.from < place.to && place.newest < place.slices(query) {
            let slice = Slice {
                query: query.clone(),
                given: given.to_vec(),
                from: place.from,
                to: place.to,
                newest: place.newest,
                after: place.after.take(),
                limit: limit + 1 - tuples.len(),
            };
            for row in store.slice(slice).await? {
                if tuples.len() == limit {
                    return Ok(Page {
                        tuples,
                        reached,
                        is_last: false,
                    });
                }
                reached = place.at(&row);
                tuples.push(row.outputs.into_iter().map(|(_, fact)| fact).collect());
            }
            place.newest += 1;
        }
        if place.to >= to {
            break;
        }
        place = Place::of(&Bookmark::Finished(place.to), to);
    }
    Ok(Page {
        tuples,
        reached: Bookmark::Finished(place.from.max(place.to)),
        is_last: true,
    })
}

/// Where in the walk through spans and slices a page is.
struct Place {
    from: Position,
    to: Position,
    newest: usize,
    after: Option<Cursor>,
}

impl Place {
    fn of(bookmark: &Bookmark, to: Position) -> Self {
        match bookmark {
            Bookmark::Start | Bookmark::Finished(_) => Self {
                from: bookmark.base(),
                to,
                newest: 0,
                after: None,
            },
            Bookmark::Within {
                from,
                to,
                newest,
                after,
            } => Self {
                from: *from,
                to: *to,
                newest: *newest,
                after: Some(after.clone()),
            },
        }
    }

    /// A given that came after what was read: nothing of its tuples has been read, old facts too.
    fn begin_anew_for(&mut self, given: &[Position]) {
        if self.from > 0 && given.iter().any(|given| *given > self.from) {
            self.from = 0;
            self.newest = 0;
            self.after = None;
        }
    }

    /// From the beginning every output is new, so the first slice has all.
    fn slices(&self, query: &Query) -> usize {
        if self.from == 0 {
            1
        } else {
            query.outputs.len().max(1)
        }
    }

    fn at(&self, row: &Row) -> Bookmark {
        Bookmark::Within {
            from: self.from,
            to: self.to,
            newest: self.newest,
            after: row.at.clone(),
        }
    }
}
