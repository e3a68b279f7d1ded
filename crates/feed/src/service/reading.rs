//! Reading the results of a specification at once.

use std::sync::Arc;

use super::{Feeds, declaring::FeedRequest};
use crate::{
    error::Error,
    fact::Reference,
    feeds,
    login::Caller,
    reading::{Plan, Reading, bare_givens},
    specification::{Specification, request::TrailingText},
};

impl Feeds {
    /// Results come in chunks. A caller who may not have all feeds of the specification gets none.
    pub async fn read(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<(Specification, Reading), Error> {
        let FeedRequest {
            specification,
            given,
        } = self.request(caller, text, TrailingText::Refused).await?;
        if let Some(policies) = &self.policies {
            let user = self.reader(caller).await?;
            let mut feeds = feeds::of(&specification, &given)
                .map_err(|error| Error::invalid(error.to_string()))?;
            // Nothing is refused because of added feeds, so the rules are not checked for them.
            feeds.retain(|feed| !feed.is_added);
            let refusal = policies
                .distribution
                .refusal(&*self.store, &feeds, user.as_ref())
                .await?;
            if let Some((_, reason)) = refusal {
                return Err(Error::Forbidden(reason));
            }
            // No feed delivers these givens, so the caller must be allowed to load them.
            let bare = bare_givens(&specification).into_iter();
            let bare: Vec<Reference> = bare.filter_map(|at| given.get(at).cloned()).collect();
            let may = policies
                .distribution
                .may_load(&*self.store, user.as_ref(), &bare)
                .await?;
            if let Some((reference, _)) = bare.iter().zip(may).find(|(_, may)| !may) {
                return Err(Error::Forbidden(format!(
                    "Unauthorized: no rule shares {reference} with you."
                )));
            }
        }
        let plan = Arc::new(Plan::of(&specification)?);
        let reading = Reading::start(self.store.clone(), plan, given).await?;
        Ok((specification, reading))
    }
}
