//! Removing what a purge condition says is not needed any more.

use futures_util::FutureExt;
use tokio_postgres::types::Type;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    fact::Kind,
    store::{Position, Purging, Step, silent},
};

const OF_KIND: &str = "SELECT position FROM wakeline.feed_fact
    WHERE type_id = (SELECT id FROM wakeline.feed_type WHERE name = $1) AND position > $2
    ORDER BY position LIMIT $3";

impl Purging for PostgresStore {
    fn of_kind(&self, kind: Kind, after: Position, limit: usize) -> Step<'_, Vec<Position>> {
        async move {
            let limit = at_most(limit);
            let parameters = [
                (&&*kind as _, Type::TEXT),
                (&after as _, Type::INT8),
                (&limit as _, Type::INT8),
            ];
            let rows = self.ask("feed-of-kind", OF_KIND, &parameters).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        }
        .boxed()
    }

    fn purge(&self, root: Position, keep: Vec<Position>, limit: usize) -> Write<Vec<Position>> {
        let store = self.clone();
        silent(async move { store.remove(vec![root], keep, limit).await })
    }

    fn fence(&self) -> Write<Position> {
        let store = self.clone();
        silent(async move {
            let statement = "SELECT nextval('wakeline.feed_position')";
            let rows = store.ask("feed-fence", statement, &[]).await?;
            Ok(only(&rows)?.get(0))
        })
    }

    fn purge_orphans(&self, of: Vec<Position>) -> Write<usize> {
        let store = self.clone();
        silent(async move { Ok(store.remove(of, Vec::new(), usize::MAX).await?.len()) })
    }
}

impl PostgresStore {
    async fn remove(
        &self,
        of: Vec<Position>,
        keep: Vec<Position>,
        limit: usize,
    ) -> Result<Vec<Position>, Error> {
        let limit = at_most(limit);
        let parameters = [
            (&of as _, Type::INT8_ARRAY),
            (&keep as _, Type::INT8_ARRAY),
            (&limit as _, Type::INT8),
        ];
        let statement = "SELECT wakeline.feed_purge($1, $2, $3)";
        let rows = self.ask("feed-purge", statement, &parameters).await?;
        Ok(only(&rows)?.get(0))
    }
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
