//! Ids of types and roles on PostgreSQL.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    fact::Kind,
    store::names::{IdsByName, NameCache, NameTables, NamesById, RoleName},
};

impl NameTables for PostgresStore {
    fn cache(&self) -> &NameCache {
        &self.names
    }

    async fn stored_ids(
        &self,
        kinds: Vec<Kind>,
        roles: Vec<RoleName>,
        insert: bool,
    ) -> Result<IdsByName, Error> {
        // The database takes no text with a NUL, so no name has one.
        let is_text = |name: &&str| !name.contains('\0');
        let kinds: Vec<&str> = kinds.iter().map(|kind| &**kind).filter(is_text).collect();
        let roles = roles.iter().map(|(kind, role)| (&**kind, &**role));
        let (of, roles): (Vec<&str>, Vec<&str>) = roles
            .filter(|(kind, role)| is_text(kind) && is_text(role))
            .unzip();
        let (name, statement) = match insert {
            false => ("feed_ids", "SELECT * FROM wakeline.feed_ids($1, $2, $3)"),
            true => (
                "feed_insert_ids",
                "SELECT * FROM wakeline.feed_insert_ids($1, $2, $3)",
            ),
        };
        let parameters = [
            (&kinds as _, Type::TEXT_ARRAY),
            (&of as _, Type::TEXT_ARRAY),
            (&roles as _, Type::TEXT_ARRAY),
        ];
        let mut ids = IdsByName::default();
        for row in self.ask(name, statement, &parameters).await? {
            let (id, kind) = (row.get("id"), Kind::from(row.get::<_, &str>("kind")));
            match row.get::<_, Option<&str>>("role") {
                None => ids.kinds.insert(kind, id),
                Some(role) => ids.roles.insert((kind, role.into()), id),
            };
        }
        Ok(ids)
    }
}

impl PostgresStore {
    pub(super) async fn names_of(
        &self,
        kinds: impl Iterator<Item = i32>,
        roles: impl Iterator<Item = i32>,
    ) -> Result<NamesById, Error> {
        let (mut found, missing_kinds, missing_roles) = self.names.names_of(kinds, roles);
        if missing_kinds.is_empty() && missing_roles.is_empty() {
            return Ok(found);
        }
        let kinds = "SELECT id, name AS text FROM wakeline.feed_type WHERE id = ANY ($1)";
        let kinds = self.texts("feed_names", kinds, &missing_kinds).await?;
        found.kinds.extend(kinds);
        let roles = "SELECT id, name AS text FROM wakeline.feed_role WHERE id = ANY ($1)";
        let roles = self.texts("feed_names", roles, &missing_roles).await?;
        found.roles.extend(roles);
        self.names.insert_names(&found);
        Ok(found)
    }

    /// The texts of these ids.
    pub(super) async fn texts(
        &self,
        kind: &'static str,
        statement: &str,
        ids: &Vec<i32>,
    ) -> Result<HashMap<i32, Arc<str>>, Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self
            .ask(kind, statement, &[(ids, Type::INT4_ARRAY)])
            .await?;
        let text = |row: &tokio_postgres::Row| (row.get("id"), row.get::<_, &str>("text").into());
        Ok(rows.iter().map(text).collect())
    }
}
