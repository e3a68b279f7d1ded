//! Recorded requests of the real client, with the answers of the real server.

use serde_json::Value;
use wakeline_feed::{
    declaration::facts,
    fact::Reference,
    feeds,
    skeleton::Skeleton,
    specification::{
        Label, parser,
        request::{self, TrailingText},
    },
};

use crate::{ast, references};

fn transcripts() -> Vec<Value> {
    let transcripts: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/transcripts.json")).expect("transcripts");
    assert!(!transcripts.is_empty());
    transcripts
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().expect("a list")
}

#[test]
fn the_feeds_of_a_request_have_the_hashes_that_the_server_gave() {
    let known: [Label; 0] = [];
    for transcript in transcripts() {
        for request in list(&transcript, "requests") {
            let text = request["request"].as_str().expect("a text");
            let asked = request::parse(text, &known, TrailingText::Ignored).expect(text);
            let declared = facts::resolve(&asked.declarations, Vec::new()).expect("facts");
            let given: Vec<Reference> = asked
                .specification
                .givens
                .iter()
                .map(|given| {
                    let mut declared = declared.iter();
                    let found = declared.find(|declared| declared.name == given.label.name);
                    found.expect("a declaration").reference.clone()
                })
                .collect();
            let built = feeds::of(&asked.specification, &given).expect("few feeds");
            let hashes: Vec<_> = built.iter().map(|feed| feed.hash.as_str()).collect();
            let expected: Vec<_> = list(request, "feeds").iter().collect();
            assert_eq!(hashes, expected, "{}", transcript["transcript"]);
        }
    }
}

#[test]
fn the_feeds_of_the_server_are_read_and_hashed_the_same() {
    for transcript in transcripts() {
        for feed in list(&transcript, "feeds") {
            let text = feed["text"].as_str().expect("a text");
            let specification = parser::parse_feed(text).expect(text);
            assert_eq!(specification.describe(), text);
            assert_eq!(ast::of(&specification), feed["ast"]);
            let skeleton = serde_json::to_value(Skeleton::of(&specification)).expect("JSON");
            assert_eq!(skeleton, feed["skeleton"]);
            let given = references(list(feed, "given"));
            assert_eq!(feed["hash"], feeds::hash(&specification, &given).as_str());
        }
    }
}
