//! Definitions of feeds on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::types::Type;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::store::{
    Definition, Definitions, REFRESHED_AFTER, Step, StoredDefinition, silent, text,
};

/// Rows that are removed by one statement.
const FORGOTTEN_AT_ONCE: i64 = 10_000;

impl Definitions for PostgresStore {
    fn define(&self, definitions: Vec<Definition>) -> Write<()> {
        let store = self.clone();
        silent(async move {
            let (mut hashes, mut texts) = (Vec::new(), Vec::new());
            let (mut givens, mut owners) = (Vec::new(), Vec::new());
            for one in &definitions {
                hashes.push(&*one.hash);
                texts.push(&*one.text);
                givens.push(text::write_references(&one.given));
                let owner = one.owner.as_ref().map(std::slice::from_ref);
                owners.push(owner.map(text::write_references));
            }
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

    fn definition(&self, hash: String) -> Step<'_, Option<StoredDefinition>> {
        async move {
            // The database takes no text with a NUL.
            if hash.contains('\0') {
                return Ok(None);
            }
            let statement = "SELECT text, given, owner, used < wakeline.feed_now() - $2 AS is_stale
                FROM wakeline.feed_definition WHERE hash = $1";
            let rows = self
                .ask(
                    "feed_definition",
                    statement,
                    &[(&hash, Type::TEXT), (&REFRESHED_AFTER, Type::INT8)],
                )
                .await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let known = self.names.known();
            let definition = Definition {
                hash: hash.into(),
                text: row.get::<_, &str>("text").into(),
                given: text::read_references(row.get("given"), &known)?,
                owner: text::read_owner(row.get("owner"), &known)?,
            };
            Ok(Some(StoredDefinition {
                definition,
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
            let statement = "WITH gone AS (
                    DELETE FROM wakeline.feed_definition WHERE hash IN (
                        SELECT d.hash FROM wakeline.feed_definition d WHERE d.used < $1
                        ORDER BY d.used LIMIT $2 FOR UPDATE SKIP LOCKED
                    ) RETURNING 1
                ) SELECT count(*) FROM gone";
            let mut forgotten = 0;
            loop {
                let rows = store
                    .ask(
                        "feed_forget",
                        statement,
                        &[(&since, Type::INT8), (&FORGOTTEN_AT_ONCE, Type::INT8)],
                    )
                    .await?;
                let gone: i64 = super::only(&rows)?.get(0);
                forgotten += gone.unsigned_abs();
                if gone < FORGOTTEN_AT_ONCE {
                    return Ok(forgotten);
                }
            }
        })
    }
}
