//! Ids of types and roles on SQLite.

use rusqlite::{Connection, OptionalExtension};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    fact::Kind,
    store::names::{Called, Ids, Names, RoleName},
};

impl SqliteStore {
    /// The ids of those that are stored. What is not stored has no facts.
    pub(super) async fn ids(&self, kinds: Vec<Kind>, roles: Vec<RoleName>) -> Result<Ids, Error> {
        if let Some(ids) = self.names.ids(&kinds, &roles) {
            return Ok(ids);
        }
        self.read("feed_ids", move |connection, names| {
            let ids = ids(connection, &kinds, &roles, false)?;
            names.learn(&ids);
            Ok(ids)
        })
        .await
    }

    /// Gives an id to each that has none.
    pub(super) async fn make_ids(
        &self,
        kinds: Vec<Kind>,
        roles: Vec<RoleName>,
    ) -> Result<(), Error> {
        if kinds.is_empty() && roles.is_empty() {
            return Ok(());
        }
        let ids = self
            .write("feed_make_ids", move |connection, _| {
                ids(connection, &kinds, &roles, true)
            })
            .await?;
        // Not before the commit: one that failed would leave ids that mean something else later.
        self.names.learn(&ids);
        Ok(())
    }
}

/// What these are called.
pub(super) fn called(
    connection: &Connection,
    names: &Names,
    kinds: impl Iterator<Item = i32>,
    roles: impl Iterator<Item = i32>,
) -> Result<Called, Error> {
    let (mut called, strange_kinds, strange_roles) = names.called(kinds, roles);
    if strange_kinds.is_empty() && strange_roles.is_empty() {
        return Ok(called);
    }
    let mut kind = connection.prepare_cached("SELECT name FROM feed_type WHERE id = ?1")?;
    for id in strange_kinds {
        let name: String = kind.query_row([id], |row| row.get(0))?;
        called.kinds.insert(id, name.into());
    }
    let mut role = connection.prepare_cached("SELECT name FROM feed_role WHERE id = ?1")?;
    for id in strange_roles {
        let name: String = role.query_row([id], |row| row.get(0))?;
        called.roles.insert(id, name.into());
    }
    names.learn_called(&called);
    Ok(called)
}

fn ids(
    connection: &Connection,
    kinds: &[Kind],
    roles: &[RoleName],
    make: bool,
) -> rusqlite::Result<Ids> {
    let mut ids = Ids::default();
    for name in kinds.iter().chain(roles.iter().map(|(kind, _)| kind)) {
        if !ids.kinds.contains_key(name)
            && let Some(id) = kind_id(connection, name, make)?
        {
            ids.kinds.insert(name.clone(), id);
        }
    }
    for role in roles {
        if !ids.roles.contains_key(role)
            && let Some(&kind) = ids.kinds.get(&role.0)
            && let Some(id) = role_id(connection, kind, &role.1, make)?
        {
            ids.roles.insert(role.clone(), id);
        }
    }
    Ok(ids)
}

fn kind_id(connection: &Connection, name: &str, make: bool) -> rusqlite::Result<Option<i32>> {
    let mut look = connection.prepare_cached("SELECT id FROM feed_type WHERE name = ?1")?;
    let id = look.query_row([name], |row| row.get(0)).optional()?;
    if id.is_some() || !make {
        return Ok(id);
    }
    let sql = "INSERT INTO feed_type (name) VALUES (?1) RETURNING id";
    let mut add = connection.prepare_cached(sql)?;
    add.query_row([name], |row| row.get(0)).map(Some)
}

fn role_id(
    connection: &Connection,
    kind: i32,
    name: &str,
    make: bool,
) -> rusqlite::Result<Option<i32>> {
    let sql = "SELECT id FROM feed_role WHERE type_id = ?1 AND name = ?2";
    let mut look = connection.prepare_cached(sql)?;
    let id = look.query_row((kind, name), |row| row.get(0)).optional()?;
    if id.is_some() || !make {
        return Ok(id);
    }
    let sql = "INSERT INTO feed_role (type_id, name) VALUES (?1, ?2) RETURNING id";
    let mut add = connection.prepare_cached(sql)?;
    add.query_row((kind, name), |row| row.get(0)).map(Some)
}
