//! What to do about a PostgreSQL that cannot be used at the start, in one line. Never the password.

use std::path::Path;

use tokio_postgres::{
    Config,
    config::Host,
    error::{DbError, SqlState},
};

use super::{chain, quoted};

/// The oldest major version that the project is tested on.
const OLDEST: i32 = 15;

/// For an error of the first connection.
pub(super) fn on_connect(error: &tokio_postgres::Error, config: &Config) -> String {
    if let Some(refusal) = error.as_db_error() {
        return on_refusal(refusal, config);
    }
    let text = chain(error);
    // The driver hides the kinds of its own errors; these are their texts.
    if text.contains("password missing") {
        return format!(
            "PostgreSQL asks for the password of user {}, and there is none: write it into the URL \
             as postgres://user:password@host/database",
            user(config)
        );
    }
    if text.starts_with("error connecting to server") {
        let reason = text.trim_start_matches("error connecting to server: ");
        return on_silence(reason, config);
    }
    if text.starts_with("error performing TLS handshake") {
        return format!("{text}: trust the server's certificate on this machine, or set sslmode");
    }
    text
}

/// No server has answered.
pub(super) fn on_silence(reason: &str, config: &Config) -> String {
    format!(
        "no PostgreSQL server answers at {} ({reason}): start it, or correct the host and port in \
         the URL",
        place(config)
    )
}

fn on_refusal(refusal: &DbError, config: &Config) -> String {
    let message = refusal.message();
    let (user, database) = (user(config), database(config));
    match *refusal.code() {
        SqlState::INVALID_PASSWORD => format!(
            "PostgreSQL refuses the password of user {user}: correct the password in the URL"
        ),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => format!(
            "PostgreSQL does not let user {user} in ({message}): correct the user in the URL, \
             create it (CREATE ROLE {user} LOGIN PASSWORD '…'), or let it in by pg_hba.conf"
        ),
        SqlState::INVALID_CATALOG_NAME => format!(
            "{message}: create it on this server (CREATE DATABASE {database} \
             ENCODING 'UTF8' TEMPLATE template0), or correct its name in the URL"
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "user {user} must not connect to the database {database} ({message}): as its owner run \
             GRANT CONNECT ON DATABASE {database} TO {user}"
        ),
        SqlState::TOO_MANY_CONNECTIONS => format!(
            "PostgreSQL has no connection left ({message}): raise its max_connections, or give \
             each node fewer (postgres.connections)"
        ),
        SqlState::CANNOT_CONNECT_NOW => {
            format!("PostgreSQL takes no connections now ({message}): try again in a moment")
        }
        _ => format!("{} ({})", message, refusal.code().code()),
    }
}

/// For an error of the migrations in `schema`, which is quoted.
pub(super) fn on_migration(
    error: &tokio_postgres::Error,
    schema: &str,
    config: &Config,
) -> Option<String> {
    let refusal = error.as_db_error()?;
    let message = refusal.message();
    let (user, database) = (user(config), database(config));
    match *refusal.code() {
        SqlState::INSUFFICIENT_PRIVILEGE if message.contains("for database") => Some(format!(
            "user {user} must not create the schema {schema} ({message}): as the database's owner \
             run GRANT CREATE ON DATABASE {database} TO {user}"
        )),
        SqlState::INSUFFICIENT_PRIVILEGE => Some(format!(
            "user {user} has not all rights on the schema {schema} ({message}): use the role that \
             owns the schema in the URL, or make {user} its member (GRANT owner TO {user})"
        )),
        SqlState::READ_ONLY_SQL_TRANSACTION => Some(format!(
            "the server is read-only ({message}): use the primary server in the URL"
        )),
        SqlState::DISK_FULL => Some(format!(
            "the server's disk is full ({message}): make room there"
        )),
        _ => None,
    }
}

/// `number` as PostgreSQL has it: 150004.
pub(super) fn on_version(number: i32) -> Option<String> {
    let major = number / 10_000;
    (major < OLDEST).then(|| {
        format!(
            "the server is PostgreSQL {major}, and Wakeline needs {OLDEST} or newer: upgrade it, or \
             use another server in the URL"
        )
    })
}

fn user(config: &Config) -> String {
    quoted(config.get_user().unwrap_or_default())
}

/// A URL without a database means the one of the user's name.
fn database(config: &Config) -> String {
    quoted(
        config
            .get_dbname()
            .or(config.get_user())
            .unwrap_or_default(),
    )
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied();
        let port = port.unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(directory) => socket(directory, port),
        }
    });
    hosts.collect::<Vec<_>>().join(" or ")
}

fn socket(directory: &Path, port: u16) -> String {
    let file = directory.join(format!(".s.PGSQL.{port}"));
    file.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_its_port_and_without_the_password() {
        for (url, named) in [
            ("postgres://u:hidden@db/d", "db:5432"),
            ("postgres://u:hidden@a:1,b:2/d", "a:1 or b:2"),
            (
                "postgres:///d?host=/run/pg&user=u&password=hidden",
                "/run/pg/.s.PGSQL.5432",
            ),
        ] {
            assert_eq!(place(&url.parse().unwrap()), named);
        }
    }

    #[test]
    fn only_an_older_version_is_refused() {
        assert_eq!(on_version(150_000), None);
        assert_eq!(on_version(180_001), None);
        let refused = on_version(140_017).unwrap();
        assert!(refused.contains("is PostgreSQL 14"), "{refused}");
        // Before 10 the second number counted too.
        assert!(on_version(90_624).unwrap().contains("is PostgreSQL 9"));
    }
}
