//! What an earlier version has kept is served by this one.

use wakeline_jobs::store::sqlite::{MIGRATIONS, SqliteStore, system_clock};
use wakeline_store::{Migrations, testing::SqliteDatabase};

use crate::place::{found, key};

#[tokio::test]
async fn answers_from_before_there_were_pieces_are_found() {
    let file = SqliteDatabase::new();
    let before = Migrations {
        steps: &MIGRATIONS.steps[..4],
        ..MIGRATIONS
    };
    let earlier = file.open(&[before]);
    let kept = earlier.write("test", |connection| {
        let one = key("a");
        connection.execute(
            "INSERT INTO jobs_result (provider_id, version, hash, is_error, etag, expires_at, body)
            VALUES (?1, ?2, ?3, 0, '\"e\"', 9000000000000000, x'010203')",
            (one.provider, one.version, one.hash),
        )?;
        Ok::<_, wakeline_store::Error>(())
    });
    kept.await.unwrap();
    drop(earlier);
    let store = SqliteStore::new(file.open(&[MIGRATIONS]), system_clock());
    assert_eq!(found(&store, &key("a")).await.unwrap(), [1, 2, 3]);
}
