use std::net::TcpStream;

use wakeline_testbed::{Pgbouncer, Postgres, psql};

#[test]
fn any_database_is_reached_through_the_pool() {
    let postgres = Postgres::start().unwrap();
    psql(&postgres.url(), "CREATE DATABASE orders").unwrap();
    let address = format!("127.0.0.1:{}", postgres.port());
    for pool_mode in ["transaction", "session"] {
        let pgbouncer = Pgbouncer::start(&address, pool_mode).unwrap();
        let seen = psql(
            &pgbouncer.url_for("orders"),
            "SELECT current_database(), current_user",
        );
        assert_eq!(seen.unwrap(), "orders|postgres", "{pool_mode}");
        let port = pgbouncer.port();
        drop(pgbouncer);
        TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    }
}

#[test]
fn a_wrong_pool_mode_is_an_error_with_the_log() {
    let error = Pgbouncer::start("127.0.0.1:1", "generous").unwrap_err();
    assert!(error.to_string().contains("generous"), "{error}");
}
