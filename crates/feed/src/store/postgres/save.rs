//! Saves in batches: one statement, which is a transaction by itself. Only if a predecessor is
//! missing does it run again, without the saves that are refused.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use wakeline_store::postgres::{Batch, RunError, Weigh};

use super::batch::SaveBatch;
use crate::store::{SaveOutcome, Seq, prepared::PreparedSave};

#[derive(Debug)]
pub(super) struct Saves;

impl Weigh for PreparedSave {
    fn weight(&self) -> usize {
        self.facts.len().max(1)
    }
}

impl Batch for Saves {
    type Operation = PreparedSave;
    type Output = SaveOutcome;

    const KIND: &'static str = "feed_save";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        saves: &'a [PreparedSave],
    ) -> BoxFuture<'a, Result<Vec<SaveOutcome>, RunError>> {
        run(client, saves).boxed()
    }
}

async fn run(client: &Client, saves: &[PreparedSave]) -> Result<Vec<SaveOutcome>, RunError> {
    let mut outcomes: Vec<Option<SaveOutcome>> = vec![None; saves.len()];
    loop {
        let open = saves.iter().zip(&outcomes);
        let open = open.filter_map(|(save, outcome)| outcome.is_none().then_some(save));
        let batch = SaveBatch::of(open);
        let row = ask(client, &batch).await?;
        let known: Vec<Option<Seq>> = row.get("known");
        let decided: Vec<Option<SaveOutcome>> = if row.get("is_saved") {
            let saved = batch.saved(&known, &row.get::<_, Vec<Seq>>("seqs"));
            saved.into_iter().map(Some).collect()
        } else {
            batch.refused(&known, &row.get::<_, Vec<Option<Seq>>>("outside"))
        };
        if decided.iter().all(Option::is_none) {
            let text = "a predecessor is missing that nothing needs";
            return Err(RunError::Answer(text.into()));
        }
        let mut decided = decided.into_iter();
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = decided.next().flatten();
        }
        if outcomes.iter().all(Option::is_some) {
            return Ok(outcomes.into_iter().flatten().collect());
        }
    }
}

async fn ask(client: &Client, batch: &SaveBatch<'_>) -> Result<Row, RunError> {
    let rows = client
        .query_typed(
            "SELECT * FROM wakeline.feed_save(
                 $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            &[
                (&batch.kinds, Type::INT4_ARRAY),
                (&batch.hashes, Type::BYTEA_ARRAY),
                (&batch.fields, Type::TEXT_ARRAY),
                (&batch.predecessors, Type::TEXT_ARRAY),
                (&batch.sorted, Type::INT4_ARRAY),
                (&batch.outside_kinds, Type::INT4_ARRAY),
                (&batch.outside_hashes, Type::BYTEA_ARRAY),
                (&batch.edge_successors, Type::INT4_ARRAY),
                (&batch.edge_roles, Type::INT4_ARRAY),
                (&batch.edge_predecessors, Type::INT4_ARRAY),
                (&batch.key_digests, Type::BYTEA_ARRAY),
                (&batch.keys, Type::TEXT_ARRAY),
                (&batch.signed, Type::INT4_ARRAY),
                (&batch.signers, Type::INT4_ARRAY),
                (&batch.signatures, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    let first = rows.into_iter().next();
    first.ok_or_else(|| RunError::Answer("an answer without a row".into()))
}
