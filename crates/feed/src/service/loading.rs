//! Loading: the facts that were asked for and all that they stand on.

use std::sync::Arc;

use futures_util::{Stream, stream::try_unfold};

use super::Feeds;
use crate::{
    error::Error,
    fact::Reference,
    login::Caller,
    store::{Position, Store, Stored},
};

/// Facts that are fetched at once.
const CHUNK: usize = 1_000;

/// Which facts are sent, predecessors first.
#[derive(Debug)]
pub struct Loaded {
    store: Arc<dyn Store>,
    positions: Vec<Position>,
}

impl Feeds {
    /// What is not known, or not for the caller to see, is left out; refused is who may see nothing
    /// of it. Clients ask for a whole page at once, after it was sent, and go on behind it even if
    /// they are refused: one fact that is hidden meanwhile must not take the others along.
    pub async fn load(
        &self,
        caller: &Caller,
        mut references: Vec<Reference>,
    ) -> Result<Loaded, Error> {
        let mut is_hidden = false;
        if let Some(policies) = &self.policies {
            let user = self.reader(caller).await?;
            let distribution = &policies.distribution;
            let may = distribution
                .may_load(&*self.store, user.as_ref(), &references)
                .await?;
            is_hidden = may.contains(&false);
            let mut may = may.into_iter();
            references.retain(|_| may.next() == Some(true));
        }
        let found = self.store.find(references).await?;
        let positions: Vec<Position> = found.into_iter().flatten().collect();
        if is_hidden && positions.is_empty() {
            return Err(Error::Forbidden("Unauthorized".to_owned()));
        }
        let positions = self.store.closure(positions).await?;
        Ok(Loaded {
            store: self.store.clone(),
            positions,
        })
    }
}

impl Loaded {
    /// In chunks, so that a long history is not in memory at once.
    pub fn chunks(self) -> impl Stream<Item = Result<Vec<Stored>, Error>> + Send {
        try_unfold((self, 0), |(loaded, from)| async move {
            if from >= loaded.positions.len() {
                return Ok(None);
            }
            let to = (from + CHUNK).min(loaded.positions.len());
            let chunk = loaded.positions[from..to].to_vec();
            let facts = loaded.store.facts(chunk).await?;
            Ok(Some((facts, (loaded, to))))
        })
    }
}
