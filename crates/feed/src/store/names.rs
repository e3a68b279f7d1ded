//! The ids of types and roles, kept in memory: they never change once they are committed.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use wakeline_store::Error;

use crate::fact::Kind;

/// With more, all are forgotten and asked for again.
const MAX_NAMES: usize = 100_000;

/// A role and the type of the successor, which it belongs to.
pub(super) type RoleName = (Kind, Arc<str>);

/// Ids by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    pub(super) kinds: HashMap<Kind, i32>,
    pub(super) roles: HashMap<RoleName, i32>,
}

impl Ids {
    /// Whether a role or type that was asked for is not here.
    pub(super) fn lack(&self, kinds: &[Kind], roles: &[RoleName]) -> bool {
        kinds.iter().any(|kind| !self.kinds.contains_key(kind))
            || roles.iter().any(|role| !self.roles.contains_key(role))
    }
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
#[derive(Debug, Default)]
pub(super) struct Names {
    known: RwLock<(Ids, Called)>,
}

impl Names {
    /// Those that are known here.
    pub(super) fn ids(&self, kinds: &[Kind], roles: &[RoleName]) -> Ids {
        let (known, _) = &*self.read();
        let kinds = kinds
            .iter()
            .filter_map(|kind| Some((kind.clone(), *known.kinds.get(kind)?)));
        let roles = roles
            .iter()
            .filter_map(|role| Some((role.clone(), *known.roles.get(role)?)));
        Ids {
            kinds: kinds.collect(),
            roles: roles.collect(),
        }
    }

    /// What these are called, and which of them nobody here knows.
    pub(super) fn called(
        &self,
        kinds: impl Iterator<Item = i32>,
        roles: impl Iterator<Item = i32>,
    ) -> (Called, Vec<i32>, Vec<i32>) {
        let (_, known) = &*self.read();
        let mut called = Called::default();
        let (mut strange_kinds, mut strange_roles) = (Vec::new(), Vec::new());
        for id in kinds {
            if called.kinds.contains_key(&id) {
                continue;
            }
            match known.kinds.get(&id) {
                Some(name) => drop(called.kinds.insert(id, name.clone())),
                None => strange_kinds.push(id),
            }
        }
        for id in roles {
            if called.roles.contains_key(&id) {
                continue;
            }
            match known.roles.get(&id) {
                Some(name) => drop(called.roles.insert(id, name.clone())),
                None => strange_roles.push(id),
            }
        }
        (called, strange_kinds, strange_roles)
    }

    pub(super) fn learn(&self, ids: &Ids) {
        let (known, called) = &mut *self.write();
        for (kind, &id) in &ids.kinds {
            known.kinds.insert(kind.clone(), id);
            called.kinds.insert(id, kind.clone());
        }
        for (role, &id) in &ids.roles {
            known.roles.insert(role.clone(), id);
            called.roles.insert(id, role.1.clone());
        }
    }

    pub(super) fn learn_called(&self, names: &Called) {
        let (_, called) = &mut *self.write();
        let kinds = names.kinds.iter().map(|(&id, name)| (id, name.clone()));
        called.kinds.extend(kinds);
        let roles = names.roles.iter().map(|(&id, name)| (id, name.clone()));
        called.roles.extend(roles);
    }

    fn read(&self) -> RwLockReadGuard<'_, (Ids, Called)> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, (Ids, Called)> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.1.kinds.len() + known.1.roles.len() > MAX_NAMES {
            *known = Default::default();
        }
        known
    }
}
