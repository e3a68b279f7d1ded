//! Ids of types and roles on PostgreSQL.

use std::sync::Arc;

use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    fact::Kind,
    store::names::{Called, Ids, RoleName},
};

impl PostgresStore {
    /// The ids of those that are stored. What is not stored has no facts.
    pub(super) async fn ids(&self, kinds: &[Kind], roles: &[RoleName]) -> Result<Ids, Error> {
        if let Some(ids) = self.names.ids(kinds, roles) {
            return Ok(ids);
        }
        // The database takes no text with a NUL, so nothing is called by one.
        let kinds: Vec<_> = kinds.iter().filter(|kind| is_text(kind)).cloned().collect();
        let roles = roles
            .iter()
            .filter(|role| is_text(&role.0) && is_text(&role.1));
        let roles: Vec<_> = roles.cloned().collect();
        let statement = "SELECT * FROM wakeline.feed_ids($1, $2, $3)";
        self.ask_ids("feed_ids", statement, &kinds, &roles).await
    }

    /// Gives an id to each that has none.
    pub(super) async fn make_ids(&self, kinds: &[Kind], roles: &[RoleName]) -> Result<(), Error> {
        if kinds.is_empty() && roles.is_empty() {
            return Ok(());
        }
        let statement = "SELECT * FROM wakeline.feed_make_ids($1, $2, $3)";
        let made = self.ask_ids("feed_make_ids", statement, kinds, roles).await;
        made.map(drop)
    }

    async fn ask_ids(
        &self,
        name: &'static str,
        statement: &str,
        kinds: &[Kind],
        roles: &[RoleName],
    ) -> Result<Ids, Error> {
        let kinds: Vec<&str> = kinds.iter().map(|kind| &**kind).collect();
        let (of, roles): (Vec<&str>, Vec<&str>) =
            roles.iter().map(|(kind, role)| (&**kind, &**role)).unzip();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
            (&kinds, Type::TEXT_ARRAY),
            (&of, Type::TEXT_ARRAY),
            (&roles, Type::TEXT_ARRAY),
        ];
        let mut ids = Ids::default();
        for row in self.ask(name, statement, &parameters).await? {
            let kind = Kind::from(row.get::<_, &str>(1));
            match row.get::<_, Option<&str>>(2) {
                None => ids.kinds.insert(kind, row.get(0)),
                Some(role) => ids.roles.insert((kind, role.into()), row.get(0)),
            };
        }
        self.names.learn(&ids);
        Ok(ids)
    }

    /// What these are called.
    pub(super) async fn called(
        &self,
        kinds: impl Iterator<Item = i32>,
        roles: impl Iterator<Item = i32>,
    ) -> Result<Called, Error> {
        let (mut called, strange_kinds, strange_roles) = self.names.called(kinds, roles);
        if strange_kinds.is_empty() && strange_roles.is_empty() {
            return Ok(called);
        }
        let statement = "SELECT id, name FROM wakeline.feed_type WHERE id = ANY ($1)";
        let kinds = self.ask_names(statement, &strange_kinds).await?;
        called.kinds.extend(kinds.iter().map(name));
        let statement = "SELECT id, name FROM wakeline.feed_role WHERE id = ANY ($1)";
        let roles = self.ask_names(statement, &strange_roles).await?;
        called.roles.extend(roles.iter().map(name));
        self.names.learn_called(&called);
        Ok(called)
    }

    async fn ask_names(&self, statement: &str, ids: &Vec<i32>) -> Result<Vec<Row>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(ids, Type::INT4_ARRAY)];
        self.ask("feed_names", statement, &parameters).await
    }
}

fn name(row: &Row) -> (i32, Arc<str>) {
    (row.get(0), row.get::<_, &str>(1).into())
}

fn is_text(name: &str) -> bool {
    !name.contains('\0')
}
