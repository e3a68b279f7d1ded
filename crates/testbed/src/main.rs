//! Holds one of each server for work by hand, until its input ends (Ctrl-D).

use std::io::{self, Write};

use wakeline_testbed::{Pgbouncer, Postgres, Redis};

fn main() -> anyhow::Result<()> {
    let postgres = Postgres::start()?;
    let redis = Redis::start()?;
    let pgbouncer = Pgbouncer::start(&format!("127.0.0.1:{}", postgres.port()), "transaction")?;
    println!("WAKELINE_TEST_POSTGRES={}", postgres.url());
    println!("WAKELINE_TEST_REDIS={}", redis.url());
    println!("WAKELINE_TEST_PGBOUNCER={}", pgbouncer.url_for("postgres"));
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
