//! Facts and references as JSON, and the door's own JSON below them.

use super::check_refusal;
use wakeline_feed::{
    fact::record,
    json::{self, Problem},
};

const MOST: usize = 1_000;

pub fn run(input: &[u8]) {
    let facts = record::read_facts(input, MOST);
    if let Err(refused) = &facts {
        check_refusal(&refused.to_string());
    }
    if let Ok(facts) = facts {
        assert!(facts.len() <= MOST);
        let mut written = String::from("{\"facts\":[");
        for (index, fact) in facts.iter().enumerate() {
            written.push_str(if index > 0 { "," } else { "" });
            record::write_sent(&mut written, fact);
        }
        written.push_str("]}");
        let again = record::read_facts(written.as_bytes(), MOST);
        assert_eq!(again.as_ref(), Ok(&facts), "{written}");
    }
    match record::read_references(input, MOST) {
        Ok(references) => assert!(references.len() <= MOST),
        Err(refused) => check_refusal(&refused.to_string()),
    }
    value(input);
}

/// What is hashed must not depend on how it was written.
fn value(input: &[u8]) {
    let theirs: Result<serde_json::Value, _> = serde_json::from_slice(input);
    match json::parse_bytes(input) {
        Ok(value) => {
            let canonical = value.canonical();
            let again = json::parse(&canonical).expect("canonical text is JSON");
            assert_eq!(again, value, "{canonical}");
            assert_eq!(again.canonical(), canonical);
        }
        // It has limits of its own.
        Err(error) => assert!(
            theirs.is_err() || matches!(error.problem, Problem::Deep(_) | Problem::Huge),
            "{error}"
        ),
    }
}
