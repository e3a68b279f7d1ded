//! The specification language: texts, feeds, skeletons and hashes, against what upstream makes of
//! them.

mod ast;
mod declarations;
mod errors;
mod feeds;
mod policy_files;
mod properties;
mod splits;
mod transcripts;
mod vectors;

use wakeline_feed::{
    fact::{Hash, Reference},
    specification::{Specification, parser},
};

fn parsed(text: &str) -> Specification {
    parser::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn references(given: &[serde_json::Value]) -> Vec<Reference> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    given
        .iter()
        .map(|reference| Reference {
            kind: text(&reference["type"]).into(),
            hash: Hash::read(&text(&reference["hash"])).expect("a hash"),
        })
        .collect()
}
