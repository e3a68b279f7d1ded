//! How a provider is set up.

use std::time::Duration;

use wakeline_store::{migrate::OpenError, postgres::Policy};

/// PostgreSQL cuts longer names, and two schemas would be one.
const LONGEST_NAME: usize = 63;

/// How dispatchers wait for work.
#[derive(Clone, Debug)]
pub struct LongPollConfig {
    /// Whether a fetch waits at all. Without it every fetch answers at once and the runtime polls.
    pub enabled: bool,
    /// How often the database is asked what has become ready, should a wake have been lost. The
    /// first provider of a process and database decides for those that share its line.
    pub fallback_interval: Duration,
    /// How long after a timer is due its dispatcher is woken. Zero by default: waits are measured by
    /// the database's clock, so there is no skew to allow for. More than zero gathers timers that
    /// are due close together into one look.
    pub timer_grace: Duration,
}

impl Default for LongPollConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            fallback_interval: Duration::from_secs(60),
            timer_grace: Duration::ZERO,
        }
    }
}

/// What can be chosen for a provider.
#[derive(Clone, Debug)]
pub struct Options {
    /// The schema that holds its tables; made if it is not there.
    pub schema: String,
    /// Connections for everything that is not batched. Batches have seven of their own, and each
    /// process and database has three for wakes.
    pub pool_size: usize,
    pub long_poll: LongPollConfig,
    /// Whether the schema may be made and brought to the newest version.
    pub migrations: Policy,
    /// Memory for histories, so that they are not read again for every turn. Zero: none.
    pub history_cache_bytes: usize,
    pub connect_timeout: Duration,
    pub statement_timeout: Duration,
    /// How long a call that holds no lease (an enqueue, a read) rides out an outage.
    pub outage_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "durable".into(),
            pool_size: 2,
            long_poll: LongPollConfig::default(),
            migrations: Policy::Apply,
            history_cache_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            outage_patience: Duration::from_secs(30),
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let schema = &self.schema;
        if schema.is_empty() || schema.len() > LONGEST_NAME || schema.contains('\0') {
            return Err(OpenError::Open(format!(
                "the schema {schema:?} must have a name of 1 to {LONGEST_NAME} bytes without U+0000"
            )));
        }
        Ok(())
    }
}
