//! Removing purged facts on SQLite.

use futures_util::FutureExt;
use rusqlite::{Connection, Params};
use wakeline_bus::Write;

use super::{SqliteStore, save::last_value};
use crate::{
    fact::Kind,
    store::{Removals, Seq, StoreFuture, silent, sql_limit},
};

const OF_KIND: &str = "SELECT seq FROM feed_fact
    WHERE type_id = (SELECT id FROM feed_type WHERE name = ?1) AND seq > ?2
    ORDER BY seq LIMIT ?3";

const DESCENDANTS: &str = "WITH RECURSIVE kept (seq) AS (
        SELECT value FROM json_each(?2)
        UNION
        SELECT e.predecessor FROM kept k JOIN feed_edge e ON e.successor = k.seq
    ), descendant (seq) AS (
        SELECT e.successor FROM feed_edge e JOIN json_each(?1) r ON e.predecessor = r.value
        UNION
        SELECT e.successor FROM descendant d JOIN feed_edge e ON e.predecessor = d.seq
    )
    SELECT seq FROM descendant EXCEPT SELECT seq FROM kept
    ORDER BY seq DESC LIMIT ?3";

impl Removals for SqliteStore {
    fn facts_of_type(&self, kind: Kind, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Seq>> {
        self.sqlite
            .read("feed_facts_of_type", move |connection| {
                let parameters = (&*kind, after, sql_limit(limit));
                Ok(seqs(connection, OF_KIND, parameters)?)
            })
            .boxed()
    }

    fn purge(&self, root: Seq, keep: Vec<Seq>, limit: usize) -> Write<Vec<Seq>> {
        silent(self.write("feed_purge", move |connection, _| {
            remove_descendants(connection, &[root], &keep, limit)
        }))
    }

    /// There is one writer, so no save is under way during another write.
    fn fence(&self) -> Write<Seq> {
        let sqlite = self.sqlite.clone();
        silent(async move {
            let last = sqlite.read("feed_fence", |connection| Ok(last_value(connection)?));
            last.await
        })
    }

    fn purge_orphans(&self, of: Vec<Seq>) -> Write<usize> {
        silent(self.write("feed_purge_orphans", move |connection, _| {
            Ok(remove_descendants(connection, &of, &[], usize::MAX)?.len())
        }))
    }
}

fn remove_descendants(
    connection: &Connection,
    of: &[Seq],
    keep: &[Seq],
    limit: usize,
) -> rusqlite::Result<Vec<Seq>> {
    let parameters = (json(of), json(keep), sql_limit(limit));
    let gone = seqs(connection, DESCENDANTS, parameters)?;
    for table in [
        "DELETE FROM feed_signature WHERE seq = ?1",
        "DELETE FROM feed_edge WHERE successor = ?1",
        "DELETE FROM feed_fact WHERE seq = ?1",
    ] {
        let mut statement = connection.prepare_cached(table)?;
        for seq in &gone {
            statement.execute([seq])?;
        }
    }
    Ok(gone)
}

fn json(seqs: &[Seq]) -> String {
    serde_json::to_string(seqs).expect("numbers are JSON")
}

fn seqs(
    connection: &Connection,
    statement: &str,
    parameters: impl Params,
) -> rusqlite::Result<Vec<Seq>> {
    let mut statement = connection.prepare_cached(statement)?;
    let rows = statement.query_map(parameters, |row| row.get("seq"))?;
    rows.collect()
}
