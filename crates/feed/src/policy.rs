//! Policies: which users may save facts, which may follow feeds, and which facts are purged.
//!
//! A directory of `*.policy` files, or an empty file named `no-security-policies`. With any policy
//! file all three kinds of rules apply: facts of a type without a rule are refused, and feeds
//! without one are not served.

pub mod authorization;
pub mod distribution;
pub mod files;
mod pattern;
pub mod purge;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use wakeline_store::Error as StoreError;

use self::{
    authorization::Authorization,
    distribution::Distribution,
    files::{DirectoryFiles, Error},
    purge::Purge,
};
use crate::{
    fact::Reference,
    policy_file::PolicyFile,
    store::{Seq, Store},
};

const ENDING: &str = "policy";
const NONE: &str = "no-security-policies";

/// Why something cannot be a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(pub String);

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
        let DirectoryFiles { files, marker } = files::find(directory, ENDING, NONE)?;
        match (files.is_empty(), marker) {
            (true, true) => return Ok(None),
            (true, false) => return Err(Error::neither(directory, ENDING, NONE)),
            (false, true) => {
                let reason = format!(
                    "there are *.{ENDING} files and a file named {NONE}; remove one of both"
                );
                return Err(Error::new(directory, reason));
            }
            (false, false) => {}
        }
        let mut all = PolicyFile::default();
        for file in files {
            let text = files::text(&file)?;
            let read = PolicyFile::parse(&text).map_err(|error| Error::new(&file, error))?;
            // Each by itself first, so that the file with the mistake is named.
            Self::new(&read).map_err(|invalid| Error::new(&file, invalid))?;
            all.merge(read);
        }
        let policies = Self::new(&all).map_err(|invalid| Error::new(directory, invalid))?;
        Ok(Some(policies))
    }

    pub fn new(file: &PolicyFile) -> Result<Self, InvalidRule> {
        Ok(Self {
            authorization: Authorization::new(&file.authorization)?,
            distribution: Distribution::new(&file.distribution)?,
            purge: Purge::new(&file.purge)?,
        })
    }
}

/// The seqs of facts, of those that are stored.
struct SeqsByFact(HashMap<Reference, Seq>);

impl SeqsByFact {
    /// One read for all of them.
    async fn find(
        store: &dyn Store,
        facts: impl Iterator<Item = &Reference> + Send,
    ) -> Result<Self, StoreError> {
        let facts: HashSet<&Reference> = facts.collect();
        let facts: Vec<Reference> = facts.into_iter().cloned().collect();
        let seqs = store.find(facts.clone()).await?;
        let stored = facts.into_iter().zip(seqs);
        Ok(Self(
            stored
                .filter_map(|(fact, seq)| Some((fact, seq?)))
                .collect(),
        ))
    }

    fn of(&self, fact: &Reference) -> Option<Seq> {
        self.0.get(fact).copied()
    }
}
