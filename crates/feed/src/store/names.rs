//! The ids of types and roles, kept in memory: they never change once they are committed.

#[cfg(test)]
mod tests;
#[cfg(test)]
wakeline_testkit::conformance! {
    crate::test_database::Database;
    tests: a_stored_type_is_not_taken_for_unknown;
}

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock},
};

use wakeline_store::Error;

use super::{prepared::PreparedSave, sql};
use crate::{
    fact::{Envelope, Kind},
    query::Query,
};

/// With more, all are forgotten and read again.
const MAX_NAMES: usize = 100_000;

/// A role and the type of the successor, which it belongs to.
pub(super) type RoleName = (Kind, Arc<str>);

/// Ids by name, of the requested names that are stored.
#[derive(Clone, Debug, Default)]
pub(super) struct IdsByName {
    pub(super) kinds: HashMap<Kind, i32>,
    pub(super) roles: HashMap<RoleName, i32>,
}

/// Names by id.
#[derive(Clone, Debug, Default)]
pub(super) struct NamesById {
    pub(super) kinds: HashMap<i32, Kind>,
    pub(super) roles: HashMap<i32, Arc<str>>,
}

impl NamesById {
    pub(super) fn kind(&self, id: i32) -> Result<Kind, Error> {
        let name = self.kinds.get(&id).cloned();
        name.ok_or_else(|| Error::Failed(format!("a fact has the unknown type {id}")))
    }

    pub(super) fn role(&self, id: i32) -> Result<Arc<str>, Error> {
        let name = self.roles.get(&id).cloned();
        name.ok_or_else(|| Error::Failed(format!("a fact has the unknown role {id}")))
    }
}

/// How often a save looks up ids: names may be forgotten between two look-ups (see [`NameCache`]),
/// but not time and again.
const MAX_LOOKUPS: usize = 5;

/// The tables of types and roles of one of the databases.
pub(super) trait NameTables {
    fn cache(&self) -> &NameCache;

    /// The ids of the names that are stored. With `insert` the others are stored, too.
    async fn stored_ids(
        &self,
        kinds: Vec<Kind>,
        roles: Vec<RoleName>,
        insert: bool,
    ) -> Result<IdsByName, Error>;

    /// From the memory if it has all of them. A name that is not stored has no facts.
    async fn ids(&self, kinds: Vec<Kind>, roles: Vec<RoleName>) -> Result<IdsByName, Error> {
        if let Some(ids) = self.cache().ids(&kinds, &roles) {
            return Ok(ids);
        }
        let ids = self.stored_ids(kinds, roles, false).await?;
        self.cache().insert_ids(&ids);
        Ok(ids)
    }

    async fn ids_of(&self, query: &Query) -> Result<IdsByName, Error> {
        let (kinds, roles) = sql::names(query);
        self.ids(kinds, roles).await
    }

    /// Names become ids; new ones are stored.
    async fn prepare(&self, envelopes: &Arc<[Envelope]>) -> Result<PreparedSave, Error> {
        let mut absent: HashSet<Kind> = HashSet::new();
        for _ in 0..MAX_LOOKUPS {
            let missing = match PreparedSave::new(envelopes, &self.cache().snapshot(), &absent) {
                Ok(prepared) => return Ok(prepared),
                Err(missing) => *missing,
            };
            let predecessors: Vec<Kind> = missing.predecessors.into_iter().collect();
            let found = self.ids(predecessors.clone(), Vec::new()).await?;
            let is_absent = |kind: &Kind| !found.kinds.contains_key(kind);
            absent.extend(predecessors.into_iter().filter(is_absent));
            let kinds: Vec<Kind> = missing.kinds.into_iter().collect();
            let roles: Vec<RoleName> = missing.roles.into_iter().collect();
            if !kinds.is_empty() || !roles.is_empty() {
                let ids = self.stored_ids(kinds, roles, true).await?;
                // Not before the commit: after a failed one, the ids may mean something else.
                self.cache().insert_ids(&ids);
            }
        }
        Err(Error::Failed("a save has too many names of types".into()))
    }
}

/// Only what is committed may be inserted.
#[derive(Debug)]
pub(super) struct NameCache {
    known: RwLock<Arc<NameSnapshot>>,
    most: usize,
}

impl Default for NameCache {
    fn default() -> Self {
        Self::at_most(MAX_NAMES)
    }
}

/// The names that were in memory at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct NameSnapshot {
    kinds: HashMap<Kind, KindIds>,
    names_by_id: NamesById,
}

#[derive(Clone, Debug)]
struct KindIds {
    id: i32,
    roles: HashMap<Arc<str>, i32>,
}

impl NameSnapshot {
    pub(super) fn kind_id(&self, kind: &str) -> Option<i32> {
        Some(self.kinds.get(kind)?.id)
    }

    pub(super) fn role_id(&self, kind: &str, role: &str) -> Option<i32> {
        self.kinds.get(kind)?.roles.get(role).copied()
    }
}

impl NameCache {
    pub(super) fn at_most(most: usize) -> Self {
        Self {
            known: RwLock::default(),
            most,
        }
    }

    pub(super) fn snapshot(&self) -> Arc<NameSnapshot> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// All of these, or `None` if one is not known here.
    pub(super) fn ids(&self, kinds: &[Kind], roles: &[RoleName]) -> Option<IdsByName> {
        let known = self.snapshot();
        let mut ids = IdsByName::default();
        for kind in kinds {
            ids.kinds.insert(kind.clone(), known.kind_id(kind)?);
        }
        for role in roles {
            let id = known.role_id(&role.0, &role.1)?;
            ids.roles.insert(role.clone(), id);
        }
        Some(ids)
    }

    /// The names of these ids, and the ids whose names are not in memory.
    pub(super) fn names_of(
        &self,
        kinds: impl Iterator<Item = i32>,
        roles: impl Iterator<Item = i32>,
    ) -> (NamesById, Vec<i32>, Vec<i32>) {
        let known = self.snapshot();
        let mut names_by_id = NamesById::default();
        let missing_kinds = find(&known.names_by_id.kinds, kinds, &mut names_by_id.kinds);
        let missing_roles = find(&known.names_by_id.roles, roles, &mut names_by_id.roles);
        (names_by_id, missing_kinds, missing_roles)
    }

    pub(super) fn insert_ids(&self, ids: &IdsByName) {
        self.change(|known| {
            for (kind, &id) in &ids.kinds {
                known.names_by_id.kinds.insert(id, kind.clone());
                let roles = HashMap::new();
                let new = || KindIds { id, roles };
                known.kinds.entry(kind.clone()).or_insert_with(new);
            }
            for ((kind, role), &id) in &ids.roles {
                known.names_by_id.roles.insert(id, role.clone());
                if let Some(kind) = known.kinds.get_mut(kind) {
                    kind.roles.insert(role.clone(), id);
                }
            }
        });
    }

    pub(super) fn insert_names(&self, names: &NamesById) {
        self.change(|known| {
            let kinds = names.kinds.iter().map(|(&id, name)| (id, name.clone()));
            known.names_by_id.kinds.extend(kinds);
            let roles = names.roles.iter().map(|(&id, name)| (id, name.clone()));
            known.names_by_id.roles.extend(roles);
        });
    }

    fn change(&self, change: impl FnOnce(&mut NameSnapshot)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.names_by_id.kinds.len() + known.names_by_id.roles.len() > self.most {
            *known = Arc::default();
        }
        change(Arc::make_mut(&mut known));
    }
}

fn find(
    known: &HashMap<i32, Arc<str>>,
    ids: impl Iterator<Item = i32>,
    found: &mut HashMap<i32, Arc<str>>,
) -> Vec<i32> {
    let mut missing = Vec::new();
    for id in ids {
        if found.contains_key(&id) {
            continue;
        }
        match known.get(&id) {
            Some(name) => drop(found.insert(id, name.clone())),
            None => missing.push(id),
        }
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}
