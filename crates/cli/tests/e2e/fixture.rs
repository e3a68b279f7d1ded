//! The fixture of a server: a data directory, and a PostgreSQL database if it uses one.

use std::path::Path;

use tempfile::TempDir;
use wakeline_testkit::PostgresDatabase;

use crate::server::Serve;

pub(crate) struct Fixture {
    data: TempDir,
    /// The URL, and the database, which is dropped with the fixture.
    postgres: Option<(String, Option<PostgresDatabase>)>,
}

impl Fixture {
    pub(crate) fn sqlite() -> Self {
        Self {
            data: tempfile::tempdir().expect("a temporary directory"),
            postgres: None,
        }
    }

    /// A fresh database on the server of the test run; the binary migrates it.
    pub(crate) async fn postgres() -> Self {
        let database = PostgresDatabase::new(&[]).await;
        Self {
            postgres: Some((database.url(), Some(database))),
            ..Self::sqlite()
        }
    }

    /// A database on a server of the test's own.
    pub(crate) fn postgres_at(url: String) -> Self {
        Self {
            postgres: Some((url, None)),
            ..Self::sqlite()
        }
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn postgres_url(&self) -> &str {
        let (url, _) = self.postgres.as_ref().expect("this fixture is PostgreSQL");
        url
    }

    /// A server on a free port; to be started, with more flags if need be.
    pub(crate) fn serve(&self) -> Serve {
        let data = self.data.path().display().to_string();
        // Not a flag, so that a test can give it as one.
        let serve = Serve::new(&["--data", &data]).env("WAKELINE_LISTEN", "127.0.0.1:0");
        match &self.postgres {
            None => serve,
            Some((url, _)) => serve.flags(&["--store", url]),
        }
    }
}

/// Runs each test on both stores, so that neither can forget a case.
macro_rules! on_both_stores {
    ($($name:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::fixture::Fixture::sqlite()).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::fixture::Fixture::postgres().await).await;
            })*
        }
    };
}

pub(crate) use on_both_stores;
