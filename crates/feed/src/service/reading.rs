//! Reading the results of a specification at once.

use std::sync::Arc;

use super::{Feeds, declaring::Asked};
use crate::{
    error::Error,
    feeds,
    login::Caller,
    reading::{Plan, Reading},
    specification::{Specification, request::Trailing},
};

impl Feeds {
    /// Results come in chunks. Whoever may not have all feeds of it gets none of it.
    pub async fn read(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<(Specification, Reading), Error> {
        let Asked {
            specification,
            given,
        } = self.asked(caller, text, Trailing::Refused).await?;
        if let Some(policies) = &self.policies {
            let user = self.reader(caller).await?;
            let feeds = feeds::of(&specification, &given)
                .map_err(|error| Error::invalid(error.to_string()))?;
            let refusal = policies
                .distribution
                .refusal(&*self.store, &feeds, user.as_ref())
                .await?;
            if let Some((_, reason)) = refusal {
                return Err(Error::Forbidden(reason));
            }
        }
        let plan = Arc::new(Plan::of(&specification)?);
        let reading = Reading::start(self.store.clone(), plan, given).await?;
        Ok((specification, reading))
    }
}
