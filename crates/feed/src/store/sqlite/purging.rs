//! Removing what a purge condition says is not needed any more.

use futures_util::FutureExt;
use rusqlite::{Connection, Params};
use wakeline_store::Error;

use super::{SqliteStore, save::last_value};
use crate::{
    fact::Kind,
    store::{Position, Purging, Step},
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
                positions(connection, OF_KIND, (&*kind, after, at_most(limit)))
            })
            .boxed()
    }

    fn purge(&self, root: Position, keep: Vec<Position>, limit: usize) -> Step<'_, Vec<Position>> {
        self.sqlite
            .write("feed-purge", move |connection| {
                remove_descendants(connection, &[root], &keep, limit)
            })
            .boxed()
    }

    /// There is one writer: nothing is under way while something else is done.
    fn fence(&self) -> Step<'_, Position> {
        self.sqlite
            .read("feed-fence", |connection| Ok(last_value(connection)?))
            .boxed()
    }

    fn purge_orphans(&self, of: Vec<Position>) -> Step<'_, usize> {
        self.sqlite
            .write("feed-purge-orphans", move |connection| {
                Ok::<_, Error>(remove_descendants(connection, &of, &[], usize::MAX)?.len())
            })
            .boxed()
    }
}

fn remove_descendants(
    connection: &Connection,
    of: &[Position],
    keep: &[Position],
    limit: usize,
) -> Result<Vec<Position>, Error> {
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
) -> Result<Vec<Position>, Error> {
    let mut statement = connection.prepare_cached(statement)?;
    let rows = statement.query_map(parameters, |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn list(positions: &[Position]) -> String {
    let texts: Vec<String> = positions.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(","))
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
