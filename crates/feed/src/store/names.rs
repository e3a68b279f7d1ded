//! The ids of types and roles, kept in memory: they never change once they are committed.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use wakeline_store::Error;

use crate::fact::Kind;

/// With more, all are forgotten and asked for again.
const MAX_NAMES: usize = 100_000;

/// A role and the type of the successor, which it belongs to.
pub(super) type RoleName = (Kind, Arc<str>);

/// Ids by name, of what was asked for and is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    pub(super) kinds: HashMap<Kind, i32>,
    pub(super) roles: HashMap<RoleName, i32>,
}

/// Names by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Called {
    pub(super) kinds: HashMap<i32, Kind>,
    pub(super) roles: HashMap<i32, Arc<str>>,
}

impl Called {
    pub(super) fn kind(&self, id: i32) -> Result<Kind, Error> {
        let name = self.kinds.get(&id).cloned();
        name.ok_or_else(|| Error::Failed(format!("a fact has the unknown type {id}")))
    }

    pub(super) fn role(&self, id: i32) -> Result<Arc<str>, Error> {
        let name = self.roles.get(&id).cloned();
        name.ok_or_else(|| Error::Failed(format!("a fact has the unknown role {id}")))
    }
}

/// Only what is committed may be learned.
#[derive(Debug)]
pub(super) struct Names {
    known: RwLock<Arc<Known>>,
    most: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self::at_most(MAX_NAMES)
    }
}

/// What was known in a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    kinds: HashMap<Kind, KnownKind>,
    called: Called,
}

#[derive(Clone, Debug)]
struct KnownKind {
    id: i32,
    roles: HashMap<Arc<str>, i32>,
}

impl Known {
    pub(super) fn kind_id(&self, kind: &str) -> Option<i32> {
        Some(self.kinds.get(kind)?.id)
    }

    pub(super) fn role_id(&self, kind: &str, role: &str) -> Option<i32> {
        self.kinds.get(kind)?.roles.get(role).copied()
    }

    /// The name that is kept already, else a new one.
    pub(super) fn shared(&self, kind: &str) -> Kind {
        let known = self.kinds.get_key_value(kind);
        known.map_or_else(|| kind.into(), |(kind, _)| kind.clone())
    }
}

impl Names {
    pub(super) fn at_most(most: usize) -> Self {
        Self {
            known: RwLock::default(),
            most,
        }
    }

    pub(super) fn known(&self) -> Arc<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// All of these, or `None` if one is not known here.
    pub(super) fn ids(&self, kinds: &[Kind], roles: &[RoleName]) -> Option<Ids> {
        let known = self.known();
        let mut ids = Ids::default();
        for kind in kinds {
            ids.kinds.insert(kind.clone(), known.kind_id(kind)?);
        }
        for role in roles {
            let id = known.role_id(&role.0, &role.1)?;
            ids.roles.insert(role.clone(), id);
        }
        Some(ids)
    }

    /// What these are called, and which of them nobody here knows.
    pub(super) fn called(
        &self,
        kinds: impl Iterator<Item = i32>,
        roles: impl Iterator<Item = i32>,
    ) -> (Called, Vec<i32>, Vec<i32>) {
        let known = self.known();
        let mut called = Called::default();
        let strange_kinds = find(&known.called.kinds, kinds, &mut called.kinds);
        let strange_roles = find(&known.called.roles, roles, &mut called.roles);
        (called, strange_kinds, strange_roles)
    }

    pub(super) fn learn(&self, ids: &Ids) {
        self.change(|known| {
            for (kind, &id) in &ids.kinds {
                known.called.kinds.insert(id, kind.clone());
                let roles = HashMap::new();
                let new = || KnownKind { id, roles };
                known.kinds.entry(kind.clone()).or_insert_with(new);
            }
            for ((kind, role), &id) in &ids.roles {
                known.called.roles.insert(id, role.clone());
                if let Some(kind) = known.kinds.get_mut(kind) {
                    kind.roles.insert(role.clone(), id);
                }
            }
        });
    }

    pub(super) fn learn_called(&self, names: &Called) {
        self.change(|known| {
            let kinds = names.kinds.iter().map(|(&id, name)| (id, name.clone()));
            known.called.kinds.extend(kinds);
            let roles = names.roles.iter().map(|(&id, name)| (id, name.clone()));
            known.called.roles.extend(roles);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.called.kinds.len() + known.called.roles.len() > self.most {
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
    let mut strange = Vec::new();
    for id in ids {
        if found.contains_key(&id) {
            continue;
        }
        match known.get(&id) {
            Some(name) => drop(found.insert(id, name.clone())),
            None => strange.push(id),
        }
    }
    strange.sort_unstable();
    strange.dedup();
    strange
}
