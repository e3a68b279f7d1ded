//! A connection that reconnects by itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client;

use super::Connector;
use crate::error::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One connection. While the server is away, callers get the error at once, and there is one attempt
/// to connect per pause.
#[derive(Debug)]
pub struct Session {
    connector: Connector,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    client: Option<Arc<Client>>,
    pause: Duration,
    last_failure: Option<(Instant, Error)>,
}

impl Session {
    #[must_use]
    pub fn new(connector: Connector) -> Self {
        Self::starting_with(connector, None)
    }

    /// With a connection that is there already.
    pub(super) fn with_client(connector: Connector, client: Arc<Client>) -> Self {
        Self::starting_with(connector, Some(client))
    }

    fn starting_with(connector: Connector, client: Option<Arc<Client>>) -> Self {
        let state = State {
            client,
            pause: FIRST_PAUSE,
            last_failure: None,
        };
        Self {
            connector,
            state: Mutex::new(state),
        }
    }

    /// The live connection, or a new one if the last has ended.
    pub async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        state.client = None;
        if let Some((when, error)) = &state.last_failure
            && when.elapsed() < state.pause
        {
            return Err(error.clone());
        }
        self.connect(state).await
    }

    /// Boxed, so that the driver's code for connecting is compiled once.
    fn connect<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> BoxFuture<'a, Result<Arc<Client>, Error>> {
        async move {
            match self.connector.connect().await {
                Ok(client) => {
                    let client = Arc::new(client);
                    *state = State {
                        client: Some(client.clone()),
                        pause: FIRST_PAUSE,
                        last_failure: None,
                    };
                    Ok(client)
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection to PostgreSQL");
                    let jitter = rand::random_range(0.75..1.25);
                    state.pause = (state.pause * 2).min(LONGEST_PAUSE).mul_f64(jitter);
                    state.last_failure = Some((Instant::now(), error.clone()));
                    Err(error)
                }
            }
        }
        .boxed()
    }

    /// Drops a connection whose answer is overdue, so that the next caller gets a new one.
    pub(super) async fn give_up(&self, client: &Arc<Client>) -> Error {
        let mut state = self.state.lock().await;
        state.client.take_if(|current| Arc::ptr_eq(current, client));
        Error::OutcomeUnknown("no answer within the statement timeout".into())
    }
}
