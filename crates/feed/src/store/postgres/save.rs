//! Saves in batches: one statement, which is a transaction by itself. Only where something is missing
//! is it asked again, without those that are refused.

use std::{collections::HashSet, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use wakeline_store::{
    Error,
    postgres::{Batch, RunError, Weigh},
};

use super::{PostgresStore, combined::Combined};
use crate::{
    fact::{Envelope, Kind},
    store::{
        Position, Saved,
        prepared::{MAX_LOOKS, Prepared},
    },
};

#[derive(Debug)]
pub(super) struct Saves;

impl Weigh for Prepared {
    fn weight(&self) -> usize {
        self.facts.len().max(1)
    }
}

impl Batch for Saves {
    type Operation = Prepared;
    type Output = Saved;

    const KIND: &'static str = "feed_save";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        saves: &'a [Prepared],
    ) -> BoxFuture<'a, Result<Vec<Saved>, RunError>> {
        run(client, saves).boxed()
    }
}

impl PostgresStore {
    pub(super) async fn prepare(&self, envelopes: &Arc<[Envelope]>) -> Result<Prepared, Error> {
        let mut absent: HashSet<Kind> = HashSet::new();
        for _ in 0..MAX_LOOKS {
            let known = self.names.known();
            match Prepared::new(envelopes, &known, &absent) {
                Ok(prepared) => return Ok(prepared),
                Err(lacking) => {
                    let predecessors: Vec<Kind> = lacking.predecessors.into_iter().collect();
                    let found = self.ids(&predecessors, &[]).await?;
                    let strange = |kind: &Kind| !found.kinds.contains_key(kind);
                    absent.extend(predecessors.into_iter().filter(strange));
                    let kinds: Vec<_> = lacking.kinds.into_iter().collect();
                    let roles: Vec<_> = lacking.roles.into_iter().collect();
                    self.make_ids(&kinds, &roles).await?;
                }
            }
        }
        Err(Error::Failed("a save has too many names of types".into()))
    }
}

async fn run(client: &Client, saves: &[Prepared]) -> Result<Vec<Saved>, RunError> {
    let mut outcomes: Vec<Option<Saved>> = vec![None; saves.len()];
    loop {
        let open = saves.iter().zip(&outcomes);
        let open = open.filter_map(|(save, outcome)| outcome.is_none().then_some(save));
        let combined = Combined::of(open);
        let row = ask(client, &combined).await?;
        let known: Vec<Option<Position>> = row.get(1);
        let told: Vec<Option<Saved>> = if row.get(0) {
            let saved = combined.saved(&known, &row.get::<_, Vec<Position>>(2));
            saved.into_iter().map(Some).collect()
        } else {
            combined.refused(&known, &row.get::<_, Vec<Option<Position>>>(3))
        };
        if told.iter().all(Option::is_none) {
            let text = "a predecessor is missing that nothing needs";
            return Err(RunError::Answer(text.into()));
        }
        let mut told = told.into_iter();
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = told.next().flatten();
        }
        if outcomes.iter().all(Option::is_some) {
            return Ok(outcomes.into_iter().flatten().collect());
        }
    }
}

async fn ask(client: &Client, combined: &Combined<'_>) -> Result<Row, RunError> {
    let rows = client
        .query_typed(
            "SELECT * FROM wakeline.feed_save(
                 $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            &[
                (&combined.kinds, Type::INT4_ARRAY),
                (&combined.hashes, Type::BYTEA_ARRAY),
                (&combined.fields, Type::TEXT_ARRAY),
                (&combined.predecessors, Type::TEXT_ARRAY),
                (&combined.sorted, Type::INT4_ARRAY),
                (&combined.outside_kinds, Type::INT4_ARRAY),
                (&combined.outside_hashes, Type::BYTEA_ARRAY),
                (&combined.edge_successors, Type::INT4_ARRAY),
                (&combined.edge_roles, Type::INT4_ARRAY),
                (&combined.edge_predecessors, Type::INT4_ARRAY),
                (&combined.key_digests, Type::BYTEA_ARRAY),
                (&combined.keys, Type::TEXT_ARRAY),
                (&combined.signed, Type::INT4_ARRAY),
                (&combined.signers, Type::INT4_ARRAY),
                (&combined.signatures, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    let first = rows.into_iter().next();
    first.ok_or_else(|| RunError::Answer("an answer without a row".into()))
}
