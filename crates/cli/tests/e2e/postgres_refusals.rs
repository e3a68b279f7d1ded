//! A PostgreSQL that cannot be used at the start: one line that says what to do, without the
//! password.

use wakeline_testbed::{Postgres, free_port, psql};

use crate::{fixture::Fixture, server::until};

/// The error of the start, with the port replaced, which differs in every run.
async fn refusal(url: &str, port: u16) -> String {
    let log = Fixture::postgres_at(url.to_owned()).serve().refused().await;
    assert!(!log.contains("hidden"), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    log.trim_end().replace(&port.to_string(), "<port>")
}

/// A server that asks only the user `locked` for a password.
async fn with_a_password() -> Postgres {
    let postgres = Postgres::start().unwrap();
    let run = |sql: &str| psql(&postgres.url(), sql).unwrap();
    run("CREATE ROLE locked LOGIN PASSWORD 'right'");
    let file = run("SHOW hba_file");
    run(&format!(
        "COPY (VALUES ('host all locked 127.0.0.1/32 scram-sha-256'),
            ('host all all 127.0.0.1/32 trust')) TO '{file}'"
    ));
    run("SELECT pg_reload_conf()");
    let url = at(&postgres, "locked", "postgres");
    until("the server asks for the password", async || {
        psql(&url, "SELECT 1").is_err().then_some(())
    })
    .await;
    postgres
}

fn at(postgres: &Postgres, login: &str, database: &str) -> String {
    format!(
        "postgres://{login}@127.0.0.1:{}/{database}?sslmode=disable",
        postgres.port()
    )
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_refused_with_the_remedy() {
    let postgres = with_a_password().await;
    let port = postgres.port();
    let wrong = refusal(&at(&postgres, "locked:hidden", "postgres"), port).await;
    insta::assert_snapshot!(wrong, @r#"wakeline: store (--store postgres://locked:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: PostgreSQL refuses the password of user "locked": correct the password in the URL"#);
    let missing = refusal(&at(&postgres, "locked", "postgres"), port).await;
    insta::assert_snapshot!(missing, @r#"wakeline: store (--store postgres://locked@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: PostgreSQL asks for the password of user "locked", and there is none: write it into the URL as postgres://user:password@host/database"#);
}

#[tokio::test]
async fn an_unknown_user_or_database_is_refused_with_the_statement_that_creates_it() {
    let postgres = Postgres::start().unwrap();
    let port = postgres.port();
    let user = refusal(&at(&postgres, "nobody:hidden", "postgres"), port).await;
    insta::assert_snapshot!(user, @r#"wakeline: store (--store postgres://nobody:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: PostgreSQL does not let user "nobody" in (role "nobody" does not exist): correct the user in the URL, create it (CREATE ROLE "nobody" LOGIN PASSWORD '…'), or let it in by pg_hba.conf"#);
    let database = refusal(&at(&postgres, "postgres:hidden", "nowhere"), port).await;
    insta::assert_snapshot!(database, @r#"wakeline: store (--store postgres://postgres:***@127.0.0.1:<port>/nowhere?sslmode=disable): the database cannot be opened: database "nowhere" does not exist: create it on this server (CREATE DATABASE "nowhere" ENCODING 'UTF8' TEMPLATE template0), or correct its name in the URL"#);
}

#[tokio::test]
async fn missing_rights_are_refused_with_the_statement_that_grants_them() {
    let postgres = Postgres::start().unwrap();
    let port = postgres.port();
    psql(&postgres.url(), "CREATE ROLE guest LOGIN").unwrap();
    let url = at(&postgres, "guest:hidden", "postgres");
    let schema = refusal(&url, port).await;
    insta::assert_snapshot!(schema, @r#"wakeline: store (--store postgres://guest:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: user "guest" must not create the schema "wakeline" (permission denied for database postgres): as the database's owner run GRANT CREATE ON DATABASE "postgres" TO "guest""#);

    let others = Fixture::postgres_at(postgres.url());
    drop(others.serve().start().await);
    let owner = refusal(&url, port).await;
    insta::assert_snapshot!(owner, @r#"wakeline: store (--store postgres://guest:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: user "guest" has not all rights on the schema "wakeline" (permission denied for schema wakeline): use the role that owns the schema in the URL, or make "guest" its member (GRANT owner TO "guest")"#);

    let revoke = "REVOKE CONNECT ON DATABASE postgres FROM public";
    psql(&postgres.url(), revoke).unwrap();
    let connect = refusal(&url, port).await;
    insta::assert_snapshot!(connect, @r#"wakeline: store (--store postgres://guest:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: user "guest" must not connect to the database "postgres" (permission denied for database "postgres"): as its owner run GRANT CONNECT ON DATABASE "postgres" TO "guest""#);
}

#[tokio::test]
async fn the_suggested_grant_is_enough() {
    let postgres = Postgres::start().unwrap();
    psql(&postgres.url(), "CREATE ROLE guest LOGIN").unwrap();
    psql(
        &postgres.url(),
        r#"GRANT CREATE ON DATABASE "postgres" TO "guest""#,
    )
    .unwrap();
    let fixture = Fixture::postgres_at(at(&postgres, "guest", "postgres"));
    let server = fixture.serve().start().await;
    assert_eq!(server.get("/readyz").await.status, 200);
}

/// The role's own function hides that of the server, so this server reports
/// another version; nothing else differs.
#[tokio::test]
async fn a_too_old_server_is_refused_with_the_required_version() {
    let postgres = Postgres::start().unwrap();
    let old = "
        CREATE ROLE antiquary LOGIN SUPERUSER;
        CREATE SCHEMA antiques;
        CREATE FUNCTION antiques.current_setting(text) RETURNS text LANGUAGE sql AS $$
            SELECT CASE $1 WHEN 'server_version_num' THEN '130011'
                ELSE pg_catalog.current_setting($1) END $$;
        ALTER ROLE antiquary SET search_path = antiques, pg_catalog";
    psql(&postgres.url(), old).unwrap();
    let url = at(&postgres, "antiquary:hidden", "postgres");
    insta::assert_snapshot!(refusal(&url, postgres.port()).await, @"wakeline: store (--store postgres://antiquary:***@127.0.0.1:<port>/postgres?sslmode=disable): the database cannot be opened: the server is PostgreSQL 13, and Wakeline needs 15 or newer: upgrade it, or use another server in the URL");
}

#[tokio::test]
async fn an_unreachable_server_is_refused_with_its_address_and_the_remedy() {
    let port = free_port().unwrap();
    let url = format!("postgres://user:hidden@127.0.0.1:{port}/db");
    insta::assert_snapshot!(refusal(&url, port).await, @"wakeline: store (--store postgres://user:***@127.0.0.1:<port>/db): the database cannot be opened: no PostgreSQL server answers at 127.0.0.1:<port> (Connection refused (os error 111)): start it, or correct the host and port in the URL");
}
