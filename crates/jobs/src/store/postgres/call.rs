//! Calls of many callers in one transaction and one round trip.

use std::{future::Future, pin::Pin, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture, poll};
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};
use wakeline_store::postgres::{Batch, RunError, Weigh};

pub(super) type Parameter = Box<dyn ToSql + Send + Sync>;

/// One statement of one caller.
#[derive(Clone)]
pub(super) struct Call {
    statement: &'static str,
    parameters: Arc<[(Parameter, Type)]>,
}

impl Call {
    pub(super) fn new(statement: &'static str, parameters: Vec<(Parameter, Type)>) -> Self {
        Self {
            statement,
            parameters: parameters.into(),
        }
    }
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
            return async move { Ok(vec![ask(client, alone).await?]) }.boxed();
        }
        async move {
            let mut sent = Vec::with_capacity(operations.len());
            let begun = begin(client.batch_execute("BEGIN").boxed()).await;
            for call in operations {
                sent.push(begin(ask(client, call).boxed()).await);
            }
            let committed = begin(client.batch_execute("COMMIT").boxed()).await;
            let mut failed = begun.await.err();
            let mut outputs = Vec::with_capacity(sent.len());
            for answer in sent {
                match answer.await {
                    Ok(rows) => outputs.push(rows),
                    // The first says what went wrong; those after it only that something did.
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

async fn ask(client: &Client, call: &Call) -> Result<Vec<Row>, tokio_postgres::Error> {
    let parameters: Vec<(&(dyn ToSql + Sync), Type)> = call
        .parameters
        .iter()
        .map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()))
        .collect();
    client.query_typed(call.statement, &parameters).await
}

/// Sends it: a future of the driver puts its message into the line when it is asked for the first
/// time. What is begun in this order is done in this order.
async fn begin<'a, T: 'a>(
    mut future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>>
where
    T: Send,
{
    match poll!(future.as_mut()) {
        std::task::Poll::Ready(value) => Box::pin(std::future::ready(value)),
        std::task::Poll::Pending => future,
    }
}
