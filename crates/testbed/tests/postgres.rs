use std::net::TcpStream;
use std::path::Path;

use wakeline_testbed::{Postgres, SharedPostgres, psql};

#[test]
fn a_new_server_answers_with_default_durability() {
    let postgres = Postgres::start().unwrap();
    let settings = psql(
        &postgres.url(),
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'),
                current_setting('full_page_writes'), current_setting('max_connections'),
                current_setting('server_encoding')",
    );
    assert_eq!(settings.unwrap(), "on|on|on|300|UTF8");
}

#[test]
fn the_shared_server_never_syncs_and_still_waits_for_a_commit() {
    let postgres = SharedPostgres::start().unwrap();
    let settings = psql(
        &postgres.url(),
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'),
                current_setting('full_page_writes'), current_setting('server_encoding')",
    );
    assert_eq!(settings.unwrap(), "off|on|off|UTF8");
}

#[test]
fn statement_statistics_are_loaded_exactly_when_available() {
    let postgres = Postgres::start().unwrap();
    let question = "SELECT current_setting('shared_preload_libraries') = 'pg_stat_statements',
                           EXISTS (SELECT FROM pg_available_extensions
                                   WHERE name = 'pg_stat_statements')";
    let answer = psql(&postgres.url(), question).unwrap();
    let (loaded, available) = answer.split_once('|').unwrap();
    assert_eq!(loaded, available);
}

#[test]
fn another_database_has_its_own_url() {
    let postgres = Postgres::start().unwrap();
    psql(&postgres.url(), "CREATE DATABASE orders").unwrap();
    let name = psql(&postgres.url_for("orders"), "SELECT current_database()").unwrap();
    assert_eq!(name, "orders");
}

#[test]
fn a_restart_keeps_data_and_port() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.url();
    psql(&url, "CREATE TABLE kept AS SELECT 42 AS answer").unwrap();
    postgres.restart().unwrap();
    assert_eq!(postgres.url(), url);
    assert_eq!(psql(&url, "SELECT answer FROM kept").unwrap(), "42");
}

#[test]
fn committed_rows_survive_a_crash() {
    let mut postgres = Postgres::start().unwrap();
    psql(&postgres.url(), "CREATE TABLE kept AS SELECT 42 AS answer").unwrap();
    postgres.crash().unwrap();
    psql(&postgres.url(), "SELECT 1").unwrap_err();
    postgres.start_again().unwrap();
    let kept = psql(&postgres.url(), "SELECT answer FROM kept").unwrap();
    assert_eq!(kept, "42");
}

#[test]
fn a_stopped_server_refuses_and_may_be_stopped_twice() {
    let mut postgres = Postgres::start().unwrap();
    postgres.stop().unwrap();
    TcpStream::connect(("127.0.0.1", postgres.port())).unwrap_err();
    postgres.stop().unwrap();
}

#[test]
fn a_dropped_server_is_gone_with_its_directory() {
    let postgres = Postgres::start().unwrap();
    let port = postgres.port();
    let data = psql(&postgres.url(), "SHOW data_directory").unwrap();
    assert!(Path::new(&data).is_dir());
    drop(postgres);
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert!(!Path::new(&data).exists());
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let started = std::thread::spawn(|| Postgres::start().unwrap());
    let postgres = started.join().unwrap();
    // A server told to stop by the thread's end would cut this session short.
    let answer = psql(&postgres.url(), "SELECT pg_sleep(0.5); SELECT 'alive'");
    assert!(answer.unwrap().ends_with("alive"));
}

#[test]
fn a_failed_start_shows_the_log() {
    let mut postgres = Postgres::start().unwrap();
    postgres.stop().unwrap();
    let _squatter = std::net::TcpListener::bind(("127.0.0.1", postgres.port())).unwrap();
    let error = postgres.start_again().unwrap_err().to_string();
    assert!(error.contains("Address already in use"), "{error}");
}
