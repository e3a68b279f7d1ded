//! Loading: the requested facts and all their ancestors.

use std::sync::Arc;

use futures_util::{Stream, stream::try_unfold};

use super::Feeds;
use crate::{
    error::Error,
    fact::Reference,
    login::Caller,
    store::{Seq, Store, StoredFact},
};

/// Facts that are read together.
const CHUNK: usize = 1_000;

/// Which facts are sent, predecessors first.
#[derive(Debug)]
pub struct LoadedFacts {
    store: Arc<dyn Store>,
    seqs: Vec<Seq>,
}

impl Feeds {
    /// Facts that are not stored, or that the caller may not see, are left out. The request is
    /// refused only if the caller may see none of them. A client loads a whole page after it was
    /// sent, and goes on behind it even after a refusal: so one fact that was hidden meanwhile must
    /// not cost the client the others.
    pub async fn load(
        &self,
        caller: &Caller,
        mut references: Vec<Reference>,
    ) -> Result<LoadedFacts, Error> {
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
        let seqs: Vec<Seq> = found.into_iter().flatten().collect();
        if is_hidden && seqs.is_empty() {
            return Err(Error::Forbidden("Unauthorized".to_owned()));
        }
        let seqs = self.store.closure(seqs).await?;
        Ok(LoadedFacts {
            store: self.store.clone(),
            seqs,
        })
    }
}

impl LoadedFacts {
    /// In chunks, so that a long history is not in memory at once.
    pub fn chunks(self) -> impl Stream<Item = Result<Vec<StoredFact>, Error>> + Send {
        try_unfold((self, 0), |(loaded, from)| async move {
            if from >= loaded.seqs.len() {
                return Ok(None);
            }
            let to = (from + CHUNK).min(loaded.seqs.len());
            let chunk = loaded.seqs[from..to].to_vec();
            let facts = loaded.store.facts(chunk).await?;
            Ok(Some((facts, (loaded, to))))
        })
    }
}
