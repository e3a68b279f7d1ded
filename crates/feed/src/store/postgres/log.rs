//! The log on PostgreSQL: one question for the horizon and what is before it.

use tokio_postgres::{Row, types::Type};
use wakeline_store::Error;

use super::{PostgresStore, facts::hash, only};
use crate::{
    fact::Reference,
    store::{Log, LogEntry, Position},
};

impl PostgresStore {
    pub(super) async fn read_log(&self, after: Position, limit: usize) -> Result<Log, Error> {
        let limit = limit.max(1);
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .ask(
                "feed_log",
                "SELECT * FROM wakeline.feed_log($1, $2)",
                &[(&after, Type::INT8), (&most, Type::INT8)],
            )
            .await?;
        let first = only(&rows)?;
        let (settled, last) = (first.get(0), first.get(1));
        self.settled(settled);
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|row| row.get::<_, Option<Position>>(2).is_some())
            .collect();
        let kinds = rows.iter().map(|row| row.get(3));
        let roles = rows
            .iter()
            .flat_map(|row| row.get::<_, Option<Vec<i32>>>(5).unwrap_or_default());
        let called = self.called(kinds, roles).await?;
        let to = match rows.last() {
            Some(row) if rows.len() == limit => row.get(2),
            _ => settled,
        };
        let entries = rows.iter().map(|row| {
            let roles: Vec<i32> = row.get::<_, Option<_>>(5).unwrap_or_default();
            let predecessors: Vec<Position> = row.get::<_, Option<_>>(6).unwrap_or_default();
            let predecessors = roles
                .into_iter()
                .zip(predecessors)
                .map(|(role, predecessor)| Ok((called.role(role)?, predecessor)));
            Ok(LogEntry {
                position: row.get(2),
                reference: Reference {
                    kind: called.kind(row.get(3))?,
                    hash: hash(row.get(4))?,
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
}
