//! Private, real servers for tests: each has its own directory and its own
//! loopback port, and is gone when its value is dropped or its process dies.
//!
//! Nothing here knows Wakeline: it only starts what Wakeline is tested with.

mod account;
#[cfg(feature = "issuer")]
pub mod issuer;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod programs;
mod psql;
mod redis;
mod shared;
mod small_disk;

pub use account::Account;
pub use pgbouncer::Pgbouncer;
pub use port::free_port;
pub use postgres::Postgres;
pub use process::Process;
pub use programs::{find_postgres, find_program};
pub use psql::psql;
pub use redis::Redis;
pub use shared::SharedPostgres;
pub use small_disk::SmallDisk;
