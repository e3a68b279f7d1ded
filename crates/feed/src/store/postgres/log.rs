//! The log on PostgreSQL: one statement for the horizon and the facts before it.

use tokio_postgres::{Row, types::Type};
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::store::{
    Log, Seq,
    rows::{LogRow, read_log},
    sql_limit,
};

impl PostgresStore {
    pub(super) async fn read_log(&self, after: Seq, limit: usize) -> Result<Log, Error> {
        let limit = limit.max(1);
        let most = sql_limit(limit);
        let statement = "SELECT * FROM wakeline.feed_log($1, $2)";
        let parameters = [(&after as _, Type::INT8), (&most as _, Type::INT8)];
        let rows = self.ask("feed_log", statement, &parameters).await?;
        let first = only(&rows)?;
        let (settled, last) = (first.get("settled"), first.get("last"));
        self.settled(settled);
        let rows: Vec<LogRow> = rows.iter().filter_map(log_row).collect();
        let kinds = rows.iter().map(|row| row.kind);
        let roles = rows.iter().flat_map(|row| &row.edges);
        let names = self.names_of(kinds, roles.map(|(role, _)| *role)).await?;
        read_log(rows, &names, after, (settled, last), limit)
    }
}

/// `None` for the row of a log that has no facts.
fn log_row(row: &Row) -> Option<LogRow> {
    let seq: Option<Seq> = row.get("seq");
    let roles: Option<Vec<i32>> = row.get("roles");
    let predecessors: Option<Vec<Seq>> = row.get("predecessors");
    Some(LogRow {
        seq: seq?,
        kind: row.get("type_id"),
        hash: row.get("hash"),
        edges: roles
            .into_iter()
            .flatten()
            .zip(predecessors.into_iter().flatten())
            .collect(),
    })
}
