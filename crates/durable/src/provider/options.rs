//! The options of a provider.

use std::time::Duration;

use wakeline_store::postgres::Policy;

/// How a fetch waits for an item.
#[derive(Clone, Debug)]
pub struct LongPollConfig {
    /// Whether a fetch waits at all. If false, every fetch returns at once and the runtime polls.
    /// Default: true.
    pub enabled: bool,
    /// How often the database is asked what can be fetched, in case a wake was lost. The providers of
    /// a process on one database share this query: the first of them decides its interval. Default:
    /// 60 s.
    pub fallback_interval: Duration,
    /// How long after a timer is due its dispatcher is woken. A longer time serves timers that are
    /// due close together by one fetch. Default: zero, as the database's clock decides and there is
    /// no clock skew to allow for.
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

/// The options of [`PostgresProvider::connect_with`](crate::PostgresProvider::connect_with).
#[derive(Clone, Debug)]
pub struct Options {
    /// The schema that holds the tables, a name of 1 to 63 bytes. Default: `durable`.
    pub schema: String,
    /// Connections for calls that are not batched. Batches have seven more, and each process has
    /// three for the wakes of a database. Default: 2.
    pub pool_size: usize,
    /// How fetches wait.
    pub long_poll: LongPollConfig,
    /// [`Policy::Apply`] creates the schema or upgrades it; [`Policy::Verify`] refuses a schema that is
    /// missing or old. Default: `Apply`.
    pub migrations: Policy,
    /// Memory for cached histories, in bytes. Zero: each turn reads its history from the database.
    /// Default: 64 MiB.
    pub history_cache_bytes: usize,
    /// How long one attempt to connect may take. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long one statement may take before it is cancelled. Default: 30 s.
    pub statement_timeout: Duration,
    /// How long a call without a lease (a start, an event, a read) is repeated during an outage; a
    /// call under a lease is repeated until the lease has ended. Default: 30 s.
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
