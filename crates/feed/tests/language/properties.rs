//! Properties of any specification and any text.

mod random;

use proptest::prelude::*;
use wakeline_feed::{
    declaration,
    fact::{Hash, Reference},
    feeds,
    policy_file::PolicyFile,
    specification::{
        Specification, parser,
        request::{self, TrailingText},
    },
};

fn given(specification: &Specification) -> Vec<Reference> {
    let givens = specification.givens.iter().enumerate();
    let references = givens.map(|(index, given)| Reference {
        kind: given.label.kind.clone(),
        hash: Hash([u8::try_from(index).unwrap_or(u8::MAX); 64]),
    });
    references.collect()
}

fn hashes(specification: &Specification) -> Result<Vec<String>, feeds::TooManyFeeds> {
    let feeds = feeds::of(specification, &given(specification))?;
    Ok(feeds.into_iter().map(|feed| feed.hash).collect())
}

/// Everything that reads text, on any text.
fn read(text: &str) {
    let errors = [
        parser::parse(text).err(),
        parser::parse_feed(text).err(),
        declaration::parse(text, &[]).err(),
        request::parse(text, &[], TrailingText::Ignored).err(),
        PolicyFile::parse(text).err(),
    ];
    let lines = text.matches('\n').count() + 1;
    for error in errors.into_iter().flatten() {
        assert!((1..=lines).contains(&error.line), "{error}");
        let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
        assert!(
            (1..=line.chars().count() + 1).contains(&error.column),
            "{error}"
        );
    }
}

/// Words of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ":",
        "=",
        "=>",
        "->",
        "!",
        "E",
        "#",
        "@",
        ".",
        ",",
        "let",
        "a",
        "b",
        "a: A",
        "b: B",
        "b->a: A = a",
        "any",
        "no",
        "share",
        "with",
        "everyone",
        "authorization",
        "distribution",
        "purge",
        "true",
        "1",
        "-",
        "\"x\"",
        "\"",
        "\\",
        "\n",
        "é",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_described_specification_is_parsed_back(specification in random::specification()) {
        let text = specification.describe();
        prop_assert_eq!(parser::parse(&text), Ok(specification), "{}", text);
    }

    #[test]
    fn any_feed_can_be_stored_as_text(specification in random::specification()) {
        let Ok(feeds) = feeds::of(&specification, &given(&specification)) else {
            return Ok(());
        };
        for feed in feeds {
            let text = feed.specification.describe();
            let again = parser::parse_feed(&text).expect(&text);
            prop_assert_eq!(&again, &feed.specification);
            prop_assert_eq!(feeds::hash(&again, &feed.given), feed.hash);
            prop_assert_eq!(feed.given.len(), again.givens.len());
        }
    }

    #[test]
    fn names_of_labels_are_not_in_the_hash(specification in random::specification()) {
        let renamed = specification.renamed(|name| format!("other_{name}").into());
        prop_assert_eq!(hashes(&renamed), hashes(&specification));
        let described = parser::parse(&renamed.describe());
        prop_assert_eq!(described.as_ref(), Ok(&renamed));
    }

    #[test]
    fn both_halves_of_a_split_are_specifications(specification in random::specification()) {
        let split = specification.split_before_successors();
        prop_assert!(split.head.is_some() || split.tail.is_some());
        for half in [split.head, split.tail].into_iter().flatten() {
            if !half.givens.is_empty() {
                let text = half.describe();
                prop_assert!(parser::parse(&text).is_ok(), "{}", text);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        read(&text);
    }

    #[test]
    fn any_words_are_read_or_refused(text in soup()) {
        read(&text);
    }

    #[test]
    fn a_slip_is_read_or_refused(
        specification in random::specification(),
        at in any::<prop::sample::Index>(),
        slip in soup(),
    ) {
        let text = specification.describe();
        // All of it is ASCII.
        let at = at.index(text.len());
        read(&format!("{}{}", &text[..at], &text[at + 1..]));
        read(&format!("{}{slip}{}", &text[..at], &text[at..]));
        read(&text[..at]);
    }
}
