//! Calls of many callers in one transaction and one round trip.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row};
use wakeline_store::postgres::{Batch, RunError, Weigh, send};

use super::values::typed;
use crate::store::Value;

/// One statement of one caller.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) statement: String,
    pub(super) parameters: Arc<[Value]>,
}

impl Weigh for Call {}

#[derive(Debug)]
pub(super) struct Calls;

impl Batch for Calls {
    type Operation = Call;
    type Output = Vec<Row>;

    const KIND: &'static str = "jobs";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Call],
    ) -> BoxFuture<'a, Result<Vec<Vec<Row>>, RunError>> {
        // A statement by itself is a transaction by itself.
        if let [alone] = operations {
            return async move { Ok(vec![run(client, alone).await?]) }.boxed();
        }
        async move {
            let begun = send(client.batch_execute("BEGIN")).await;
            let mut sent = Vec::with_capacity(operations.len());
            for call in operations {
                sent.push(send(run(client, call)).await);
            }
            let committed = send(client.batch_execute("COMMIT")).await;
            let mut failed = begun.await.err();
            let mut outputs = Vec::with_capacity(sent.len());
            for answer in sent {
                match answer.await {
                    Ok(rows) => outputs.push(rows),
                    // The first error is the reason; those after it only follow from it.
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            let committed = committed.await;
            match failed {
                Some(error) => Err(error.into()),
                None => committed.map(|()| outputs).map_err(RunError::from),
            }
        }
        .boxed()
    }
}

async fn run(client: &Client, call: &Call) -> Result<Vec<Row>, tokio_postgres::Error> {
    client
        .query_typed(&call.statement, &typed(&call.parameters))
        .await
}
