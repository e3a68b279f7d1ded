//! The log on SQLite.

use rusqlite::Connection;
use wakeline_store::Error;

use super::{names::names_of, save::last_value};
use crate::store::{
    Log, Seq,
    names::NameCache,
    rows::{LogRow, read_log},
    sql_limit,
};

pub(super) fn log(
    connection: &Connection,
    names: &NameCache,
    after: Seq,
    limit: usize,
) -> Result<Log, Error> {
    let last = last_value(connection)?;
    let mut ask = connection.prepare_cached(
        "SELECT seq, type_id, hash FROM feed_fact
         WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3",
    )?;
    let limit = limit.max(1);
    let most = sql_limit(limit);
    let rows = ask.query_map((after, last, most), |row| {
        let seq = row.get("seq")?;
        Ok(LogRow {
            seq,
            kind: row.get("type_id")?,
            hash: row.get("hash")?,
            edges: edges(connection, seq)?,
        })
    })?;
    let rows: Vec<LogRow> = rows.collect::<rusqlite::Result<_>>()?;
    let kinds = rows.iter().map(|row| row.kind);
    let roles = rows.iter().flat_map(|row| &row.edges);
    let names = names_of(connection, names, kinds, roles.map(|(role, _)| *role))?;
    // With one writer everything that is committed is settled.
    read_log(rows, &names, after, (last.max(after), last), limit)
}

fn edges(connection: &Connection, seq: Seq) -> rusqlite::Result<Vec<(i32, Seq)>> {
    let mut ask = connection.prepare_cached(
        "SELECT role_id, predecessor FROM feed_edge WHERE successor = ?1
         ORDER BY role_id, predecessor",
    )?;
    let rows = ask.query_map([seq], |row| {
        Ok((row.get("role_id")?, row.get("predecessor")?))
    })?;
    rows.collect()
}
