//! Definitions of feeds on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::types::Type;
use wakeline_bus::Write;

use super::{PostgresStore, only};
use crate::store::{
    Definition, Definitions, REFRESHED_AFTER, StoreFuture, StoredDefinition,
    rows::{definition_texts, read_definition},
    silent,
};

/// Rows that are removed by one statement.
const FORGOTTEN_AT_ONCE: i64 = 10_000;

impl Definitions for PostgresStore {
    fn define(&self, definitions: Vec<Definition>) -> Write<()> {
        let store = self.clone();
        silent(async move {
            let hashes: Vec<&str> = definitions.iter().map(|one| &*one.hash).collect();
            let texts: Vec<&str> = definitions.iter().map(|one| &*one.text).collect();
            let (givens, owners): (Vec<_>, Vec<_>) =
                definitions.iter().map(definition_texts).unzip();
            let parameters = [
                (&hashes as _, Type::TEXT_ARRAY),
                (&texts as _, Type::TEXT_ARRAY),
                (&givens as _, Type::TEXT_ARRAY),
                (&owners as _, Type::TEXT_ARRAY),
                (&REFRESHED_AFTER as _, Type::INT8),
            ];
            let statement = "SELECT wakeline.feed_define($1, $2, $3, $4, $5)";
            let defined = store.ask("feed_define", statement, &parameters).await;
            defined.map(drop)
        })
    }

    fn definition(&self, hash: String) -> StoreFuture<'_, Option<StoredDefinition>> {
        async move {
            // The database takes no text with a NUL.
            if hash.contains('\0') {
                return Ok(None);
            }
            let statement = "SELECT text, given, owner,
                    used_at < wakeline.feed_now() - $2 AS is_stale
                FROM wakeline.feed_definition WHERE hash = $1";
            let parameters = [
                (&hash as _, Type::TEXT),
                (&REFRESHED_AFTER as _, Type::INT8),
            ];
            let rows = self.ask("feed_definition", statement, &parameters).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let (text, given, owner) = (row.get("text"), row.get("given"), row.get("owner"));
            Ok(Some(StoredDefinition {
                definition: read_definition(hash, text, given, owner)?,
                is_stale: row.get("is_stale"),
            }))
        }
        .boxed()
    }

    fn refresh_definition(&self, hash: String) -> Write<()> {
        let store = self.clone();
        silent(async move {
            let statement = "SELECT wakeline.feed_refresh(ARRAY[$1], $2)";
            let parameters = [
                (&hash as _, Type::TEXT),
                (&REFRESHED_AFTER as _, Type::INT8),
            ];
            let refreshed = store.ask("feed_refresh", statement, &parameters).await;
            refreshed.map(drop)
        })
    }

    fn forget_definitions(&self, since: i64) -> Write<u64> {
        let store = self.clone();
        silent(async move {
            let statement = "WITH removed AS (
                    DELETE FROM wakeline.feed_definition WHERE hash IN (
                        SELECT d.hash FROM wakeline.feed_definition d WHERE d.used_at < $1
                        ORDER BY d.used_at LIMIT $2 FOR UPDATE SKIP LOCKED
                    ) RETURNING 1
                ) SELECT count(*) AS removed FROM removed";
            let parameters = [
                (&since as _, Type::INT8),
                (&FORGOTTEN_AT_ONCE as _, Type::INT8),
            ];
            let mut forgotten = 0;
            loop {
                let rows = store.ask("feed_forget", statement, &parameters).await?;
                let removed: i64 = only(&rows)?.get("removed");
                forgotten += removed.unsigned_abs();
                if removed < FORGOTTEN_AT_ONCE {
                    return Ok(forgotten);
                }
            }
        })
    }
}
