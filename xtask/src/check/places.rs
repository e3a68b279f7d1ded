//! SQL stands only in stores, and only the server and the command line read the environment.

use super::rust_text::RustText;
use super::sources::Source;

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut failures = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let text = RustText::outside_tests(&source.text);
        if !may_hold_sql(source) {
            for string in text.strings.iter().filter(|string| is_sql(&string.text)) {
                failures.push(format!(
                    "{}:{}: SQL outside of a store",
                    source.path, string.line
                ));
            }
        }
        if !may_read_environment(source) {
            for (at, line) in text.code.lines().enumerate() {
                if line.contains("env::var") {
                    failures.push(format!(
                        "{}:{}: only the server and the command line read the environment",
                        source.path,
                        at + 1
                    ));
                }
            }
        }
    }
    failures
}

fn may_hold_sql(source: &Source) -> bool {
    let path = &source.path;
    matches!(source.crate_name(), "store" | "bench" | "testkit" | "xtask")
        || path.contains("/src/store/")
        || path.ends_with("/src/store.rs")
        || path.starts_with("crates/bus/src/postgres")
}

fn may_read_environment(source: &Source) -> bool {
    matches!(
        source.crate_name(),
        "server" | "cli" | "testbed" | "testkit" | "xtask"
    )
}

/// Whether the text has an SQL statement, which this project writes in upper case and prose does not.
fn is_sql(text: &str) -> bool {
    let has = |words: &str| {
        text.match_indices(words).any(|(at, _)| {
            !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        })
    };
    let spread = |text: &str| text.split_whitespace().any(|word| word == "SET");
    has("SELECT ")
        || has("SELECT\n")
        || has("INSERT INTO")
        || has("DELETE FROM")
        || (has("UPDATE ") && spread(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)])
    }

    #[test]
    fn sql_is_recognised_by_its_keywords() {
        for sql in [
            "SELECT 1",
            "  SELECT\n  id FROM t",
            "INSERT INTO t VALUES (1)",
            "UPDATE t\n SET a = 1",
            "DELETE FROM t",
        ] {
            assert!(is_sql(sql), "{sql}");
        }
        for prose in [
            "select one",
            "UPDATE the page",
            "PRESELECT x",
            "a SET of things",
        ] {
            assert!(!is_sql(prose), "{prose}");
        }
    }

    #[test]
    fn sql_belongs_in_a_store() {
        let text = "// SELECT in a comment\nlet q = \"SELECT 1\";";
        assert_eq!(
            failures("crates/queue/src/service.rs", text),
            ["crates/queue/src/service.rs:2: SQL outside of a store"]
        );
        for place in [
            "crates/queue/src/store.rs",
            "crates/queue/src/store/sqlite.rs",
            "crates/store/src/migrate.rs",
            "crates/bus/src/postgres/listen.rs",
            "crates/bench/src/lib.rs",
            "crates/queue/tests/races.rs",
        ] {
            assert_eq!(failures(place, text), Vec::<String>::new(), "{place}");
        }
    }

    #[test]
    fn the_environment_belongs_to_the_server_and_the_command_line() {
        let text = "let home = std::env::var(\"HOME\");";
        assert_eq!(failures("crates/wake/src/lib.rs", text).len(), 1);
        assert_eq!(failures("crates/store/src/pool.rs", text).len(), 1);
        for place in [
            "crates/server/src/config.rs",
            "crates/cli/src/main.rs",
            "crates/testkit/src/fresh.rs",
            "crates/wake/tests/engine.rs",
        ] {
            assert_eq!(failures(place, text), Vec::<String>::new(), "{place}");
        }
    }
}
