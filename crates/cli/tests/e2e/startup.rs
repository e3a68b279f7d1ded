//! Starts that are refused: the texts of the refusals, without secrets.

use std::{fs, net::TcpListener};

use crate::{
    fixture::Fixture,
    server::{Serve, wakeline},
    wire::{get, with_header},
};

const TOKEN: &str = "correct-horse-battery";

#[tokio::test]
async fn a_public_address_without_authentication_is_refused_with_both_remedies() {
    let log = Serve::new(&["--listen", "0.0.0.0:0"]).refused().await;
    insta::assert_snapshot!(log, @r#"
    wakeline: 1 mistake in the configuration:
      - listen (flag --listen), auth.tokens (default), auth.jwt.secret (default), auth.jwt.public_key (default), auth.jwt.jwks_url (default), insecure (default): 0.0.0.0:0 is not a loopback address and no authentication is configured: set auth.tokens or a key of auth.jwt, or set insecure = true to allow every caller
    "#);
}

#[tokio::test]
async fn a_public_address_with_insecure_is_served_with_a_warning() {
    let fixture = Fixture::sqlite();
    let flags = ["--listen", "0.0.0.0:0", "--insecure"];
    let server = fixture.serve().flags(&flags).start().await;
    assert!(server.output().contains("WARNING"), "{}", server.output());
}

#[tokio::test]
async fn with_a_token_only_the_probes_are_open() {
    let fixture = Fixture::sqlite();
    let server = fixture
        .serve()
        .env("WAKELINE_AUTH_TOKENS", TOKEN)
        .start()
        .await;
    assert!(!server.output().contains(TOKEN));
    for path in [
        "/api/v1/pop/queue/q",
        "/v1/waits",
        "/metrics",
        "/openapi.json",
        "/nowhere",
    ] {
        for given in [
            "",
            "Bearer",
            "Bearer wrong-horse-battery",
            "Basic Y29ycmVjdA==",
            "Bearer correct-horse-batter",
        ] {
            let refused = server
                .call(with_header(get(path), "authorization", given))
                .await;
            assert_eq!(refused.status, 401, "{path} {given}");
            assert_eq!(refused.problem()["type"], "urn:wakeline:unauthorized");
            assert_eq!(refused.header("www-authenticate"), "Bearer");
        }
        assert_eq!(server.get(path).await.status, 401, "{path}");
    }
    for given in [format!("Bearer {TOKEN}"), TOKEN.to_owned()] {
        let answer = server
            .call(with_header(get("/v1/waits"), "authorization", &given))
            .await;
        assert_eq!(answer.status, 200);
    }
    for path in ["/livez", "/readyz", "/readyz?verbose"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn all_mistakes_of_a_configuration_are_reported_at_once() {
    let fixture = Fixture::sqlite();
    let file = fixture.data().join("wakeline.toml");
    fs::write(
        &file,
        "[http]\nmax_bdy = \"1MiB\"\nheader_timeout = \"soon\"\n",
    )
    .unwrap();
    let log = Serve::new(&["--config", &file.display().to_string()])
        .flags(&[
            "--http-max-connections",
            "0",
            "--store",
            "mysql://u:hidden@h/d",
        ])
        .env("WAKELINE_LOG_FORMAT", "yaml")
        .env("WAKELINE_WAKE_MAX_WAITER", "5")
        .refused()
        .await;
    assert!(!log.contains("hidden"), "{log}");
    insta::assert_snapshot!(log.replace(&fixture.data().display().to_string(), "<data>"), @r#"
    wakeline: 6 mistakes in the configuration:
      - http.max_bdy (<data>/wakeline.toml:2): no such setting; did you mean http.max_body?
      - http.header_timeout (<data>/wakeline.toml:3): found "soon", expected a duration such as 30s or 500ms, from 100ms to 10m
      - log.format (environment WAKELINE_LOG_FORMAT): found "yaml", expected text or json
      - environment WAKELINE_WAKE_MAX_WAITER: no such setting; did you mean WAKELINE_WAKE_MAX_WAITERS?
      - http.max_connections (flag --http-max-connections): found "0", expected a whole number from 1 to 10000000
      - store (flag --store): found "mysql://u:***@h/d", expected sqlite, or a URL postgres://… or postgresql://…
    "#);
}

#[tokio::test]
async fn the_printed_configuration_hides_secrets() {
    let output = wakeline(&[
        "serve",
        "--print-config",
        "--store",
        "postgres://u:hidden1@h/d",
    ])
    .args(["--bus", "redis://:hidden2@h/", "--auth-tokens"])
    .arg("hidden3-hidden3-hidden3")
    .output()
    .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.contains("hidden1") && !text.contains("hidden2") && !text.contains("hidden3"),
        "{text}"
    );
    let secrets: Vec<&str> = text
        .lines()
        .filter(|line| {
            ["store", "url", "tokens"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .collect();
    insta::assert_snapshot!(secrets.join("\n"), @r#"
    store = "postgres://u:***@h/d" # flag --store
    tokens = ["***"] # flag --auth-tokens
    url = "redis://:***@h/" # flag --bus
    "#);
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let fixture = Fixture::sqlite();
    let first = fixture.serve().start().await;
    let log = fixture.serve().refused().await;
    insta::assert_snapshot!(log.replace(&fixture.data().display().to_string(), "<data>"), @"wakeline: data: another wakeline serves <data>; give this one its own --data, or run several nodes on PostgreSQL (--store postgres://…)");
    assert_eq!(first.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_port_in_use_is_refused_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let log = Fixture::sqlite()
        .serve()
        .flags(&["--listen", &address])
        .refused()
        .await;
    let last = log.lines().last().unwrap_or_default();
    insta::assert_snapshot!(last.replace(&address, "<address>"), @"wakeline: cannot listen on <address> (--listen): Address already in use (os error 98)");
}

#[tokio::test]
async fn an_unreachable_postgres_is_named_without_its_password() {
    let port = wakeline_testbed::free_port().unwrap();
    let url = format!("postgres://user:hidden@127.0.0.1:{port}/db");
    let log = Fixture::postgres_at(url).serve().refused().await;
    assert!(!log.contains("hidden"), "{log}");
    let last = log.lines().last().unwrap();
    insta::assert_snapshot!(last.replace(&port.to_string(), "<port>"), @"wakeline: store (--store postgres://user:***@127.0.0.1:<port>/db): the database cannot be opened: no PostgreSQL server answers at 127.0.0.1:<port> (Connection refused (os error 111)): start it, or correct the host and port in the URL");
}

#[tokio::test]
async fn an_unknown_database_is_reported_in_the_words_of_postgres() {
    let fixture = Fixture::postgres().await;
    let (server, _) = fixture.postgres_url().rsplit_once('/').unwrap();
    let log = Fixture::postgres_at(format!("{server}/no_such_database"))
        .serve()
        .refused()
        .await;
    assert!(
        log.contains("database \"no_such_database\" does not exist"),
        "{log}"
    );
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_made_is_named() {
    let log = Serve::new(&["--listen", "127.0.0.1:0", "--data", "/dev/null/data"])
        .refused()
        .await;
    insta::assert_snapshot!(log, @"wakeline: data: cannot make /dev/null/data: Not a directory (os error 20)");
}

#[test]
fn the_help_is_short() {
    let help = |arguments: &[&str]| {
        let output = wakeline(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    insta::assert_snapshot!(help(&["--help"]), @r#"
    A queue, job and live-update server that clients long-poll over HTTP

    Usage: wakeline <COMMAND>

    Commands:
      serve    Run the server
      push     Push a message to a queue
      pop      Pop messages from a queue, waiting for them if asked to
      ack      Acknowledge a popped message
      waits    Show the held requests of a server, and what they wait for
      durable  Show durable workflows in a PostgreSQL database, cancel and delete them
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    "#);
    insta::assert_snapshot!(help(&["serve", "-h"]), @r#"
    Run the server

    Usage: wakeline serve [OPTIONS]

    Options:
          --config <FILE>      A TOML file of settings; the environment and flags override it
          --print-config       Show the settings in force, with secrets hidden, and end
          --listen <VALUE>     Address and port to listen on; of a name, all its addresses
          --data <VALUE>       Directory of the SQLite file and of everything else on disk
          --store <VALUE>      The database: `sqlite`, a file in the data directory, or the URL of a PostgreSQL database
          --insecure [<BOOL>]  Allow a `listen` address beyond loopback without authentication
          --bus <VALUE>        URL of the Redis that carries wakes between nodes. Empty: PostgreSQL `NOTIFY` when the store is PostgreSQL, else memory
      -h, --help               Print help (see more with '--help')

    Each setting is also an environment variable (http.max_body is WAKELINE_HTTP_MAX_BODY) and a key of the file. docs/configuration.md lists them.
    "#);
    // The long help has every setting.
    let long = help(&["serve", "--help"]);
    for flag in [
        "--http-max-body",
        "--wake-max-waiters",
        "--bus",
        "--auth-tokens",
        "--queue-lease",
    ] {
        assert!(long.contains(&format!("{flag} ")), "{flag}");
    }
}
