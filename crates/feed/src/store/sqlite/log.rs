//! The log on SQLite.

use rusqlite::Connection;
use wakeline_store::Error;

use super::{names::called, save::last_value};
use crate::{
    fact::{Hash, Reference},
    store::{Log, LogEntry, Position, names::Names},
};

pub(super) fn log(
    connection: &Connection,
    names: &Names,
    after: Position,
    limit: usize,
) -> Result<Log, Error> {
    let last = last_value(connection)?;
    let mut ask = connection.prepare_cached(
        "SELECT position, type_id, hash FROM feed_fact
         WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3",
    )?;
    let limit = limit.max(1);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = ask.query_map((after, last, most), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let rows: Vec<(Position, i32, [u8; 64])> = rows.collect::<rusqlite::Result<_>>()?;
    let mut edges = Vec::with_capacity(rows.len());
    for &(position, ..) in &rows {
        edges.push(predecessors(connection, position)?);
    }
    let kinds = rows.iter().map(|(_, kind, _)| *kind);
    let roles = edges.iter().flatten().map(|(role, _)| *role);
    let called = called(connection, names, kinds, roles)?;
    let to = match rows.last() {
        Some(&(position, ..)) if rows.len() == limit => position,
        _ => last.max(after),
    };
    let entries = rows
        .into_iter()
        .zip(edges)
        .map(|((position, kind, hash), edges)| {
            let predecessors = edges
                .into_iter()
                .map(|(role, predecessor)| Ok((called.role(role)?, predecessor)));
            Ok(LogEntry {
                position,
                reference: Reference {
                    kind: called.kind(kind)?,
                    hash: Hash(hash),
                },
                predecessors: predecessors.collect::<Result<_, Error>>()?,
            })
        });
    let entries = entries.collect::<Result<_, Error>>()?;
    Ok(Log {
        after,
        entries,
        to,
        last,
    })
}

/// Role and position.
fn predecessors(
    connection: &Connection,
    position: Position,
) -> rusqlite::Result<Vec<(i32, Position)>> {
    let mut ask = connection.prepare_cached(
        "SELECT role_id, predecessor FROM feed_edge WHERE successor = ?1
         ORDER BY role_id, predecessor",
    )?;
    let rows = ask.query_map([position], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
