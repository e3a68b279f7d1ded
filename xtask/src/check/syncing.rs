//! The PostgreSQL that the tests share does not sync. A test of crashes, outages or durability must
//! not use it, neither itself nor by a function or macro of its test program.

use std::collections::BTreeSet;

use super::rust_text::RustText;
use super::sources::Source;

/// Words in the names of files whose tests are about durability.
const DURABLE_FILES: [&str; 4] = ["crash", "outage", "durability", "verify"];
/// A call that only a server of the test's own has.
const CRASHES: &str = ".crash()";
const SHARED: [&str; 4] = [
    "PostgresDatabase::new(",
    "TestDatabase::new(",
    "SharedPostgres::start(",
    "WAKELINE_TEST_POSTGRES",
];

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let tests: Vec<(&Source, RustText)> = sources
        .iter()
        .filter(|source| !matches!(source.crate_name(), "xtask" | "testbed"))
        .filter(|source| source.is_test() || source.text.contains("#[cfg(test)]"))
        .map(|source| (source, RustText::of(&source.text)))
        .collect();
    let mut failures = Vec::new();
    for (source, text) in tests
        .iter()
        .filter(|(source, text)| needs_sync(source, text))
    {
        let program = tests
            .iter()
            .filter(|(other, _)| test_program(other) == test_program(source));
        for name in shared_names(program.map(|(_, text)| text)) {
            if let Some(line) = line_of(text, &name) {
                failures.push(format!(
                    "{}:{line}: `{name}` is the shared PostgreSQL, which does not sync: start one \
                     of the test's own",
                    source.path,
                ));
            }
        }
    }
    failures
}

fn needs_sync(source: &Source, text: &RustText) -> bool {
    let file = source.path.rsplit('/').next().unwrap_or_default();
    let is_durable = DURABLE_FILES.iter().any(|word| file.contains(word));
    is_durable && !file.contains("redis") || text.code.contains(CRASHES)
}

/// The directory of a test program, whose files share their functions: `crates/cli/tests/e2e`.
fn test_program(source: &Source) -> Vec<&str> {
    source.path.split('/').take(4).collect()
}

/// The names of everything that leads to the shared server, directly or by another such name.
fn shared_names<'a>(texts: impl Iterator<Item = &'a RustText> + Clone) -> BTreeSet<String> {
    let mut names = BTreeSet::from(SHARED.map(str::to_owned));
    loop {
        let found: Vec<String> = texts
            .clone()
            .flat_map(|text| users_of(&names, text))
            .collect();
        let before = names.len();
        names.extend(found);
        if names.len() == before {
            return names;
        }
    }
}

/// `Type::function(`, `function(` and `macro!` of everything that uses one of `names` in its body.
fn users_of(names: &BTreeSet<String>, text: &RustText) -> Vec<String> {
    let (mut of, mut function, mut users) = (None, None, Vec::new());
    for line in text.code.lines() {
        if let Some(name) = line.strip_prefix("macro_rules! ") {
            of = Some(("", name.trim_end_matches([' ', '{'])));
        } else if line.starts_with("impl") {
            // `impl<T> Trait for Type<T> {`
            let (_, name) = line.split_once(['>', ' ']).unwrap_or_default();
            let name = name.rsplit(" for ").next().unwrap_or(name).trim_start();
            of = name
                .split([' ', '<', '{'])
                .next()
                .map(|name| ("impl", name));
        } else if line.starts_with('}') {
            (of, function) = (None, None);
        }
        if let Some((_, rest)) = line.split_once("fn ") {
            function = rest.split(['(', '<']).next();
        }
        if names.iter().any(|name| is_used(line, name)) {
            users.extend(match (of, function) {
                (Some(("", name)), _) => Some(format!("{name}!")),
                (Some((_, of)), Some(function)) => Some(format!("{of}::{function}(")),
                (None, Some(function)) => Some(format!("{function}(")),
                _ => None,
            });
        }
    }
    users
}

/// Whether the line has `name`, but not as the end of a longer name or as a method of another value.
fn is_used(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    })
}

fn line_of(text: &RustText, name: &str) -> Option<usize> {
    let mut lines = text.code.lines();
    let in_code = lines.position(|line| is_used(line, name) && !line.contains("fn "));
    let mut strings = text.strings.iter();
    in_code.map(|at| at + 1).or_else(|| {
        let found = strings.find(|string| string.text == name);
        found.map(|string| string.line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_durability_may_not_use_the_shared_server() {
        let uses = "// PostgresDatabase::new( is said\nlet d = PostgresDatabase::new(&[]).await;";
        for path in [
            "crates/queue/tests/store/crash.rs",
            "crates/cli/tests/e2e/outages.rs",
        ] {
            let found = check(&[Source::new(path, uses)]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
        }
        assert!(check(&[Source::new("crates/queue/tests/store/pops.rs", uses)]).is_empty());
    }

    #[test]
    fn a_test_that_crashes_a_server_may_not_use_the_shared_server() {
        let text = "server.crash().unwrap();\nstd::env::var(\"WAKELINE_TEST_POSTGRES\");";
        let found = check(&[Source::new("crates/queue/tests/store/pops.rs", text)]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_function_or_macro_of_its_program_may_not_use_it_either() {
        const FIXTURE: &str = "impl Fixture {
    pub async fn shared() -> Self {
        Self(PostgresDatabase::new(&[]).await)
    }
    pub async fn on(server: &str) -> Self {
        Self(PostgresDatabase::on(server, &[]).await)
    }
}
macro_rules! on_both_stores {
    () => { Fixture::shared().await }
}";
        let failures = |text: &str| {
            check(&[
                Source::new("crates/queue/tests/store/fixture.rs", FIXTURE),
                Source::new("crates/queue/tests/store/outage.rs", text),
                Source::new("crates/queue/tests/wakes/outage.rs", "Fixture::shared()"),
            ])
        };
        assert_eq!(failures("let fixture = Fixture::shared().await;").len(), 1);
        assert_eq!(failures("on_both_stores! { a_test }").len(), 1);
        assert!(failures("let fixture = Fixture::on(&server).await;").is_empty());
    }

    #[test]
    fn a_function_of_no_type_may_not_use_it_either() {
        const FREE: &str = "async fn empty() -> PostgresDatabase {
    PostgresDatabase::new(&[]).await
}
impl<T> Thing<T> {
    fn shared() { empty() }
    fn empty() {}
}";
        let failures = |text: &str| {
            check(&[
                Source::new("crates/store/tests/postgres/migrations.rs", FREE),
                Source::new("crates/store/tests/postgres/outages.rs", text),
            ])
        };
        assert_eq!(failures("let database = empty().await;").len(), 1);
        assert_eq!(failures("let thing = Thing::shared();").len(), 1);
        assert!(failures("let rows = set.empty() || is_empty();").is_empty());
    }
}
