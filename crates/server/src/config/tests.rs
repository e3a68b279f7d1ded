use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use insta::assert_snapshot;

use super::settings::setting;
use super::*;

fn file(text: &str) -> Option<(PathBuf, String)> {
    Some((PathBuf::from("wakeline.toml"), text.to_owned()))
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

fn mistakes(text: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    load(file(text), pairs(env), pairs(flags))
        .unwrap_err()
        .to_string()
}

const TOKEN: &str = "correct-horse-battery";
const SECRET: &str = "a secret of thirty-two characters";

#[test]
fn nothing_given_is_a_valid_configuration() {
    let config = Config::default();
    let address = SocketAddr::from(([127, 0, 0, 1], 6632));
    assert_eq!(config.listen.addresses(), [address]);
    assert_eq!(config.store, Store::Sqlite);
    assert_eq!(config.http.max_body, 10 << 20);
    assert_eq!(config.http.max_hold, Duration::from_secs(600));
    assert_eq!(config.bus.url, None);
    assert_eq!(config.log.format, LogFormat::Text);
}

#[test]
fn later_sources_win() {
    let config = load(
        file(
            r#"
            listen = "127.0.0.1:1"
            [http]
            max_body = "1MiB"
            max_hold = "1m"
            [sqlite]
            readers = 3
            "#,
        ),
        pairs(&[
            ("PATH", "/bin"),
            ("WAKELINE_LISTEN", "127.0.0.1:2"),
            ("WAKELINE_HTTP_MAX_BODY", "2MiB"),
        ]),
        pairs(&[
            ("listen", "127.0.0.1:3"),
            ("log.format", "text"),
            ("log.format", "json"),
        ]),
    )
    .unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:3");
    assert_eq!(config.http.max_body, 2 << 20);
    assert_eq!(config.http.max_hold, Duration::from_secs(60));
    assert_eq!(config.sqlite.readers, 3);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.postgres.connections, 4);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = r#"listen = "localhost"
colour = "red"
wake = 5
insecure = "yes"
data = ""

[http]
max_bdy = "10MiB"
max_body = "2GiB"
max_headers = 4096
header_timeout = 10
drain = "ten"

[auth]
tokens = ["short", 5]

[sqlite]
readers = 0
max_batch = "512"

[store]
url = "sqlite"
"#;
    let env = [
        ("WAKELINE_MAX_BATCH", "5"),
        ("WAKELINE_BUS_URL", "mysql://root:hunter2@db"),
        ("WAKELINE_TEST_REDIS", "ignored"),
        ("WAKELINE_BIN", "ignored"),
    ];
    let flags = [
        ("log.format", "xml"),
        ("log.level", "info,a=b=c"),
        ("bus.channel", "my channel"),
        ("queue.leas", "5s"),
        ("http.max_hold", "10s"),
    ];
    assert_snapshot!(mistakes(text, &env, &flags), @r##"
    21 mistakes in the configuration:
      - listen (wakeline.toml:1): found "localhost", expected an IP address or a name, and a port, such as 127.0.0.1:6632, [::1]:6632 or localhost:6632
      - colour (wakeline.toml:2): no such setting
      - wake (wakeline.toml:3): a section, not a setting: write [wake] and its settings below
      - insecure (wakeline.toml:4): found the text "yes", expected true or false
      - data (wakeline.toml:5): found "", expected a path
      - http.max_bdy (wakeline.toml:8): no such setting; did you mean http.max_body?
      - http.max_body (wakeline.toml:9): found "2GiB", expected a size such as 10MiB, from 1KiB to 1GiB
      - http.max_headers (wakeline.toml:10): found 4096, expected a size such as 10MiB, from 8KiB to 1MiB
      - http.header_timeout (wakeline.toml:11): found the integer 10, expected a duration such as 30s or 500ms, from 100ms to 10m
      - http.drain (wakeline.toml:12): found "ten", expected a duration such as 30s or 500ms, from 0s to 10m
      - auth.tokens (wakeline.toml:15): found a length of 5 in item 1 and an integer as item 2, expected a list of texts of 16 or more visible ASCII characters each
      - sqlite.readers (wakeline.toml:18): found 0, expected a whole number from 1 to 64
      - sqlite.max_batch (wakeline.toml:19): found the text "512", expected a whole number from 1 to 100000
      - store (wakeline.toml:21): found a table, expected sqlite, or a URL postgres://… or postgresql://…
      - bus.url (environment WAKELINE_BUS_URL): found "mysql://root:***@db", expected nothing, or a URL redis://… or rediss://…
      - environment WAKELINE_MAX_BATCH: no such setting; did you mean WAKELINE_SQLITE_MAX_BATCH or WAKELINE_POSTGRES_MAX_BATCH or WAKELINE_QUEUE_MAX_BATCH?
      - bus.channel (flag --bus-channel): found "my channel", expected 1 to 63 of the characters a-z A-Z 0-9 _ - . :
      - log.format (flag --log-format): found "xml", expected text or json
      - log.level (flag --log-level): found "info,a=b=c", expected a level (error, warn, info, debug, trace, off) or directives such as info,wakeline_wake=debug
      - queue.leas (flag --queue-leas): no such setting; did you mean queue.lease?
      - http.default_hold (default), http.max_hold (flag --http-max-hold): the default hold of 30s is longer than the longest hold of 10s: lower http.default_hold, or raise http.max_hold
    "##);
}

#[test]
fn an_overridden_mistake_is_still_one() {
    let env = [("WAKELINE_SQLITE_READERS", "4")];
    assert_snapshot!(mistakes("sqlite.readers = -1", &env, &[]), @r##"
    1 mistake in the configuration:
      - sqlite.readers (wakeline.toml:1): found -1, expected a whole number from 1 to 64
    "##);
}

#[test]
fn a_file_that_is_no_toml_does_not_hide_the_mistakes_elsewhere() {
    let text = "listen = 0.0.0.0:80\n[auth]\ntokens = [\"correct-horse-battery\ninsecure = true\n";
    let shown = mistakes(text, &[("WAKELINE_DATA", "")], &[]);
    assert_snapshot!(shown, @r##"
    4 mistakes in the configuration:
      - wakeline.toml:1: not valid TOML: invalid float, expected nothing
      - wakeline.toml:3: not valid TOML: invalid basic string, expected `"`
      - wakeline.toml:4: not valid TOML: missing comma between array elements, expected `,`
      - data (environment WAKELINE_DATA): found "", expected a path
    "##);
    assert!(!shown.contains("horse"));
}

#[test]
fn a_name_in_quotes_is_not_a_path_of_names() {
    assert_snapshot!(mistakes(r#""http.max_body" = "1MiB""#, &[], &[]), @r##"
    1 mistake in the configuration:
      - "http.max_body" (wakeline.toml:1): no such setting; did you mean http.max_body?
    "##);
}

#[test]
fn beyond_loopback_needs_tokens_or_insecure() {
    for listen in [
        "127.0.0.1:1",
        "127.8.8.8:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
    ] {
        load(None, [], pairs(&[("listen", listen)])).unwrap();
    }
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
        let listen = ("listen", listen);
        load(None, [], pairs(&[listen])).unwrap_err();
        for key in [
            ("auth.tokens", TOKEN),
            ("auth.jwt.secret", SECRET),
            ("auth.jwt.public_key", "/etc/issuer.pem"),
            ("auth.jwt.jwks_url", "https://issuer/jwks"),
        ] {
            load(None, [], pairs(&[listen, key])).unwrap();
        }
        load(None, [], pairs(&[listen, ("insecure", "true")])).unwrap();
    }
    assert_snapshot!(mistakes("", &[("WAKELINE_LISTEN", "0.0.0.0:6632")], &[]), @r##"
    1 mistake in the configuration:
      - listen (environment WAKELINE_LISTEN), auth.tokens (default), auth.jwt.secret (default), auth.jwt.public_key (default), auth.jwt.jwks_url (default), insecure (default): 0.0.0.0:6632 is not a loopback address and no authentication is configured: set auth.tokens or a key of auth.jwt, or set insecure = true to allow every caller
    "##);
}

#[test]
fn a_name_to_listen_on_is_judged_by_all_its_addresses() {
    let listen =
        |text: &str| load(None, [], pairs(&[("listen", text)])).map(|config| config.listen);
    for text in [
        "localhost:6632",
        "db-1.internal:0",
        "a_b:65535",
        "example.com.:80",
    ] {
        let listen = listen(text).unwrap();
        assert_eq!(
            (listen.to_string().as_str(), listen.addresses()),
            (text, &[][..])
        );
        // As long as it is not known, nobody is let in for it.
        assert!(!listen.is_loopback());
    }
    for text in [
        "localhost",
        "localhost:",
        ":80",
        "localhost:65536",
        "127.0.0:80",
        "256.0.0.1:80",
        "::1:80",
        "a..b:80",
        "a b:80",
        "http://a:80",
    ] {
        listen(text).unwrap_err();
    }
    let mut config = Config::default();
    for (addresses, is_loopback) in [
        (vec!["127.0.0.1:1", "[::1]:1"], true),
        (vec!["[::ffff:127.0.0.1]:1"], true),
        (vec!["127.0.0.1:1", "192.0.2.7:1"], false),
    ] {
        config.listen = Listen::resolved("name:1", &addresses);
        assert_eq!(config.listen.is_loopback(), is_loopback, "{addresses:?}");
    }
}

#[tokio::test]
async fn a_name_with_an_open_address_needs_a_login_at_the_start() {
    let mut config = Config {
        listen: Listen::resolved("name:1", &["127.0.0.1:1", "192.0.2.7:1"]),
        ..Config::default()
    };
    let refused = config.resolve().await.unwrap_err().to_string();
    assert_snapshot!(refused, @"listen: name:1: 192.0.2.7:1 is not a loopback address and no authentication is configured: set auth.tokens or a key of auth.jwt, or set insecure = true to allow every caller");
    config.insecure = true;
    config.resolve().await.unwrap();
    config.insecure = false;
    config.listen = Listen::resolved("localhost:1", &["127.0.0.1:1", "[::1]:1"]);
    config.resolve().await.unwrap();
}

#[test]
fn the_rules_for_signed_tokens_fit_their_keys() {
    let shown = mistakes(
        "[auth.jwt]\nissuer = \"https://issuer\"\nrole_admin = \"read-only\"",
        &[],
        &[],
    );
    assert_snapshot!(shown, @r##"
    2 mistakes in the configuration:
      - auth.jwt.algorithm (default), auth.jwt.issuer (wakeline.toml:2), auth.jwt.audience (default), auth.jwt.secret (default), auth.jwt.public_key (default), auth.jwt.jwks_url (default): there are rules for signed tokens, but no key to verify them with: set auth.jwt.secret, auth.jwt.public_key or auth.jwt.jwks_url, or leave the rules out
      - auth.jwt.role_admin (wakeline.toml:3), auth.jwt.role_read_write (default), auth.jwt.role_read_only (default), auth.jwt.role_write_only (default): two roles are called "read-only": each needs a name of its own
    "##);
    let given = [
        ("auth.jwt.algorithm", "HS256"),
        ("auth.jwt.secret", SECRET),
        ("auth.jwt.jwks_url", "https://issuer/jwks"),
    ];
    assert_snapshot!(mistakes("", &[], &given), @r##"
    1 mistake in the configuration:
      - auth.jwt.algorithm (flag --auth-jwt-algorithm), auth.jwt.secret (flag --auth-jwt-secret), auth.jwt.public_key (default), auth.jwt.jwks_url (flag --auth-jwt-jwks-url): HS256 is verified with a secret, not with a public key: leave auth.jwt.public_key and auth.jwt.jwks_url empty, or set auth.jwt.algorithm to auto
    "##);
    let given = [("auth.jwt.algorithm", "EdDSA"), ("auth.jwt.secret", SECRET)];
    assert_snapshot!(mistakes("", &[], &given), @r##"
    1 mistake in the configuration:
      - auth.jwt.algorithm (flag --auth-jwt-algorithm), auth.jwt.secret (flag --auth-jwt-secret), auth.jwt.public_key (default), auth.jwt.jwks_url (default): RS256 and EdDSA are verified with a public key, not with a secret: leave auth.jwt.secret empty, or set auth.jwt.algorithm to auto
    "##);
    let short = [("auth.jwt.secret", "hunter2"), ("auth.jwt.role_claim", "")];
    assert_snapshot!(mistakes("", &[], &short), @r##"
    2 mistakes in the configuration:
      - auth.jwt.role_claim (flag --auth-jwt-role-claim): found a length of 0, expected a text
      - auth.jwt.secret (flag --auth-jwt-secret): found a length of 7, expected nothing, or a text of 32 or more characters
    "##);
}

#[test]
fn a_bus_needs_postgres() {
    let bus = ("bus.url", "redis://:pw@r");
    assert_snapshot!(mistakes("", &[], &[bus]), @r##"
    1 mistake in the configuration:
      - bus.url (flag --bus), store (default): a SQLite file belongs to one node, so there are no other nodes for a bus: leave bus.url empty, or set store to the URL of a PostgreSQL database
    "##);
    let config = load(None, [], pairs(&[bus, ("store", "postgresql://db/w")])).unwrap();
    assert_eq!(config.bus.url.unwrap().expose(), "redis://:pw@r");
}

#[test]
fn a_check_is_left_out_when_its_setting_is_a_mistake_itself() {
    let shown = mistakes("", &[], &[("listen", "0.0.0.0:1"), ("insecure", "ja")]);
    assert_snapshot!(shown, @r##"
    1 mistake in the configuration:
      - insecure (flag --insecure): found "ja", expected true or false
    "##);
}

#[test]
fn units_are_read_in_every_source() {
    let config = load(
        file("[http]\nmax_body = 4096\nmax_url = \"4KiB\"\nmax_connections = 1_000"),
        pairs(&[("WAKELINE_HTTP_MAX_HEADERS", "20000")]),
        pairs(&[("wake.fallback_degraded", "500ms")]),
    )
    .unwrap();
    assert_eq!(config.http.max_body, 4096);
    assert_eq!(config.http.max_url, 4096);
    assert_eq!(config.http.max_connections, 1000);
    assert_eq!(config.http.max_headers, 20_000);
    assert_eq!(config.wake.fallback_degraded, Duration::from_millis(500));
}

#[test]
fn tokens_come_as_an_array_or_between_commas() {
    let tokens = |config: &Config| -> Vec<String> {
        let exposed = config.auth.tokens.iter().map(Secret::expose);
        exposed.map(str::to_owned).collect()
    };
    let text = r#"auth.tokens = ["sixteen-or-more-a", "sixteen-or-more-b"]"#;
    let from_file = load(file(text), [], Vec::new()).unwrap();
    let env = pairs(&[(
        "WAKELINE_AUTH_TOKENS",
        "sixteen-or-more-a, sixteen-or-more-b",
    )]);
    let from_env = load(None, env, Vec::new()).unwrap();
    assert_eq!(
        tokens(&from_file),
        ["sixteen-or-more-a", "sixteen-or-more-b"]
    );
    assert_eq!(tokens(&from_file), tokens(&from_env));
}

#[test]
fn the_printed_configuration_names_origins_and_hides_secrets() {
    let config = load(
        file("data = \"/srv/\\\"wakeline\\\"\"\n[http]\nmax_body = 3145728"),
        pairs(&[
            (
                "WAKELINE_STORE",
                "postgres://w:hunter2@db/w?sslpassword=hunter2",
            ),
            (
                "WAKELINE_AUTH_TOKENS",
                "hunter2-hunter2-hunter2,hunter2-hunter2-hunter3",
            ),
            (
                "WAKELINE_AUTH_JWT_SECRET",
                "hunter2 hunter2 hunter2 hunter2 hunter2",
            ),
        ]),
        pairs(&[
            ("bus.url", "rediss://:hunter2@r:6379/0"),
            ("listen", "[::]:80"),
        ]),
    )
    .unwrap();
    let printed = config.to_toml();
    let values = printed.lines().filter(|line| line.contains(" = "));
    assert_eq!(values.clone().count(), SETTINGS.len());
    let given = values.filter(|line| !line.ends_with("# default"));
    assert_snapshot!(given.collect::<Vec<_>>().join("\n"), @r##"
    listen = "[::]:80" # flag --listen
    data = '/srv/"wakeline"' # wakeline.toml:1
    store = "postgres://w:***@db/w?sslpassword=***" # environment WAKELINE_STORE
    tokens = ["***", "***"] # environment WAKELINE_AUTH_TOKENS
    secret = "***" # environment WAKELINE_AUTH_JWT_SECRET
    max_body = "3MiB" # wakeline.toml:3
    url = "rediss://:***@r:6379/0" # flag --bus
    "##);
    assert!(printed.contains("\n\n[http]\n"));
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(!config.to_toml().contains("hunter2"));
}

#[test]
fn no_mistake_shows_a_secret() {
    let text = r#"
        store = "host=db password=hunter2"
        auth.tokens = "hunter2-hunter2-hunter2"
        bus.url = ["redis://:hunter2@r"]
    "#;
    let env = [
        ("WAKELINE_STORE", "postgres:/u:hunter2@db"),
        ("WAKELINE_AUTH_TOKENS", "hunter2"),
        ("WAKELINE_BUS_URL", "redis:// :hunter2@r"),
    ];
    let flags = [("auth.tokens", "hunter2 hunter2 hunter2")];
    let shown = mistakes(text, &env, &flags);
    assert_snapshot!(shown, @r##"
    7 mistakes in the configuration:
      - store (wakeline.toml:2): found "***", expected sqlite, or a URL postgres://… or postgresql://…
      - auth.tokens (wakeline.toml:3): found a text instead of an array, expected a list of texts of 16 or more visible ASCII characters each
      - bus.url (wakeline.toml:4): found an array, expected nothing, or a URL redis://… or rediss://…
      - auth.tokens (environment WAKELINE_AUTH_TOKENS): found a length of 7 in item 1, expected a list of texts of 16 or more visible ASCII characters each
      - bus.url (environment WAKELINE_BUS_URL): found "redis:// :***@r", expected nothing, or a URL redis://… or rediss://…
      - store (environment WAKELINE_STORE): found "***", expected sqlite, or a URL postgres://… or postgresql://…
      - auth.tokens (flag --auth-tokens): found a character other than visible ASCII in item 1, expected a list of texts of 16 or more visible ASCII characters each
    "##);
    assert!(!shown.contains("hunter2"));
}

#[test]
fn the_printed_configuration_can_be_loaded_again() {
    let printed = Config::default().to_toml();
    let again = load(file(&printed), [], Vec::new()).unwrap().to_toml();
    let values = |text: &str| -> Vec<String> {
        let value = |line: &str| line.split(" # ").next().unwrap_or_default().to_owned();
        text.lines().map(value).collect()
    };
    assert_eq!(values(&printed), values(&again));
}

#[test]
fn every_bound_fits_its_type() {
    for setting in SETTINGS {
        let bounds = match setting.kind {
            Kind::Integer { min, max } => [min.to_string(), max.to_string()],
            Kind::Bytes { min, max } => [format!("{min}B"), format!("{max}B")],
            Kind::Duration { min, max } => [format!("{min}ms"), format!("{max}ms")],
            _ => continue,
        };
        for bound in bounds {
            // The others at their most generous, so that no check stands in the way.
            let holds = [
                ("http.max_hold", "1d"),
                ("http.default_hold", "0s"),
                ("jobs.max_read_hold", "1d"),
                ("jobs.read_hold", "0s"),
            ];
            let hold = holds.into_iter().filter(|(key, _)| *key != setting.key);
            let mut flags = pairs(&hold.collect::<Vec<_>>());
            flags.push((setting.key.to_owned(), bound));
            load(None, [], flags).unwrap();
        }
    }
}

#[test]
fn no_two_settings_share_a_variable_or_a_flag() {
    let mut names: Vec<_> = SETTINGS.iter().map(Setting::flag).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
    let env = SETTINGS.iter().map(Setting::env);
    assert!(env.clone().all(|name| !name.starts_with("WAKELINE_TEST_")));
    assert_eq!(setting("http.max_body").unwrap().flag(), "--http-max-body");
    assert_eq!(
        setting("http.max_body").unwrap().env(),
        "WAKELINE_HTTP_MAX_BODY"
    );
}

#[test]
fn a_durable_schema_needs_a_postgres_to_be_in() {
    assert_snapshot!(mistakes("durable.schema = \"durable\"", &[], &[]), @r##"
    1 mistake in the configuration:
      - durable.schema (wakeline.toml:1), durable.database (default), store (default): a durable schema is in PostgreSQL, but the store is SQLite: set durable.database to the database that has it, or leave durable.schema empty
    "##);
    for more in ["store", "durable.database"] {
        let flags = [("durable.schema", "durable"), (more, "postgres://h/d")];
        load(None, [], pairs(&flags)).unwrap();
    }
}

#[test]
fn a_setting_of_feeds_may_be_written_as_jinaga_does() {
    let config = load(
        file("[feeds]\nmaxInitialPages = 7\nwaitlistCap = 8"),
        [],
        Vec::new(),
    );
    let feeds = config.unwrap().feeds;
    assert_eq!((feeds.max_initial_pages, feeds.waitlist_cap), (7, 8));
}

#[test]
fn the_docs_list_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let (prose, table) = docs.split_once("-->\n\n").expect("a mark above the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{prose}-->\n\n{}", docs_table())).unwrap();
        return;
    }
    assert!(
        table == docs_table(),
        "docs/configuration.md is out of step with the table of settings; to mend it: \
         UPDATE_DOCS=1 cargo nextest run -p wakeline-server the_docs_list_every_setting"
    );
}

#[test]
fn the_example_in_the_docs_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let (_, example) = docs.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    load(file(example), [], Vec::new()).unwrap();
}

#[test]
fn the_admins_password_is_as_long_as_any_password() {
    let admin = "[jobs]\nadmin_email = \"ada@example.com\"\nadmin_password = \"seven c\"\n";
    let listen = |address: &str| format!("listen = \"{address}\"\ninsecure = true\n{admin}");
    let beyond = mistakes(&listen("0.0.0.0:6632"), &[], &[]);
    let words = "the superuser's password has fewer than 8 characters";
    assert!(beyond.contains(words), "{beyond}");
    let raised = [("WAKELINE_JOBS_MIN_PASSWORD", "9")];
    let raised = mistakes(&listen("127.0.0.1:6632"), &raised, &[]);
    assert!(raised.contains("fewer than 9 characters"), "{raised}");
}
