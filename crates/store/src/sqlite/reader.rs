//! Read connections, one thread each, with one queue of queries.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use crossbeam_channel::{Sender, TrySendError, bounded};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::STORE;
use crate::{error::Error, load::Meter, metrics};

type Query = Box<dyn FnOnce(&Connection) + Send>;

#[derive(Clone, Debug)]
pub(super) struct Readers {
    queries: Sender<Query>,
}

impl Readers {
    pub(super) fn start(
        connections: Vec<Connection>,
        max_pending: usize,
        meter: &Arc<Meter>,
    ) -> Self {
        let (queries, arriving) = bounded::<Query>(max_pending);
        for (number, connection) in connections.into_iter().enumerate() {
            let (arriving, meter) = (arriving.clone(), meter.clone());
            thread::Builder::new()
                .name(format!("sqlite-reader-{number}"))
                .spawn(move || {
                    let _connection = meter.connections(1);
                    while let Ok(query) = arriving.recv() {
                        let _at_work = meter.at_work();
                        query(&connection);
                        // A transaction that is left open would show later queries old data.
                        if !connection.is_autocommit() {
                            let _ = connection.execute_batch("ROLLBACK");
                        }
                    }
                })
                .expect("a thread can be started");
        }
        Self { queries }
    }

    pub(super) async fn submit<T, E>(
        &self,
        kind: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let query: Query = Box::new(move |connection| {
            metrics::statements(STORE, kind, 1);
            let result = catch_unwind(AssertUnwindSafe(|| query(connection)))
                .unwrap_or_else(|_| Err(Error::Failed("the query panicked".into()).into()));
            let _ = answer.send(result);
        });
        self.send(query)?;
        answered
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("the reader has ended".into()).into()))
    }

    fn send(&self, query: Query) -> Result<(), Error> {
        self.queries.try_send(query).map_err(|error| match error {
            TrySendError::Full(_) => Error::Overloaded,
            TrySendError::Disconnected(_) => Error::Unavailable("the readers have ended".into()),
        })
    }
}
