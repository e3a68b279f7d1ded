//! Pages of a feed. A reader goes through spans of seqs, each up to the horizon that was settled
//! when the span began, and within a span through the deltas of the outputs (see [`DeltaQuery`]),
//! each in an order of its own. So a page is found by seeking to where the last one ended, and a
//! late commit is in a later span.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_store::Error;

use crate::{
    bookmark::Bookmark,
    fact::Reference,
    query::Query,
    store::{DeltaQuery, Horizon, RowCursor, Seq, Store, TupleRow},
};

/// How long a fresh horizon is waited for while saves are under way.
pub const PATIENCE: Duration = Duration::from_millis(300);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuplePage {
    pub tuples: Vec<Vec<Reference>>,
    /// Where the next page begins. An empty page can have come further too.
    pub reached: Bookmark,
    /// Everything up to the horizon has been read.
    pub is_last: bool,
}

impl TuplePage {
    fn nothing(at: &Bookmark) -> Self {
        Self {
            tuples: Vec::new(),
            reached: at.clone(),
            is_last: true,
        }
    }
}

/// A horizon that covers all saves that were answered before. It waits for saves that are still
/// under way, but not for long.
pub async fn fresh_horizon(store: &dyn Store) -> Result<Horizon, Error> {
    let began = Instant::now();
    let mut horizon = store.horizon().await?;
    let wanted = horizon.last;
    let mut pause = FIRST_PAUSE;
    while horizon.settled < wanted && began.elapsed() < PATIENCE {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let now = store.horizon().await?;
        // A settled position stays settled, whatever saves began since.
        horizon.settled = horizon.settled.max(now.settled);
        horizon.last = horizon.last.max(now.last);
    }
    Ok(horizon)
}

/// The seqs of the givens; `None` unless all are stored and have the right types.
pub async fn find_givens(
    store: &dyn Store,
    query: &Query,
    given: &[Reference],
) -> Result<Option<Vec<Seq>>, Error> {
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

/// The page after a bookmark, up to a settled horizon. `given`: the seqs of the givens.
pub async fn page_at(
    store: &dyn Store,
    query: &Arc<Query>,
    given: &[Seq],
    bookmark: &Bookmark,
    to: Seq,
    limit: usize,
) -> Result<TuplePage, Error> {
    // A given beyond the horizon is not there yet.
    if given.iter().any(|given| *given > to) {
        return Ok(TuplePage::nothing(bookmark));
    }
    let limit = limit.max(1);
    let mut progress = SpanProgress::of(bookmark, to);
    let mut tuples: Vec<Vec<Reference>> = Vec::new();
    let mut reached = bookmark.clone();
    loop {
        progress.restart_for(given);
        while progress.from < progress.to && progress.first_new_output < progress.deltas(query) {
            let delta = DeltaQuery {
                query: query.clone(),
                given: given.to_vec(),
                from: progress.from,
                to: progress.to,
                first_new_output: progress.first_new_output,
                cursor: progress.cursor.take(),
                limit: limit + 1 - tuples.len(),
            };
            for row in store.delta_page(delta).await? {
                if tuples.len() == limit {
                    return Ok(TuplePage {
                        tuples,
                        reached,
                        is_last: false,
                    });
                }
                reached = progress.at(&row);
                tuples.push(row.outputs.into_iter().map(|(_, fact)| fact).collect());
            }
            progress.first_new_output += 1;
        }
        if progress.to >= to {
            break;
        }
        progress = SpanProgress::of(&Bookmark::Finished(progress.to), to);
    }
    Ok(TuplePage {
        tuples,
        reached: Bookmark::Finished(progress.from.max(progress.to)),
        is_last: true,
    })
}

/// How far a reader has come in a span: which delta, and where in it.
struct SpanProgress {
    from: Seq,
    to: Seq,
    first_new_output: usize,
    cursor: Option<RowCursor>,
}

impl SpanProgress {
    fn of(bookmark: &Bookmark, to: Seq) -> Self {
        match bookmark {
            Bookmark::Start | Bookmark::Finished(_) => Self {
                from: bookmark.base(),
                to,
                first_new_output: 0,
                cursor: None,
            },
            Bookmark::Within {
                from,
                to,
                first_new_output,
                cursor,
            } => Self {
                from: *from,
                to: *to,
                first_new_output: *first_new_output,
                cursor: Some(cursor.clone()),
            },
        }
    }

    /// If a given was stored after the span began, nothing of its tuples has been read yet, not
    /// even their old facts.
    fn restart_for(&mut self, given: &[Seq]) {
        if self.from > 0 && given.iter().any(|given| *given > self.from) {
            self.from = 0;
            self.first_new_output = 0;
            self.cursor = None;
        }
    }

    /// From the beginning every output is new, so the first delta has every tuple.
    fn deltas(&self, query: &Query) -> usize {
        if self.from == 0 {
            1
        } else {
            query.outputs.len().max(1)
        }
    }

    fn at(&self, row: &TupleRow) -> Bookmark {
        Bookmark::Within {
            from: self.from,
            to: self.to,
            first_new_output: self.first_new_output,
            cursor: row.at.clone(),
        }
    }
}
