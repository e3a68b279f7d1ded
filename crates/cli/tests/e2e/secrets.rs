//! No log line, refusal, metric, printed configuration, list of waits or output of a command has a
//! secret. Each test plants secrets wherever a secret can be, and then looks for them.

mod bodies;
mod calls;
mod planted;

use std::{fs, process::Command};

use wakeline_testbed::{Postgres, Redis, free_port, psql};

use crate::{
    fixture::Fixture,
    server::{Serve, Server, until, wakeline},
};
use planted::{SearchedTexts, values};

/// Everything of ours; other crates stay at `info`, as an operator has them.
const LOG_LEVEL: &str = "info,wakeline=trace,wakeline_bus=trace,wakeline_feed=trace,\
    wakeline_jobs=trace,wakeline_queue=trace,wakeline_server=trace,wakeline_store=trace,\
    wakeline_wake=trace,wakeline_web=trace";
const ROLE: &str = "locked";

fn with_secrets(serve: Serve) -> Serve {
    serve
        .env("WAKELINE_AUTH_TOKENS", values::TOKEN)
        .env("WAKELINE_AUTH_JWT_SECRET", values::JWT_SECRET)
        .env("WAKELINE_JOBS_SECRET", values::JOBS_SECRET)
        .env("WAKELINE_JOBS_ADMIN_EMAIL", "admin@example.com")
        .env("WAKELINE_JOBS_ADMIN_PASSWORD", values::ADMIN_PASSWORD)
        .env("WAKELINE_QUEUE_ENCRYPTION_KEY", values::ENCRYPTION_KEY)
        .flags(&["--jobs-registration", "true", "--jobs-min-password", "8"])
        .flags(&["--http-max-body", "64KiB"])
        .flags(&["--log-level", LOG_LEVEL])
}

#[tokio::test]
async fn a_run_on_sqlite_shows_no_secret() {
    let redis = Redis::start().unwrap();
    lock(&redis).await;
    let fixture = Fixture::sqlite();
    let serve = with_secrets(fixture.serve())
        .flags(&["--log-format", "json", "--jobs-results", "redis"])
        .env(
            "WAKELINE_JOBS_REDIS",
            &redis_url(&redis, values::REDIS_PASSWORD),
        );
    let server = serve.start().await;
    let mut texts = SearchedTexts::default();
    calls::all(&server, &mut texts).await;
    of_commands(&server, &mut texts);
    of_server(&server, &mut texts).await;
    texts.assert_no_secrets();
}

#[tokio::test]
async fn a_run_on_postgres_and_its_outage_show_no_secret() {
    let mut postgres = Postgres::start().unwrap();
    lock_role(&postgres).await;
    let fixture = Fixture::postgres_at(postgres_url(&postgres, values::STORE_PASSWORD));
    let server = with_secrets(fixture.serve()).start().await;
    let mut texts = SearchedTexts::default();
    calls::all(&server, &mut texts).await;
    postgres.stop().unwrap();
    calls::without_a_database(&server, &mut texts).await;
    of_server(&server, &mut texts).await;
    texts.assert_no_secrets();
}

#[tokio::test]
async fn databases_that_refuse_the_login_or_are_not_there_are_named_without_the_password() {
    let postgres = Postgres::start().unwrap();
    let redis = Redis::start().unwrap();
    lock(&redis).await;
    lock_role(&postgres).await;
    let mut texts = SearchedTexts::default();
    let nowhere = free_port().unwrap();
    let unreachable = format!(
        "postgres://{ROLE}:{}@127.0.0.1:{nowhere}/postgres",
        values::STORE_PASSWORD
    );
    for url in [postgres_url(&postgres, values::WRONG_PASSWORD), unreachable] {
        let fixture = Fixture::postgres_at(url.clone());
        texts.add("a start that failed", fixture.serve().refused().await);
        let listed = wakeline(&["durable", "list", "--database", &url]);
        of_command("durable list", listed, &mut texts);
        let listed = wakeline(&["durable", "list", "--database", &format!("{url}?x=y")]);
        of_command("durable list of a bad URL", listed, &mut texts);
    }

    let fixture = Fixture::postgres_at(postgres_url(&postgres, values::STORE_PASSWORD));
    let wrong = redis_url(&redis, values::WRONG_PASSWORD);
    let serve = fixture.serve().flags(&["--log-level", LOG_LEVEL]);
    let server = serve
        .env("WAKELINE_BUS_URL", &wrong)
        .env("WAKELINE_JOBS_REDIS", &wrong)
        .start()
        .await;
    until("the log to say that Redis refuses", async || {
        server
            .log()
            .contains("no connection to the bus")
            .then_some(())
    })
    .await;
    of_server(&server, &mut texts).await;
    texts.assert_no_secrets();
}

#[test]
fn the_configuration_is_printed_and_refused_without_its_secrets() {
    let secrets: [(&str, &str, String); 9] = [
        ("auth", "tokens", values::TOKEN.into()),
        ("auth.jwt", "secret", values::JWT_SECRET.into()),
        ("jobs", "secret", values::JOBS_SECRET.into()),
        ("jobs", "admin_password", values::ADMIN_PASSWORD.into()),
        ("queue", "encryption_key", values::ENCRYPTION_KEY.into()),
        (
            "",
            "store",
            format!("postgres://u:{}@db/w", values::STORE_PASSWORD),
        ),
        (
            "durable",
            "database",
            format!("postgres://db/w?password={}", values::STORE_PASSWORD),
        ),
        (
            "bus",
            "url",
            format!("redis://:{}@redis/", values::REDIS_PASSWORD),
        ),
        (
            "jobs",
            "redis",
            format!("redis://u:{}@redis/", values::REDIS_PASSWORD),
        ),
    ];
    let mut texts = SearchedTexts::default();
    let print = ["serve", "--print-config"];
    let mut from_environment = wakeline(&print);
    let mut from_flags = wakeline(&print);
    for (section, name, value) in &secrets {
        let setting = [*section, *name]
            .into_iter()
            .filter(|part| !part.is_empty());
        let setting = setting.collect::<Vec<_>>().join(".");
        let variable = setting.replace('.', "_").to_uppercase();
        from_environment.env(format!("WAKELINE_{variable}"), value);
        from_flags
            .arg(format!("--{}", setting.replace(['.', '_'], "-")))
            .arg(value);
    }
    from_environment.env("WAKELINE_JOBS_ADMIN_EMAIL", "admin@example.com");
    from_flags.args(["--jobs-admin-email", "admin@example.com"]);
    of_command(
        "--print-config of the environment",
        from_environment,
        &mut texts,
    );
    of_command("--print-config of flags", from_flags, &mut texts);

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wakeline.toml");
    for (section, name, value) in &secrets {
        let section = if section.is_empty() {
            String::new()
        } else {
            format!("[{section}]\n")
        };
        for (what, line) in [
            ("a text", format!("{name} = \"{value}\"")),
            ("a list", format!("{name} = [\"{value}\"]")),
            ("a table", format!("{name} = {{ a = \"{value}\" }}")),
            ("a text that does not end", format!("{name} = \"{value}")),
            ("a text without quotes", format!("{name} = {value}")),
            ("two values", format!("{name} = \"{value}\" \"{value}\"")),
            ("a name that is not known", format!("{name}x = \"{value}\"")),
            (
                "a part of a secret",
                format!("{name} = \"{}\"", &value[..value.len().min(12)]),
            ),
        ] {
            fs::write(&file, format!("{section}{line}\n")).unwrap();
            let mut printed = wakeline(&print);
            printed.arg("--config").arg(&file);
            of_command(
                &format!("{what} as {section}{name} of a file"),
                printed,
                &mut texts,
            );
        }
    }
    texts.assert_no_secrets();
}

fn of_command(what: &str, mut command: Command, texts: &mut SearchedTexts) {
    let output = command.output().expect("the binary starts");
    texts.add(what, String::from_utf8_lossy(&output.stdout));
    texts.add(what, String::from_utf8_lossy(&output.stderr));
}

/// Commands that call a server and are refused.
fn of_commands(server: &Server, texts: &mut SearchedTexts) {
    let payload = format!(r#"{{"card":"{}""#, values::PAYLOAD);
    let closed = format!("http://127.0.0.1:{}", free_port().unwrap());
    let with_password = server
        .url()
        .replace("//", &format!("//u:{}@", values::STORE_PASSWORD));
    for url in [&server.url(), &closed, &with_password] {
        let commands: [&[&str]; 5] = [
            &["push", "q", &payload],
            &["push", "", &payload],
            &["pop", "q"],
            &[
                "ack",
                "t",
                "--partition-id",
                "p",
                "--error",
                values::PAYLOAD,
            ],
            &["waits"],
        ];
        for command in commands {
            for token in [values::WRONG_TOKEN, "not a\nheader zqwrongto"] {
                let mut command = wakeline(command);
                command
                    .env("WAKELINE_URL", url)
                    .env("WAKELINE_TOKEN", token);
                of_command(
                    &format!("a command that is refused, {command:?}"),
                    command,
                    texts,
                );
            }
        }
    }
}

/// What a server shows of itself, to operators and monitors.
async fn of_server(server: &Server, texts: &mut SearchedTexts) {
    for path in ["/metrics", "/v1/waits", "/readyz?verbose", "/openapi.json"] {
        let answer = calls::with_token(server, path).await;
        texts.add(path, answer.text());
    }
    texts.add("the standard output", server.output());
    texts.add("the log", server.log());
}

/// As `requirepass` does; every other client has to send the password.
async fn lock(redis: &Redis) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = ("127.0.0.1", redis.port());
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let command = format!("CONFIG SET requirepass {}\r\n", values::REDIS_PASSWORD);
    stream.write_all(command.as_bytes()).await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}

fn redis_url(redis: &Redis, password: &str) -> String {
    format!("redis://:{password}@127.0.0.1:{}/", redis.port())
}

async fn lock_role(postgres: &Postgres) {
    let run = |sql: &str| psql(&postgres.url(), sql).unwrap();
    let password = values::STORE_PASSWORD;
    run(&format!(
        "CREATE ROLE {ROLE} LOGIN SUPERUSER PASSWORD '{password}'"
    ));
    let file = run("SHOW hba_file");
    run(&format!(
        "COPY (VALUES ('host all {ROLE} 127.0.0.1/32 scram-sha-256'),
            ('host all all 127.0.0.1/32 trust')) TO '{file}'"
    ));
    run("SELECT pg_reload_conf()");
    let url = format!("postgres://{ROLE}@127.0.0.1:{}/postgres", postgres.port());
    until("PostgreSQL asks for the password", async || {
        psql(&url, "SELECT 1").is_err().then_some(())
    })
    .await;
}

fn postgres_url(postgres: &Postgres, password: &str) -> String {
    format!(
        "postgres://{ROLE}:{password}@127.0.0.1:{}/postgres",
        postgres.port()
    )
}
