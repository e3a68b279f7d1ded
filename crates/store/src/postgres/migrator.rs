//! Migrates a database to the newest version.

use tokio_postgres::{Client, Config, types::Type};

use super::{Connector, advice, chain};
use crate::migrate::{Migrations, OpenError};

/// Locked during a migration. The number is arbitrary.
const MIGRATION_LOCK: i64 = 0x77_61_6b_65;

const SERVER: &str = "SELECT current_setting('server_version_num')::int AS version,
    current_setting('server_encoding') AS encoding";

/// What to do when the database is not at the newest version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Migrate it.
    #[default]
    Apply,
    /// Refuse to open it: a program with more rights migrates it.
    Verify,
}

/// A name as an SQL identifier.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) struct Migrator<'a> {
    client: &'a Client,
    config: &'a Config,
    /// Quoted.
    schema: String,
    migrations: &'a [Migrations],
}

impl<'a> Migrator<'a> {
    pub(super) fn new(
        client: &'a Client,
        connector: &'a Connector,
        schema: &str,
        migrations: &'a [Migrations],
    ) -> Self {
        Self {
            client,
            config: connector.config(),
            schema: quoted(schema),
            migrations,
        }
    }

    /// All steps in one transaction, under an advisory lock of that transaction, which also works
    /// behind a pooler in transaction mode. They have no time limit: a large table is not rewritten in
    /// seconds.
    pub(super) async fn run(&self, policy: Policy) -> Result<(), OpenError> {
        let server = self.client.query_typed(SERVER, &[]).await;
        let server = server.map_err(|error| self.open(&error))?;
        if let Some(advice) = advice::on_version(server[0].get("version")) {
            return Err(OpenError::Open(advice));
        }
        let encoding: String = server[0].get("encoding");
        if encoding != "UTF8" {
            return Err(OpenError::Open(format!(
                "the database's encoding is {encoding}; create it with ENCODING 'UTF8'"
            )));
        }
        if self.is_up_to_date().await? {
            return Ok(());
        }
        if policy == Policy::Verify {
            let schema = self.schema.clone();
            return Err(OpenError::Behind { schema });
        }
        // Each statement must see what others committed while it waited for the lock.
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
        self.client
            .batch_execute(begin)
            .await
            .map_err(|error| self.open(&error))?;
        let result = self.run_in_transaction().await;
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.client
            .batch_execute(end)
            .await
            .map_err(|error| self.open(&error))?;
        result
    }

    async fn run_in_transaction(&self) -> Result<(), OpenError> {
        let schema = &self.schema;
        let begin = format!(
            "SET LOCAL statement_timeout = 0;
             SET LOCAL client_min_messages = warning;
             SELECT pg_advisory_xact_lock({MIGRATION_LOCK});
             CREATE SCHEMA IF NOT EXISTS {schema};
             CREATE TABLE IF NOT EXISTS {schema}.migration (
                 door text PRIMARY KEY, version bigint NOT NULL);"
        );
        self.client
            .batch_execute(&begin)
            .await
            .map_err(|error| self.open(&error))?;
        for door in self.migrations {
            for (number, step) in door.missing(self.version(door).await?)? {
                self.client
                    .batch_execute(&step.replace("@schema@", schema))
                    .await
                    .map_err(|error| self.failed(door, number, &error))?;
                self.client
                    .query_typed(
                        &format!(
                            "INSERT INTO {schema}.migration VALUES ($1, $2)
                             ON CONFLICT (door) DO UPDATE SET version = excluded.version"
                        ),
                        &[(&door.door, Type::TEXT), (&number, Type::INT8)],
                    )
                    .await
                    .map_err(|error| self.open(&error))?;
            }
        }
        Ok(())
    }

    /// Before the lock, so that the usual start writes nothing.
    async fn is_up_to_date(&self) -> Result<bool, OpenError> {
        let has_versions = self
            .client
            .query_typed(
                "SELECT to_regclass($1) IS NOT NULL",
                &[(&format!("{}.migration", self.schema), Type::TEXT)],
            )
            .await
            .map_err(|error| self.open(&error))?[0]
            .get::<_, bool>(0);
        if !has_versions {
            return Ok(false);
        }
        for door in self.migrations {
            if door.missing(self.version(door).await?)?.next().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn version(&self, door: &Migrations) -> Result<i64, OpenError> {
        let rows = self
            .client
            .query_typed(
                &format!(
                    "SELECT coalesce(max(version), 0) FROM {}.migration WHERE door = $1",
                    self.schema
                ),
                &[(&door.door, Type::TEXT)],
            )
            .await
            .map_err(|error| self.open(&error))?;
        Ok(rows[0].get(0))
    }

    fn open(&self, error: &tokio_postgres::Error) -> OpenError {
        OpenError::Open(self.advice(error).unwrap_or_else(|| chain(error)))
    }

    fn failed(&self, door: &Migrations, step: i64, error: &tokio_postgres::Error) -> OpenError {
        match self.advice(error) {
            Some(advice) => OpenError::Open(advice),
            None => door.failed(step, chain(error)),
        }
    }

    fn advice(&self, error: &tokio_postgres::Error) -> Option<String> {
        advice::on_migration(error, &self.schema, self.config)
    }
}
