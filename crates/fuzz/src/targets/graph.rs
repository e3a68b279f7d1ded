//! The graph format: the body of `/jinaga/save`. The input is read as a whole and in chunks.

use super::check_refusal;
use wakeline_feed::{
    fact::Envelope,
    graph::{Error, Limits, Reader, Writer},
};

/// Small, so that each is met.
const LIMITS: Limits = Limits {
    line: 2_000,
    facts: 50,
    predecessors: 100,
    keys: 10,
    signatures: 20,
};

pub fn run(input: &[u8]) {
    let whole = read(input, input.len().max(1));
    for chunk in [1, 7] {
        assert_eq!(read(input, chunk), whole, "in chunks of {chunk}");
    }
    let envelopes = match whole {
        Ok(envelopes) => envelopes,
        Err(error) => {
            // An error says where it is.
            let lines = input.split(|byte| *byte == b'\n').count();
            assert!((1..=lines as u64).contains(&error.line), "{error}");
            check_refusal(&error.to_string());
            return;
        }
    };
    let mut writer = Writer::default();
    let mut graph = String::new();
    for Envelope { fact, signatures } in &envelopes {
        let written = writer.write(&mut graph, fact, signatures);
        written.expect("a graph has predecessors first");
    }
    let mut unique: Vec<Envelope> = Vec::new();
    for envelope in envelopes {
        if !unique.iter().any(|known| known.fact == envelope.fact) {
            unique.push(envelope);
        }
    }
    // A line can become longer when it is written.
    let limits = Limits {
        line: usize::MAX,
        ..LIMITS
    };
    let again = read_within(graph.as_bytes(), usize::MAX, limits);
    assert_eq!(again.as_ref(), Ok(&unique), "{graph}");
}

fn read(input: &[u8], chunk: usize) -> Result<Vec<Envelope>, Error> {
    read_within(input, chunk, LIMITS)
}

fn read_within(input: &[u8], chunk: usize, limits: Limits) -> Result<Vec<Envelope>, Error> {
    let mut reader = Reader::new(limits);
    let mut envelopes = Vec::new();
    for chunk in input.chunks(chunk) {
        reader.push(chunk, &mut envelopes)?;
    }
    reader.finish(&mut envelopes)?;
    assert!(envelopes.len() <= limits.facts);
    Ok(envelopes)
}
