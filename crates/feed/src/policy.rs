//! Policies: who may say what, who may know what, and what is forgotten.
//!
//! A directory of `*.policy` files, or an empty file named `no-security-policies`. With any policy
//! all three kinds of rules are on: facts of a type without a rule are refused, and feeds without
//! one are not served.

pub mod authorization;
pub mod distribution;
pub mod files;
mod pattern;
pub mod purge;

use std::path::Path;

use self::{
    authorization::Authorization,
    distribution::Distribution,
    files::{Error, Found},
    purge::Purge,
};
use crate::policy_file::PolicyFile;

const ENDING: &str = "policy";
const NONE: &str = "no-security-policies";

/// Why something cannot be a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

#[derive(Debug)]
pub struct Policies {
    pub authorization: Authorization,
    pub distribution: Distribution,
    pub purge: Purge,
}

impl Policies {
    /// The policies of a directory and all below it, in the order of their files' paths. `None`
    /// where the marker says that there are none.
    pub fn read(directory: &Path) -> Result<Option<Self>, Error> {
        let Found { files, marker } = files::find(directory, ENDING, NONE)?;
        let neither_or_both = |is_both: bool| {
            let directory = directory.to_owned();
            let (ending, marker) = (ENDING, NONE);
            match is_both {
                true => Error::Both {
                    directory,
                    ending,
                    marker,
                },
                false => Error::Neither {
                    directory,
                    ending,
                    marker,
                },
            }
        };
        match (files.is_empty(), marker) {
            (true, true) => return Ok(None),
            (true, false) => return Err(neither_or_both(false)),
            (false, true) => return Err(neither_or_both(true)),
            (false, false) => {}
        }
        let mut all = PolicyFile::default();
        for file in files {
            let text = files::text(&file)?;
            let at = |reason: String| Error::File {
                file: file.clone(),
                reason,
            };
            let read = PolicyFile::parse(&text).map_err(|error| at(error.to_string()))?;
            // Each by itself first, so that the file with the mistake is named.
            Self::new(&read).map_err(|unfit| at(unfit.to_string()))?;
            all.merge(read);
        }
        let policies = Self::new(&all).map_err(|unfit| Error::File {
            file: directory.to_owned(),
            reason: unfit.to_string(),
        })?;
        Ok(Some(policies))
    }

    pub fn new(file: &PolicyFile) -> Result<Self, Unfit> {
        Ok(Self {
            authorization: Authorization::new(&file.authorization)?,
            distribution: Distribution::new(&file.distribution)?,
            purge: Purge::new(&file.purge)?,
        })
    }
}
