//! Ids of types and roles on SQLite.

use rusqlite::{Connection, OptionalExtension, Params};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    fact::Kind,
    store::names::{IdsByName, NameCache, NameTables, NamesById, RoleName},
};

impl NameTables for SqliteStore {
    fn cache(&self) -> &NameCache {
        &self.names
    }

    async fn stored_ids(
        &self,
        kinds: Vec<Kind>,
        roles: Vec<RoleName>,
        insert: bool,
    ) -> Result<IdsByName, Error> {
        if insert {
            let step = move |connection: &Connection, _| ids(connection, &kinds, &roles, true);
            return self.write("feed_insert_ids", step).await;
        }
        self.read("feed_ids", move |connection, _| {
            Ok(ids(connection, &kinds, &roles, false)?)
        })
        .await
    }
}

pub(super) fn names_of(
    connection: &Connection,
    names: &NameCache,
    kinds: impl Iterator<Item = i32>,
    roles: impl Iterator<Item = i32>,
) -> Result<NamesById, Error> {
    let (mut found, missing_kinds, missing_roles) = names.names_of(kinds, roles);
    if missing_kinds.is_empty() && missing_roles.is_empty() {
        return Ok(found);
    }
    let mut kind = connection.prepare_cached("SELECT name FROM feed_type WHERE id = ?1")?;
    for id in missing_kinds {
        let name: String = kind.query_row([id], |row| row.get("name"))?;
        found.kinds.insert(id, name.into());
    }
    let mut role = connection.prepare_cached("SELECT name FROM feed_role WHERE id = ?1")?;
    for id in missing_roles {
        let name: String = role.query_row([id], |row| row.get("name"))?;
        found.roles.insert(id, name.into());
    }
    names.insert_names(&found);
    Ok(found)
}

fn ids(
    connection: &Connection,
    kinds: &[Kind],
    roles: &[RoleName],
    insert: bool,
) -> rusqlite::Result<IdsByName> {
    let mut ids = IdsByName::default();
    for name in kinds.iter().chain(roles.iter().map(|(kind, _)| kind)) {
        if !ids.kinds.contains_key(name) {
            let select = "SELECT id FROM feed_type WHERE name = ?1";
            let add = "INSERT INTO feed_type (name) VALUES (?1) RETURNING id";
            let id = id(connection, select, insert.then_some(add), [name])?;
            ids.kinds.extend(id.map(|id| (name.clone(), id)));
        }
    }
    for role in roles {
        if !ids.roles.contains_key(role)
            && let Some(kind) = ids.kinds.get(&role.0)
        {
            let select = "SELECT id FROM feed_role WHERE type_id = ?1 AND name = ?2";
            let add = "INSERT INTO feed_role (type_id, name) VALUES (?1, ?2) RETURNING id";
            let id = id(connection, select, insert.then_some(add), (kind, &role.1))?;
            ids.roles.extend(id.map(|id| (role.clone(), id)));
        }
    }
    Ok(ids)
}

fn id(
    connection: &Connection,
    select: &str,
    insert: Option<&str>,
    name: impl Params + Copy,
) -> rusqlite::Result<Option<i32>> {
    let mut select = connection.prepare_cached(select)?;
    let id = select.query_row(name, |row| row.get("id")).optional()?;
    match insert.filter(|_| id.is_none()) {
        None => Ok(id),
        Some(insert) => {
            let mut insert = connection.prepare_cached(insert)?;
            insert.query_row(name, |row| row.get("id")).map(Some)
        }
    }
}
