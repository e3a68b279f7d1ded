//! Facts on PostgreSQL.

use std::sync::{Arc, atomic::Ordering};

use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    fact::{Envelope, Fact, Hash, Kind, Reference, Signature},
    store::{Facts, Horizon, Log, Position, Saved, Step, Stored, saving, text},
};

impl Facts for PostgresStore {
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<Saved> {
        let store = self.clone();
        saving(async move {
            let prepared = store.prepare(&envelopes).await?;
            store.saves.submit(prepared).await
        })
    }

    fn find(&self, references: Vec<Reference>) -> Step<'_, Vec<Option<Position>>> {
        async move {
            let kinds: Vec<Kind> = references.iter().map(|one| one.kind.clone()).collect();
            let ids = self.ids(&kinds, &[]).await?;
            let (mut kinds, mut hashes) = (Vec::new(), Vec::new());
            for one in &references {
                // No fact has the type zero.
                kinds.push(ids.kinds.get(&one.kind).copied().unwrap_or_default());
                hashes.push(&one.hash.0[..]);
            }
            let statement = "SELECT wakeline.feed_find($1, $2)";
            let rows = self
                .ask(
                    "feed_find",
                    statement,
                    &[(&kinds, Type::INT4_ARRAY), (&hashes, Type::BYTEA_ARRAY)],
                )
                .await?;
            Ok(only(&rows)?.get(0))
        }
        .boxed()
    }

    fn closure(&self, of: Vec<Position>) -> Step<'_, Vec<Position>> {
        async move {
            let statement = "SELECT wakeline.feed_closure($1)";
            let rows = self
                .ask("feed_closure", statement, &[(&of, Type::INT8_ARRAY)])
                .await?;
            Ok(only(&rows)?.get(0))
        }
        .boxed()
    }

    fn facts(&self, at: Vec<Position>) -> Step<'_, Vec<Stored>> {
        async move {
            let statement = "SELECT * FROM wakeline.feed_facts($1)";
            let rows = self
                .ask("feed_facts", statement, &[(&at, Type::INT8_ARRAY)])
                .await?;
            self.stored(&rows).await
        }
        .boxed()
    }

    fn horizon(&self) -> Step<'_, Horizon> {
        async move {
            let statement = "SELECT settled, last FROM wakeline.feed_horizon()";
            let rows = self.ask("feed_horizon", statement, &[]).await?;
            let row = only(&rows)?;
            Ok(Horizon {
                settled: self.settled(row.get(0)),
                last: row.get(1),
            })
        }
        .boxed()
    }

    fn log(&self, after: Position, limit: usize) -> Step<'_, Log> {
        self.read_log(after, limit).boxed()
    }
}

impl PostgresStore {
    /// A save that has just begun may hold a floor behind what was settled before it: it draws after
    /// that all the same.
    pub(super) fn settled(&self, now: Position) -> Position {
        self.settled.fetch_max(now, Ordering::Relaxed).max(now)
    }

    async fn stored(&self, rows: &[Row]) -> Result<Vec<Stored>, Error> {
        let kinds = rows.iter().map(|row| row.get(1));
        let called = self.called(kinds, std::iter::empty()).await?;
        let signers = rows
            .iter()
            .flat_map(|row| row.get::<_, Option<Vec<i32>>>(6).unwrap_or_default());
        let signers = self.signers(signers).await?;
        let known = self.names.known();
        let stored = rows.iter().map(|row| {
            let keys: Vec<i32> = row.get::<_, Option<_>>(6).unwrap_or_default();
            let signatures: Vec<&str> = row.get::<_, Option<_>>(7).unwrap_or_default();
            let signatures = keys.iter().zip(signatures).filter_map(|(id, signature)| {
                Some(Signature {
                    key: signers.get(id)?.clone(),
                    signature: signature.into(),
                })
            });
            Ok(Stored {
                position: row.get(0),
                signatures: signatures.collect(),
                fact: Fact {
                    reference: Reference {
                        kind: called.kind(row.get(1))?,
                        hash: hash(row.get(2))?,
                    },
                    predecessors: text::read_predecessors(row.get(4), &known)?,
                    fields: row.get::<_, &str>(3).into(),
                },
                learned: row.get(5),
            })
        });
        stored.collect()
    }
}

pub(super) fn hash(bytes: &[u8]) -> Result<Hash, Error> {
    let bytes = bytes.try_into();
    bytes
        .map(Hash)
        .map_err(|_| Error::Failed("a stored hash has not 64 bytes".into()))
}
