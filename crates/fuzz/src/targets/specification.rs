//! Specifications with their declarations: the bodies of `/jinaga/feeds` and `/jinaga/read`.

use super::check_refusal;
use wakeline_feed::{
    declaration::facts::{self, NamedFact},
    fact::{Hash, Reference},
    feeds,
    query::Query,
    reading::Plan,
    specification::{
        Label, parser,
        request::{self, TrailingText},
        scanner,
    },
};

/// The caller's own fact, as a label and as a fact.
pub(super) fn known() -> (Vec<Label>, NamedFact) {
    let kind = wakeline_feed::login::USER;
    let label = Label {
        name: "me".into(),
        kind: kind.into(),
    };
    let fact = NamedFact {
        name: "me".into(),
        reference: Reference {
            kind: kind.into(),
            hash: Hash([7; 64]),
        },
        fact: None,
    };
    (vec![label], fact)
}

/// An error says where in the text it is.
pub(super) fn check_place(error: &scanner::Error, text: &str) {
    let line = text.split('\n').nth(error.line - 1);
    let line = line.expect("a line of the text");
    assert!(error.column <= line.chars().count() + 1, "{error}");
    check_refusal(&error.message);
}

pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let (labels, user) = known();
    let refused = request::parse(text, &labels, TrailingText::Refused);
    let read = match request::parse(text, &labels, TrailingText::Ignored) {
        Ok(read) => read,
        Err(error) => {
            assert!(refused.is_err());
            return check_place(&error, text);
        }
    };
    let specification = &read.specification;
    let described = specification.describe();
    let again = parser::parse(&described).expect("what is described can be read");
    assert_eq!(again.describe(), described);
    let split = specification.split_before_successors();
    assert!(split.head.is_some() || split.tail.is_some());
    for half in [split.head, split.tail].into_iter().flatten() {
        let described = half.describe();
        parser::parse(&described).expect("half a specification can be read");
    }
    let _ = Query::of_specification(specification);
    let _ = Plan::of(specification);
    let Ok(resolved) = facts::resolve(&read.declarations, vec![user]) else {
        return;
    };
    let given = specification.givens.iter().filter_map(|given| {
        let mut resolved = resolved.iter().rev();
        let fact = resolved.find(|fact| fact.name == given.label.name)?;
        Some(fact.reference.clone())
    });
    let given: Vec<Reference> = given.collect();
    assert_eq!(given.len(), specification.givens.len());
    let Ok(feeds) = feeds::of(specification, &given) else {
        return;
    };
    for feed in feeds {
        let text = feed.specification.describe();
        let kept = parser::parse_feed(&text).expect("a feed is kept as text");
        assert_eq!(kept, feed.specification, "{text}");
        assert_eq!(feeds::hash(&kept, &feed.given), feed.hash);
        let _ = Query::of_specification(&feed.specification);
    }
}
