//! The one connection to Redis, which reconnects by itself.

use std::time::{Duration, Instant};

use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Pipeline, RedisError,
    ServerErrorKind, aio::MultiplexedConnection,
};
use tokio::sync::Mutex;
use wakeline_store::Error;

use crate::results::outcome_unknown;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Large answers take longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// While Redis is away callers get an error at once, and there is one attempt to connect per pause.
pub(super) struct RedisConnection {
    client: Client,
    state: Mutex<State>,
}

struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections.
    number: u64,
    pause: Duration,
    failed: Option<(Instant, Error)>,
}

/// The connection of one command.
struct LentConnection {
    connection: MultiplexedConnection,
    number: u64,
    is_new: bool,
}

impl RedisConnection {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            state: Mutex::new(State {
                connection: None,
                number: 0,
                pause: FIRST_PAUSE,
                failed: None,
            }),
        }
    }

    /// Commands that change nothing, in one round trip. Their outcome is never unknown.
    pub(super) async fn read<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, Error> {
        self.write(commands).await.map_err(|error| match error {
            Error::OutcomeUnknown(reason) => Error::Unavailable(reason),
            error => error,
        })
    }

    /// Commands that change something, in one round trip. They are repeated once when the connection
    /// turns out to have ended, as every command here may be. If the repeat fails too, the outcome
    /// is unknown: the first attempt may have been done.
    pub(super) async fn write<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, Error> {
        let mut is_repeated = false;
        loop {
            let mut lent = match self.connect().await {
                Err(error) if is_repeated => return Err(outcome_unknown(error)),
                lent => lent?,
            };
            let error = match commands.query_async(&mut lent.connection).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if is_connection_fault(&error) {
                self.discard(lent.number).await;
            }
            if lent.is_new || !error.is_connection_dropped() {
                let error = explain(&error);
                return Err(if is_repeated {
                    outcome_unknown(error)
                } else {
                    error
                });
            }
            is_repeated = true;
        }
    }

    async fn connect(&self) -> Result<LentConnection, Error> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.clone() {
            return Ok(LentConnection {
                connection,
                number: state.number,
                is_new: false,
            });
        }
        if let Some((when, error)) = &state.failed
            && when.elapsed() < state.pause
        {
            return Err(error.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(ANSWER_TIMEOUT));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        match connecting.await {
            Ok(connection) => {
                *state = State {
                    connection: Some(connection.clone()),
                    number: state.number + 1,
                    pause: FIRST_PAUSE,
                    failed: None,
                };
                Ok(LentConnection {
                    connection,
                    number: state.number,
                    is_new: true,
                })
            }
            Err(error) => {
                tracing::warn!(%error, "no connection to the Redis with the answers");
                let error = Error::Unavailable(format!("Redis: {error}"));
                let jitter = rand::random_range(0.75..1.25);
                state.pause = (state.pause * 2).min(LONGEST_PAUSE).mul_f64(jitter);
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The next command gets a new connection.
    async fn discard(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
        }
    }
}

/// A silent connection may be dead without knowing it; a connection to a server that has become a
/// replica leads to the wrong server.
fn is_connection_fault(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_timeout()
        || error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

fn explain(error: &RedisError) -> Error {
    let text = format!("Redis: {error}");
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => Error::OutcomeUnknown(text),
        ErrorKind::UnexpectedReturnType
        | ErrorKind::Server(
            ServerErrorKind::ResponseError | ServerErrorKind::NoPerm | ServerErrorKind::CrossSlot,
        ) => Error::Failed(text),
        // Redis is loading, full, busy or a read-only replica.
        _ => Error::Unavailable(text),
    }
}
