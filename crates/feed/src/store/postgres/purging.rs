//! Removing purged facts on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::types::Type;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    fact::Kind,
    store::{Removals, Seq, StoreFuture, silent, sql_limit},
};

const OF_KIND: &str = "SELECT seq FROM wakeline.feed_fact
    WHERE type_id = (SELECT id FROM wakeline.feed_type WHERE name = $1) AND seq > $2
    ORDER BY seq LIMIT $3";

impl Removals for PostgresStore {
    fn facts_of_type(&self, kind: Kind, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Seq>> {
        async move {
            let limit = sql_limit(limit);
            let parameters = [
                (&&*kind as _, Type::TEXT),
                (&after as _, Type::INT8),
                (&limit as _, Type::INT8),
            ];
            let rows = self.ask("feed_facts_of_type", OF_KIND, &parameters).await?;
            Ok(rows.iter().map(|row| row.get("seq")).collect())
        }
        .boxed()
    }

    fn purge(&self, root: Seq, keep: Vec<Seq>, limit: usize) -> Write<Vec<Seq>> {
        let store = self.clone();
        silent(async move { store.remove(vec![root], keep, limit).await })
    }

    fn fence(&self) -> Write<Seq> {
        let store = self.clone();
        silent(async move {
            let statement = "SELECT nextval('wakeline.feed_seq') AS seq";
            let rows = store.ask("feed_fence", statement, &[]).await?;
            Ok(only(&rows)?.get("seq"))
        })
    }

    fn purge_orphans(&self, of: Vec<Seq>) -> Write<usize> {
        let store = self.clone();
        silent(async move { Ok(store.remove(of, Vec::new(), usize::MAX).await?.len()) })
    }
}

impl PostgresStore {
    async fn remove(&self, of: Vec<Seq>, keep: Vec<Seq>, limit: usize) -> Result<Vec<Seq>, Error> {
        let limit = sql_limit(limit);
        let parameters = [
            (&of as _, Type::INT8_ARRAY),
            (&keep as _, Type::INT8_ARRAY),
            (&limit as _, Type::INT8),
        ];
        let statement = "SELECT wakeline.feed_purge($1, $2, $3) AS seqs";
        let rows = self.ask("feed_purge", statement, &parameters).await?;
        Ok(only(&rows)?.get("seqs"))
    }
}
