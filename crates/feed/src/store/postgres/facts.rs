//! Facts on PostgreSQL.

use std::sync::{Arc, atomic::Ordering};

use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    fact::{Envelope, Reference, Signature},
    store::{
        Facts, Horizon, Log, SaveOutcome, Seq, StoreFuture, StoredFact,
        names::NameTables,
        rows::{FactRow, read_facts},
        saving,
    },
};

impl Facts for PostgresStore {
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<SaveOutcome> {
        let store = self.clone();
        saving(async move {
            let prepared = store.prepare(&envelopes).await?;
            store.saves.submit(prepared).await
        })
    }

    fn find(&self, references: Vec<Reference>) -> StoreFuture<'_, Vec<Option<Seq>>> {
        async move {
            let kinds = references.iter().map(|one| one.kind.clone()).collect();
            let ids = self.ids(kinds, Vec::new()).await?;
            // No fact has the type zero.
            let kind = |one: &Reference| ids.kinds.get(&one.kind).copied().unwrap_or_default();
            let kinds: Vec<i32> = references.iter().map(kind).collect();
            let hashes: Vec<&[u8]> = references.iter().map(|one| &one.hash.0[..]).collect();
            let parameters = [
                (&kinds as _, Type::INT4_ARRAY),
                (&hashes as _, Type::BYTEA_ARRAY),
            ];
            let statement = "SELECT wakeline.feed_find($1, $2) AS seqs";
            let rows = self.ask("feed_find", statement, &parameters).await?;
            Ok(only(&rows)?.get("seqs"))
        }
        .boxed()
    }

    fn closure(&self, of: Vec<Seq>) -> StoreFuture<'_, Vec<Seq>> {
        async move {
            let statement = "SELECT wakeline.feed_closure($1) AS seqs";
            let parameters = [(&of as _, Type::INT8_ARRAY)];
            let rows = self.ask("feed_closure", statement, &parameters).await?;
            Ok(only(&rows)?.get("seqs"))
        }
        .boxed()
    }

    fn facts(&self, at: Vec<Seq>) -> StoreFuture<'_, Vec<StoredFact>> {
        async move {
            let statement = "SELECT * FROM wakeline.feed_facts($1)";
            let parameters = [(&at as _, Type::INT8_ARRAY)];
            let rows = self.ask("feed_facts", statement, &parameters).await?;
            self.stored_facts(&rows).await
        }
        .boxed()
    }

    fn horizon(&self) -> StoreFuture<'_, Horizon> {
        async move {
            let statement = "SELECT settled, last FROM wakeline.feed_horizon()";
            let rows = self.ask("feed_horizon", statement, &[]).await?;
            let row = only(&rows)?;
            Ok(Horizon {
                settled: self.settled(row.get("settled")),
                last: row.get("last"),
            })
        }
        .boxed()
    }

    fn log(&self, after: Seq, limit: usize) -> StoreFuture<'_, Log> {
        self.read_log(after, limit).boxed()
    }
}

impl PostgresStore {
    /// A save that has just begun may hold a floor below what was settled before: it draws its seqs
    /// above that all the same.
    pub(super) fn settled(&self, now: Seq) -> Seq {
        self.settled.fetch_max(now, Ordering::Relaxed).max(now)
    }

    async fn stored_facts(&self, rows: &[Row]) -> Result<Vec<StoredFact>, Error> {
        let key_ids = |row: &Row| {
            row.get::<_, Option<Vec<i32>>>("key_ids")
                .unwrap_or_default()
        };
        let keys = self.signer_keys(rows.iter().flat_map(key_ids)).await?;
        let row = |row: &Row| {
            let texts: Option<Vec<&str>> = row.get("signatures");
            let signatures = key_ids(row).into_iter().zip(texts.unwrap_or_default());
            let signature = |(id, text): (i32, &str)| {
                Some(Signature {
                    key: keys.get(&id)?.clone(),
                    signature: text.into(),
                })
            };
            FactRow {
                seq: row.get("seq"),
                kind: row.get("type_id"),
                hash: row.get("hash"),
                fields: row.get("fields"),
                predecessors: row.get("predecessors"),
                saved_at: row.get("saved_at"),
                signatures: signatures.filter_map(signature).collect(),
            }
        };
        let rows: Vec<FactRow> = rows.iter().map(row).collect();
        let kinds = rows.iter().map(|row| row.kind);
        let names = self.names_of(kinds, std::iter::empty()).await?;
        read_facts(rows, &names)
    }
}
