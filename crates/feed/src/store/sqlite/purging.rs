//! Removing what a purge condition says is not needed any more.

use futures_util::FutureExt;
use rusqlite::{Connection, Params};
use wakeline_bus::Write;

use super::{SqliteStore, save::last_value};
use crate::{
    fact::Kind,
    store::{Position, Purging, Step, silent},
};

const OF_KIND: &str = "SELECT position FROM feed_fact
    WHERE type_id = (SELECT id FROM feed_type WHERE name = ?1) AND position > ?2
    ORDER BY position LIMIT ?3";

const DESCENDANTS: &str = "WITH RECURSIVE kept (position) AS (
        SELECT value FROM json_each(?2)
        UNION
        SELECT e.predecessor FROM kept k JOIN feed_edge e ON e.successor = k.position
    ), descendant (position) AS (
        SELECT e.successor FROM feed_edge e JOIN json_each(?1) r ON e.predecessor = r.value
        UNION
        SELECT e.successor FROM descendant d JOIN feed_edge e ON e.predecessor = d.position
    )
    SELECT position FROM descendant EXCEPT SELECT position FROM kept
    ORDER BY position DESC LIMIT ?3";

impl Purging for SqliteStore {
    fn of_kind(&self, kind: Kind, after: Position, limit: usize) -> Step<'_, Vec<Position>> {
        self.sqlite
            .read("feed-of-kind", move |connection| {
                let parameters = (&*kind, after, at_most(limit));
                Ok(positions(connection, OF_KIND, parameters)?)
            })
            .boxed()
    }

    fn purge(&self, root: Position, keep: Vec<Position>, limit: usize) -> Write<Vec<Position>> {
        silent(self.write("feed-purge", move |connection, _| {
            remove_descendants(connection, &[root], &keep, limit)
        }))
    }

    /// There is one writer: nothing is under way while something else is done.
    fn fence(&self) -> Write<Position> {
        let sqlite = self.sqlite.clone();
        silent(async move {
            let last = sqlite.read("feed-fence", |connection| Ok(last_value(connection)?));
            last.await
        })
    }

    fn purge_orphans(&self, of: Vec<Position>) -> Write<usize> {
        silent(self.write("feed-purge-orphans", move |connection, _| {
            Ok(remove_descendants(connection, &of, &[], usize::MAX)?.len())
        }))
    }
}

fn remove_descendants(
    connection: &Connection,
    of: &[Position],
    keep: &[Position],
    limit: usize,
) -> rusqlite::Result<Vec<Position>> {
    let parameters = (list(of), list(keep), at_most(limit));
    let gone = positions(connection, DESCENDANTS, parameters)?;
    for table in [
        "DELETE FROM feed_signature WHERE position = ?1",
        "DELETE FROM feed_edge WHERE successor = ?1",
        "DELETE FROM feed_fact WHERE position = ?1",
    ] {
        let mut statement = connection.prepare_cached(table)?;
        for position in &gone {
            statement.execute([position])?;
        }
    }
    Ok(gone)
}

fn positions(
    connection: &Connection,
    statement: &str,
    parameters: impl Params,
) -> rusqlite::Result<Vec<Position>> {
    let mut statement = connection.prepare_cached(statement)?;
    let rows = statement.query_map(parameters, |row| row.get(0))?;
    rows.collect()
}

fn list(positions: &[Position]) -> String {
    let texts: Vec<String> = positions.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(","))
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
