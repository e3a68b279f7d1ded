//! Names of types must have a noun, those of functions name their subject, and no name has a word
//! that the field's own word has replaced.

use super::rust_text::RustText;
use super::sources::Source;

/// Participles, pronouns and the like. A type has its noun with it: `ClaimResult`, not `Taken`.
const BARE: &[&str] = &[
    "Answered",
    "Asked",
    "Asking",
    "Bad",
    "Begun",
    "By",
    "Chosen",
    "Come",
    "Coming",
    "Committed",
    "Consumed",
    "Counted",
    "Counting",
    "Done",
    "Ended",
    "Fits",
    "Found",
    "From",
    "Frozen",
    "Given",
    "Gone",
    "Ground",
    "Heard",
    "Hearing",
    "Held",
    "How",
    "Invalid",
    "Kept",
    "Known",
    "Look",
    "Looked",
    "Looks",
    "Moved",
    "Named",
    "Obey",
    "Open",
    "Over",
    "Paged",
    "Place",
    "Places",
    "Purging",
    "Refreshing",
    "Renamed",
    "Repeated",
    "Resolved",
    "Rest",
    "Said",
    "Seen",
    "Settled",
    "Several",
    "Shared",
    "Shown",
    "Single",
    "Spoken",
    "Stand",
    "Standing",
    "Stays",
    "Stopped",
    "Stored",
    "Taken",
    "Telling",
    "Thing",
    "Things",
    "Together",
    "Told",
    "Trailing",
    "Unfit",
    "Waiting",
    "Wanted",
    "Watched",
    "Way",
    "What",
    "Where",
    "Which",
    "Who",
    "Whole",
    "Why",
    "Wrong",
];

/// Types that may have such a name: the file, the name, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The name of a function, above all of a test, is a statement about a message, a pop or a worker, and
/// does not begin with one of these.
const NO_SUBJECT: &[&str] = &[
    "everybody",
    "it",
    "its",
    "nobody",
    "somebody",
    "their",
    "they",
    "those",
    "what",
    "whatever",
    "who",
    "whoever",
    "whom",
    "whose",
];

/// Words that are no part of any name any more, each with the word to use instead.
const REPLACED: &[(&str, &str)] = &[
    ("alarm", "recheck timer"),
    ("anchor", "unresolved given"),
    ("curate", "message admin"),
    ("declined", "passed on"),
    ("gather", "coalesce"),
    ("glance", "ready check"),
    ("ground", "fixture, dependencies"),
    ("heart", "heartbeat"),
    ("heed", "subscribe"),
    ("lane", "wait group"),
    ("parcel", "delivery guard"),
    ("piece", "chunk"),
    ("pieces", "chunks"),
    ("quiet", "negative cache"),
    ("rung", "bus mode"),
    ("settle", "complete, apply"),
    ("tally", "counters"),
    ("vitals", "node stats"),
];

/// Files that may use such a word (the start of the path), the word, and why.
const USES: &[(&str, &str, &str)] = &[
    ("xtask/src/check/links.rs", "anchor", "HTML's"),
    ("xtask/src/check/names.rs", "lane", "its tests look for one"),
    (
        "crates/bench/",
        "quiet",
        "a server at rest; no empty answer is remembered",
    ),
    (
        "crates/bench/",
        "settle",
        "a pause until a server is at rest; no work is completed",
    ),
    (
        "crates/feed/src/store/postgres/004_queries.sql",
        "gather",
        "PostgreSQL's setting",
    ),
];

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut failures = Vec::new();
    for source in sources {
        let RustText { code, strings } = match source.path.ends_with(".sql") {
            true => without_sql_comments(&source.text),
            false => RustText::of(&source.text),
        };
        for (at, line) in code.lines().enumerate() {
            if let Some(name) = defined_type(line)
                && BARE.contains(&name)
                && !is_excepted(EXCEPTIONS, &source.path, name)
            {
                let place = format!("{}:{}", source.path, at + 1);
                failures.push(format!(
                    "{place}: the type `{name}` needs its noun, as `ClaimResult` has"
                ));
            }
            if let Some(name) = defined_function(line)
                && let Some((first, _)) = name.split_once('_')
                && NO_SUBJECT.contains(&first)
            {
                let place = format!("{}:{}", source.path, at + 1);
                failures.push(format!(
                    "{place}: the function `{name}` names its subject, and not `{first}`"
                ));
            }
        }
        // SQL and the names of metrics are in strings; so is prose, which has no underscores.
        let in_strings = strings.iter().flat_map(|string| {
            let names = string.text.split(|c: char| !is_in_name(c));
            let names = names.filter(|name| name.contains('_'));
            names.map(|name| (string.line, name))
        });
        let in_code = code.lines().enumerate();
        let in_code = in_code.map(|(at, line)| (at + 1, line));
        for (line, text) in in_code.chain(in_strings).chain([(0, &*source.path)]) {
            for (word, today) in replaced_words(text) {
                if !is_excepted(USES, &source.path, word) {
                    let place = format!("{}:{line}", source.path);
                    failures.push(format!("{place}: `{word}` is called {today} here"));
                }
            }
        }
    }
    failures
}

fn without_sql_comments(text: &str) -> RustText {
    let lines = text.lines();
    let code = lines.map(|line| line.split("--").next().unwrap_or_default());
    RustText {
        code: code.collect::<Vec<_>>().join("\n"),
        strings: Vec::new(),
    }
}

fn is_excepted(exceptions: &[(&str, &str, &str)], path: &str, name: &str) -> bool {
    let mut exceptions = exceptions.iter();
    exceptions.any(|(start, excepted, _)| path.starts_with(start) && *excepted == name)
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name of the type that `line` defines, if it does.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line
        .split(|c: char| !is_in_name(c))
        .filter(|word| !word.is_empty() && !matches!(*word, "pub" | "crate" | "super" | "unsafe"));
    matches!(
        words.next(),
        Some("struct" | "enum" | "trait" | "type" | "union")
    )
    .then(|| words.next())?
}

/// The name of the function that `line` defines, if it does.
fn defined_function(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !is_in_name(c));
    words.find(|word| *word == "fn")?;
    words.next()
}

fn replaced_words(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = line
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(camel_parts)
        .map(str::to_lowercase);
    let parts: Vec<String> = parts.collect();
    REPLACED
        .iter()
        .copied()
        .filter(move |(word, _)| parts.iter().any(|part| part == word))
}

/// `WaitGroup` is `Wait` and `Group`.
fn camel_parts(word: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = word
        .char_indices()
        .filter(|(at, c)| *at > 0 && c.is_uppercase())
        .map(|(at, _)| at)
        .collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([word.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &word[*start..end])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(text: &str) -> Vec<String> {
        check(&[Source::new("crates/queue/src/a.rs", text)])
    }

    #[test]
    fn a_type_without_a_noun_is_a_failure() {
        assert_eq!(
            failures("use x;\npub(crate) struct Taken<T> {}"),
            ["crates/queue/src/a.rs:2: the type `Taken` needs its noun, as `ClaimResult` has"]
        );
        assert_eq!(failures("struct TakenLease;\n// struct Taken").len(), 0);
    }

    #[test]
    fn a_function_without_a_subject_is_a_failure() {
        assert_eq!(
            failures("    pub async fn what_is_kept_is_limited(node: Node) {}"),
            [
                "crates/queue/src/a.rs:1: the function `what_is_kept_is_limited` names its subject, and not `what`"
            ]
        );
        assert_eq!(failures("fn whole_batch() {}\n// fn who_waits()").len(), 0);
    }

    #[test]
    fn a_replaced_word_is_a_failure_as_a_part_of_a_name_and_not_within_a_word() {
        let named = ["crates/queue/src/a.rs:1: `lane` is called wait group here"];
        assert_eq!(failures("fn in_lane(x: LaneEntry) {}"), named);
        assert_eq!(failures("let sql = \"FROM queue_lane\";"), named);
        assert_eq!(failures("let planes = 1; let text = \"a lane\";").len(), 0);
        let sql = "CREATE TABLE lane ( -- lane";
        let sql = check(&[Source::new("crates/queue/src/a.sql", sql)]);
        assert_eq!(sql.len(), 1);
        let file = check(&[Source::new("crates/queue/src/lane.rs", "")]);
        assert_eq!(file.len(), 1);
    }
}
