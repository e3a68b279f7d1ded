//! A fresh, isolated database per test.
//!
//! PostgreSQL: cloned from a template that has been migrated once, on the server that
//! `WAKELINE_TEST_POSTGRES` names. `cargo xtask test` starts one and sets it; it does not sync, so
//! a test of what survives a crash asks for a database [on](PostgresDatabase::on) its own server.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    path::PathBuf,
};

use tempfile::TempDir;
use tokio_postgres::{Client, Config};

use wakeline_store::{
    Migrations, Postgres, Sqlite,
    postgres::{self, Connector},
    sqlite,
};

use crate::wait::eventually;

const ADDRESS: &str = "WAKELINE_TEST_POSTGRES";
/// Serialises the making of templates.
const TEMPLATE_LOCK: i64 = 0x74_65_73_74;

/// A SQLite file that goes away with its directory.
#[derive(Debug)]
pub struct SqliteDatabase {
    directory: TempDir,
}

impl SqliteDatabase {
    #[must_use]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        Self { directory }
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("wakeline.db")
    }

    #[must_use]
    pub fn open(&self, migrations: &[Migrations]) -> Sqlite {
        Sqlite::open(&self.path(), &sqlite::Options::default(), migrations)
            .expect("a fresh database can be opened")
    }
}

impl Default for SqliteDatabase {
    fn default() -> Self {
        Self::new()
    }
}

/// A PostgreSQL database of its own, dropped at the end.
#[derive(Debug)]
pub struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// On the server of the test run.
    pub async fn new(migrations: &[Migrations]) -> Self {
        let server = std::env::var(ADDRESS).unwrap_or_else(|_| {
            panic!("{ADDRESS} is not set: run the tests by `cargo xtask test`, or point it at a PostgreSQL server where databases may be created")
        });
        // Where nothing is synced, files are copied at half the cost of logged pages.
        Self::cloned(&server, migrations, "STRATEGY FILE_COPY").await
    }

    /// On a server of the test's own.
    pub async fn on(server: &str, migrations: &[Migrations]) -> Self {
        Self::cloned(server, migrations, "").await
    }

    async fn cloned(server: &str, migrations: &[Migrations], strategy: &str) -> Self {
        let template = template_name(migrations);
        let name = format!("wakeline_test_{:016x}", rand::random::<u64>());
        let admin = connector(server);
        let admin = admin.connect().await.expect("the test server answers");
        let clone = format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}");
        if admin.batch_execute(&clone).await.is_err() {
            make_template(&admin, server, &template, migrations).await;
            admin
                .batch_execute(&clone)
                .await
                .expect("the template can be cloned");
        }
        Self {
            server: server.to_owned(),
            name,
        }
    }

    #[must_use]
    pub fn url(&self) -> String {
        url_for(&self.server, &self.name)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn connector(&self) -> Connector {
        connector(&self.url())
    }

    pub async fn open(&self, migrations: &[Migrations]) -> Postgres {
        Postgres::open(&self.url(), &postgres::Options::default(), migrations)
            .await
            .expect("a fresh database can be opened")
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A thread of its own: the test's runtime is about to end.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                if let Ok(admin) = connector(&server).connect().await {
                    let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                    let _ = admin.batch_execute(&drop).await;
                }
            });
            Ok::<_, std::io::Error>(())
        });
        let _ = dropping.join();
    }
}

async fn make_template(admin: &Client, server: &str, template: &str, migrations: &[Migrations]) {
    let run = async |sql: String| admin.batch_execute(&sql).await;
    run(format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})"))
        .await
        .expect("a lock");
    let existing = format!("SELECT 1 FROM pg_database WHERE datname = '{template}'");
    let existing = admin.query_typed(&existing, &[]).await;
    if existing.expect("the catalogue can be read").is_empty() {
        let making = format!("{template}_making");
        run(format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)"))
            .await
            .expect("a drop");
        run(format!(
            "CREATE DATABASE {making} ENCODING 'UTF8' TEMPLATE template0"
        ))
        .await
        .expect("a database can be created");
        let options = postgres::Options::default();
        let opened = Postgres::open(&url_for(server, &making), &options, migrations).await;
        drop(opened.expect("the template can be migrated"));
        // The session closes in the background, and a rename does not wait for it.
        let rename = format!("ALTER DATABASE {making} RENAME TO {template}");
        eventually("the template's session to close", async || {
            run(rename.clone()).await.is_ok()
        })
        .await;
    }
    run(format!("SELECT pg_advisory_unlock({TEMPLATE_LOCK})"))
        .await
        .expect("an unlock");
}

fn template_name(migrations: &[Migrations]) -> String {
    let mut hasher = DefaultHasher::new();
    for door in migrations {
        (door.door, door.steps).hash(&mut hasher);
    }
    format!("wakeline_template_{:016x}", hasher.finish())
}

fn connector(url: &str) -> Connector {
    Connector::new(url, &postgres::Options::default()).expect("the test server's URL is valid")
}

/// The server's URL with another database in it.
#[must_use]
pub fn url_for(server: &str, database: &str) -> String {
    let parsed: Config = server.parse().expect("the server's URL is valid");
    let known = parsed.get_dbname().unwrap_or_default();
    match server.strip_suffix(&format!("/{known}")) {
        Some(base) if !known.is_empty() => format!("{base}/{database}"),
        _ => format!("{}/{database}", server.trim_end_matches('/')),
    }
}
