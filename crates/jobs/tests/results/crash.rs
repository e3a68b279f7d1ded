//! PostgreSQL crashes: the cached answers and the locks are empty afterwards, and reads are sent to
//! the providers again.

use wakeline_jobs::{
    results::ResultBackend,
    store::postgres::{MIGRATIONS, PostgresStore},
};
use wakeline_testbed::Postgres;
use wakeline_testkit::PostgresDatabase;
use wakeline_testkit::eventually;

use crate::backend::{LONG, begin, found, key, put, state};

#[tokio::test]
async fn after_a_crash_answers_and_locks_are_gone() {
    let mut server = Postgres::start().unwrap();
    let database = PostgresDatabase::on(&server.url(), &[MIGRATIONS]).await;
    let backend = PostgresStore::new(database.open(&[MIGRATIONS]).await);
    put(&backend, &key("answered"), "one", LONG).await;
    assert!(begin(&backend, &key("asked"), LONG).await);
    server.crash().unwrap();
    server.start_again().unwrap();
    eventually("PostgreSQL to be found again", async || {
        backend.get(vec![key("answered")]).await.is_ok()
    })
    .await;
    assert!(found(&backend, &key("answered")).await.is_none());
    assert_eq!(state(&backend, &key("asked")).await.in_flight, None);
    assert!(begin(&backend, &key("asked"), LONG).await);
    put(&backend, &key("answered"), "two", LONG).await;
    assert_eq!(found(&backend, &key("answered")).await.unwrap(), b"two");
}
