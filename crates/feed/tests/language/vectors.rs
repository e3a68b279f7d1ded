//! Expected values that `vectors/make-specifications.mjs` had from the npm package.

use std::collections::BTreeSet;

use serde_json::Value;
use wakeline_feed::{
    fact::Reference,
    feeds,
    skeleton::Skeleton,
    specification::{Specification, parser},
};

use crate::{ast, parsed, references};

struct Vector {
    value: Value,
    specification: Specification,
}

impl Vector {
    fn name(&self) -> &Value {
        &self.value["name"]
    }

    /// The expected value, if the vector has one.
    fn expects(&self, key: &str) -> Option<&Value> {
        self.value.get(key)
    }

    fn given(&self) -> Vec<Reference> {
        references(self.value["given"].as_array().expect("givens"))
    }
}

fn vectors() -> Vec<Vector> {
    let values: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/specifications.json")).expect("vectors");
    assert!(values.len() >= 60, "there are only {}", values.len());
    let vectors = values.into_iter().map(|value| Vector {
        specification: parsed(value["text"].as_str().expect("a text")),
        value,
    });
    vectors.collect()
}

#[test]
fn specifications_are_parsed_as_upstream_does() {
    for vector in vectors() {
        if let Some(expected) = vector.expects("ast") {
            assert_eq!(
                ast::of(&vector.specification),
                *expected,
                "{}",
                vector.name()
            );
        }
    }
}

#[test]
fn specifications_are_described_as_upstream_does() {
    for vector in vectors() {
        let specification = &vector.specification;
        assert_eq!(
            Some(specification.describe().as_str()),
            vector.value["described"].as_str()
        );
    }
}

/// Upstream reduces a specification to what decides its feeds: projections that find nothing do
/// not.
#[test]
fn projections_that_find_nothing_are_not_in_the_hash() {
    let hashes = |specification: &Specification, given: &[Reference]| -> BTreeSet<String> {
        let feeds = feeds::of(specification, given).unwrap();
        feeds.into_iter().map(|feed| feed.hash).collect()
    };
    for vector in vectors() {
        if let Some(reduced) = vector.expects("reduced").and_then(Value::as_str) {
            let reduced = parser::parse(reduced).unwrap();
            let given = vector.given();
            assert_eq!(
                hashes(&reduced, &given),
                hashes(&vector.specification, &given),
                "{}",
                vector.name()
            );
        }
    }
}

#[test]
fn identities_are_recognised_as_upstream_does() {
    for vector in vectors() {
        let specification = &vector.specification;
        if let Some(expected) = vector.expects("identity") {
            let is_identity = specification.is_identity();
            assert_eq!(Some(is_identity), expected.as_bool(), "{}", vector.name());
        }
    }
}

#[test]
fn feeds_skeletons_and_hashes_are_as_upstream_makes_them() {
    for vector in vectors() {
        let Some(expected) = vector.expects("feeds").and_then(Value::as_array) else {
            continue;
        };
        let built = feeds::build(&vector.specification).expect("few feeds");
        assert_eq!(built.len(), expected.len(), "{}", vector.name());
        for (feed, expected) in built.iter().zip(expected) {
            assert_eq!(Some(feed.describe().as_str()), expected["text"].as_str());
            let skeleton = serde_json::to_value(Skeleton::of(feed)).expect("JSON");
            assert_eq!(skeleton, expected["skeleton"], "{}", feed.describe());
        }
    }
}

#[test]
fn the_feeds_of_givens_have_upstreams_hashes_each_once_in_order() {
    for vector in vectors() {
        let feeds = feeds::of(&vector.specification, &vector.given()).expect("few feeds");
        let upstreams = feeds.iter().filter(|feed| !feed.is_added);
        let hashes: Vec<_> = upstreams.map(|feed| feed.hash.as_str()).collect();
        let expected: Vec<_> = vector.value["hashes"]
            .as_array()
            .expect("hashes")
            .iter()
            .collect();
        assert_eq!(hashes, expected, "{}", vector.name());
    }
}

#[test]
fn a_feed_can_be_stored_as_text() {
    for vector in vectors() {
        for feed in feeds::of(&vector.specification, &vector.given()).expect("few feeds") {
            let again = parser::parse_feed(&feed.specification.describe()).expect("a feed");
            assert_eq!(again, feed.specification);
            assert_eq!(feeds::hash(&again, &feed.given), feed.hash);
        }
    }
}

#[test]
fn specifications_are_split_as_upstream_does() {
    for vector in vectors() {
        if vector.expects("identity").is_none() {
            continue;
        }
        let split = vector.specification.split_before_successors();
        let text = |part: Option<Specification>| part.map(|part| part.describe());
        let expected = |key: &str| {
            vector
                .expects(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        assert_eq!(text(split.head), expected("head"), "{}", vector.name());
        assert_eq!(text(split.tail), expected("tail"), "{}", vector.name());
    }
}
