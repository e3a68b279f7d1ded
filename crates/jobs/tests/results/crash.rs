//! PostgreSQL crashes: what is only a cache is empty afterwards, and is asked for again.

use wakeline_jobs::{
    results::Results,
    store::postgres::{MIGRATIONS, PostgresStore},
};
use wakeline_testbed::Postgres;
use wakeline_testkit::PostgresDatabase;
use wakeline_testkit::eventually;

use crate::place::{LONG, begin, found, key, look, put};

#[tokio::test]
async fn after_a_crash_everything_is_asked_again() {
    let mut server = Postgres::start().unwrap();
    let database = PostgresDatabase::on(&server.url(), &[MIGRATIONS]).await;
    let place = PostgresStore::new(database.open(&[MIGRATIONS]).await);
    put(&place, &key("answered"), "one", LONG).await;
    assert!(begin(&place, &key("asked"), LONG).await);
    server.crash().unwrap();
    server.start_again().unwrap();
    eventually("PostgreSQL to be found again", async || {
        place.look(vec![key("answered")]).await.is_ok()
    })
    .await;
    assert!(found(&place, &key("answered")).await.is_none());
    assert_eq!(look(&place, &key("asked")).await.in_flight, None);
    assert!(begin(&place, &key("asked"), LONG).await);
    put(&place, &key("answered"), "two", LONG).await;
    assert_eq!(found(&place, &key("answered")).await.unwrap(), b"two");
}
