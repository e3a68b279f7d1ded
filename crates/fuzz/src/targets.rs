//! One file per format.

pub mod bookmark;
pub mod declaration;
pub mod facts;
pub mod feed;
pub mod frame;
pub mod glob;
pub mod graph;
pub mod head;
pub mod identifier;
pub mod jobs;
pub mod json;
pub mod keys;
pub mod parameters;
pub mod policy;
pub mod prefer;
pub mod queue;
pub mod schema;
pub mod socket;
pub mod specification;
pub mod token;

/// Characters of a refusal at most: it may show what was sent, not repeat it.
const MOST_REFUSAL: usize = 1_000;

fn check_refusal(text: &str) {
    assert!(!text.is_empty());
    let count = text.chars().count();
    assert!(count <= MOST_REFUSAL, "{count} characters: {text}");
}

/// Between the parts of an input.
const SEPARATOR: &[u8] = b"\n%%\n";

/// The parts of an input of several.
fn parts(input: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = input;
    while let Some(at) = find(rest, SEPARATOR) {
        parts.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    parts.push(rest);
    parts
}

fn find(input: &[u8], wanted: &[u8]) -> Option<usize> {
    input
        .windows(wanted.len())
        .position(|window| window == wanted)
}
