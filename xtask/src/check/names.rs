//! Names that say nothing without their context, and words that were replaced by the field's own.

use super::rust_text::RustText;
use super::sources::Source;

/// Participles, pronouns and the like. A type has its noun with it: `ClaimResult`, not `Taken`.
const BARE: &[&str] = &[
    "Answered", "Asked", "Asking", "Begun", "Chosen", "Come", "Coming", "Done", "Ended", "Found",
    "Given", "Gone", "Ground", "Heard", "Hearing", "Held", "How", "Kept", "Known", "Look",
    "Looked", "Looks", "Moved", "Open", "Place", "Places", "Said", "Seen", "Settled", "Shown",
    "Spoken", "Stand", "Standing", "Taken", "Telling", "Thing", "Things", "Together", "Told",
    "Waiting", "Way", "What", "Where", "Which", "Who",
];

/// Types that may have such a name: the file, the name, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Words of an earlier vocabulary, as a part of any name, and what is said today.
const REPLACED: &[(&str, &str)] = &[
    ("alarm", "recheck timer"),
    ("glance", "ready check"),
    ("heed", "subscribe"),
    ("lane", "wait group"),
    ("parcel", "delivery guard"),
    ("rung", "bus mode"),
    ("tally", "counters"),
    ("vitals", "node stats"),
];

pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut failures = Vec::new();
    for source in sources {
        for (at, line) in RustText::of(&source.text).code.lines().enumerate() {
            let place = format!("{}:{}", source.path, at + 1);
            if let Some(name) = defined_type(line)
                && BARE.contains(&name)
                && !is_excepted(&source.path, name)
            {
                failures.push(format!(
                    "{place}: the type `{name}` needs its noun, as `ClaimResult` has"
                ));
            }
            for (word, today) in replaced_words(line) {
                failures.push(format!("{place}: `{word}` is called {today} here"));
            }
        }
    }
    failures
}

fn is_excepted(path: &str, name: &str) -> bool {
    let mut exceptions = EXCEPTIONS.iter();
    exceptions.any(|(file, excepted, _)| *file == path && *excepted == name)
}

/// The name of the type that `line` defines, if it does.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty() && !matches!(*word, "pub" | "crate" | "super" | "unsafe"));
    matches!(
        words.next(),
        Some("struct" | "enum" | "trait" | "type" | "union")
    )
    .then(|| words.next())?
}

fn replaced_words(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = line
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(camel_parts)
        .map(|part| part.to_lowercase());
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
        check(&[Source {
            path: "crates/queue/src/a.rs".into(),
            text: text.into(),
        }])
    }

    #[test]
    fn a_type_without_a_noun_is_named() {
        assert_eq!(
            failures("use x;\npub(crate) struct Taken<T> {"),
            ["crates/queue/src/a.rs:2: the type `Taken` needs its noun, as `ClaimResult` has"]
        );
        assert_eq!(failures("struct TakenLease;\n// struct Taken").len(), 0);
    }

    #[test]
    fn a_replaced_word_is_named_as_a_part_of_a_name_and_not_in_other_words() {
        assert_eq!(
            failures("fn in_lane(x: LaneEntry) {}"),
            ["crates/queue/src/a.rs:1: `lane` is called wait group here"]
        );
        assert_eq!(failures("let planes = 1; let text = \"lane\";").len(), 0);
    }
}
