use std::collections::HashSet;

use proptest::prelude::*;

use super::{Error, Limits, MissingPredecessor, Reader, Writer};
use crate::{
    fact::{Envelope, Fact, MAX_NAME, Predecessors, Reference, Signature},
    json::{self, Value},
};

/// Made by Node: see make-facts.mjs.
const VECTORS: &str = include_str!("../../tests/vectors/facts.json");
/// Bodies of a real client and server.
const LOGIN: &str = include_str!("../../tests/vectors/login.json");

fn read_within(limits: Limits, chunks: &[&[u8]]) -> Result<Vec<Envelope>, Error> {
    let mut reader = Reader::new(limits);
    let mut envelopes = Vec::new();
    for chunk in chunks {
        reader.push(chunk, &mut envelopes)?;
    }
    reader.finish(&mut envelopes)?;
    Ok(envelopes)
}

fn read(text: &str) -> Result<Vec<Envelope>, Error> {
    read_within(Limits::DEFAULT, &[text.as_bytes()])
}

fn refused(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn write(envelopes: &[Envelope]) -> String {
    let mut writer = Writer::default();
    let mut out = String::new();
    for envelope in envelopes {
        writer
            .write(&mut out, &envelope.fact, &envelope.signatures)
            .unwrap();
    }
    out
}

fn vector(file: &str, name: &str) -> String {
    let file = json::parse(file).unwrap();
    let text = file.as_object().and_then(|object| object.get(name));
    text.and_then(Value::as_str).unwrap().to_owned()
}

const GRAPH: &str =
    "\"A\"\n{}\n{\"n\":1}\n\n\"B\"\n{\"a\":0}\n{}\n\n\"C\"\n{\"all\":[1,0,0],\"none\":[]}\n{}\n\n";

#[test]
fn the_graphs_of_a_real_session_are_read_and_written_to_the_byte() {
    for name in ["save", "single_use", "loaded_graph"] {
        let text = vector(LOGIN, name);
        assert_eq!(write(&read(&text).unwrap()), text, "{name}");
    }
    let signed = read(&vector(LOGIN, "single_use")).unwrap();
    assert_eq!(signed.len(), 2);
    assert!(signed.iter().all(|envelope| envelope.signatures.len() == 1));
    assert!(
        signed[0].signatures[0]
            .key
            .ends_with("-----END PUBLIC KEY-----\r\n")
    );
}

#[test]
fn a_graph_written_by_node_is_read_as_its_facts() {
    let vectors = json::parse(VECTORS).unwrap();
    let Some(Value::Array(facts)) = vectors.as_object().unwrap().get("facts") else {
        panic!("no facts");
    };
    let mut seen = HashSet::new();
    let expected: Vec<String> = facts
        .iter()
        .filter_map(Value::as_object)
        .map(|fact| ["type", "hash"].map(|name| fact.get(name).and_then(Value::as_str).unwrap()))
        .map(|[kind, hash]| format!("{kind}:{hash}"))
        // Only the last is not in the graph.
        .filter(|fact| !fact.starts_with("Twins:") && seen.insert(fact.clone()))
        .collect();
    let envelopes = read(&vector(VECTORS, "graph")).unwrap();
    let read_back: Vec<String> = envelopes
        .iter()
        .map(|envelope| envelope.fact.reference.to_string())
        .collect();
    assert_eq!(read_back, expected);
    assert_eq!(read(&write(&envelopes)).unwrap(), envelopes);
}

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    let expected = read(GRAPH).unwrap();
    assert_eq!(expected.len(), 3);
    for text in [
        GRAPH.trim_end().to_owned(),
        GRAPH.trim_end().to_owned() + "\n",
        GRAPH.replace('\n', "\r\n"),
        GRAPH.replace('\n', "\r\n").trim_end().to_owned() + "\r",
        GRAPH.replace("\n\n", "\n\n\n \n"),
        format!("\u{FEFF}{GRAPH}"),
        format!("\n\r\n{GRAPH}\n"),
    ] {
        assert_eq!(read(&text).as_ref(), Ok(&expected), "{text:?}");
    }
    assert_eq!(read("").unwrap(), []);
}

#[test]
fn a_fact_is_returned_as_soon_as_its_block_ends() {
    let mut reader = Reader::new(Limits::DEFAULT);
    let mut envelopes = Vec::new();
    reader.push(b"\"A\"\n{}\n{}\n", &mut envelopes).unwrap();
    assert_eq!(envelopes.len(), 0);
    reader.push(b"\n", &mut envelopes).unwrap();
    assert_eq!(envelopes.len(), 1);
}

#[test]
fn a_duplicate_has_an_index_of_its_own_and_is_written_once() {
    let envelopes = read("\"A\"\n{}\n{}\n\n\"A\"\n{}\n{}\n\n\"B\"\n{\"a\":1}\n{}\n\n").unwrap();
    assert_eq!(envelopes[0], envelopes[1]);
    assert_eq!(
        write(&envelopes),
        "\"A\"\n{}\n{}\n\n\"B\"\n{\"a\":0}\n{}\n\n"
    );
}

#[test]
fn an_invalid_graph_is_refused_with_its_line() {
    const TYPE: &str = "a type as a JSON string, or PK and the number of a key";
    const ROLES: &str = "an object of roles and indexes of facts";
    assert_eq!(
        refused("\"A\"\n{}\n{}\n\nnonsense\n"),
        format!("line 5: expected {TYPE}, but expected a JSON value at byte 0")
    );
    assert_eq!(
        refused("7\n"),
        format!("line 1: expected {TYPE}, found '7'")
    );
    assert_eq!(
        refused("\"\"\n"),
        format!("line 1: expected {TYPE}, but the type name is empty")
    );
    assert_eq!(
        refused("\"A\""),
        format!("line 1: the graph ends too early, expected {ROLES}")
    );
    assert_eq!(
        refused("\"A\"\n{}\n"),
        "line 3: the graph ends too early, expected an object of fields"
    );
    assert_eq!(
        refused("\"A\"\n[]\n"),
        format!("line 2: expected {ROLES}, found '[]'")
    );
    assert_eq!(
        refused("\"A\"\n{}\n[]\n"),
        "line 3: expected an object of fields, but 'fields' must be an object, not an array"
    );
    assert_eq!(
        refused("\"A\"\n{}\n{}\n\"B\"\n"),
        "line 4: expected an empty line, or PK and the number of a key, found '\"…'"
    );
    assert_eq!(
        refused("\"A\"\n{}\n{}\nPK0\n"),
        "line 4: PK0 is not declared; there are 0 keys"
    );
    assert_eq!(
        refused("PK1\n"),
        "line 1: expected the declaration of PK0, found PK1"
    );
    assert_eq!(
        refused("PK0\n\"k\"\n\"A\"\n"),
        "line 3: expected an empty line after the public key, found '\"…'"
    );
    assert_eq!(
        refused("PK0\n\"k\"\n\n\"A\"\n{}\n{}\nPK0\n7"),
        "line 8: expected a signature as a JSON string, found '7'"
    );
}

#[test]
fn a_predecessor_must_come_before_its_successors() {
    let refused = |index: &str| {
        refused(&format!(
            "\"A\"\n{{}}\n{{}}\n\n\"B\"\n{{\"a\":{index}}}\n{{}}\n\n"
        ))
    };
    assert_eq!(
        refused("1"),
        "line 6: the predecessor 'a' is fact 1, but only 1 facts come before this one"
    );
    assert_eq!(
        refused("[0,1e300]"),
        "line 6: the predecessor 'a' is fact 18446744073709551615, but only 1 facts come before this one"
    );
    for index in ["-1", "0.5", "\"0\"", "null", "[[0]]", "{}"] {
        assert_eq!(
            refused(index),
            "line 6: the predecessor 'a' must be the index of a fact, or an array of them"
        );
    }
    let facts = read("\"A\"\n{}\n{}\n\n\"B\"\n{\"a\":0}\n{}\n\n").unwrap();
    let mut out = String::new();
    let unwritten = Writer::default().write(&mut out, &facts[1].fact, &[]);
    assert_eq!(
        unwritten,
        Err(MissingPredecessor {
            successor: facts[1].fact.reference.kind.clone(),
            predecessor: facts[0].fact.reference.clone(),
        })
    );
    assert_eq!(out, "");
}

#[test]
fn a_graph_over_a_limit_is_refused() {
    let limits = Limits {
        line: 20,
        facts: 2,
        predecessors: 3,
        keys: 1,
        signatures: 1,
    };
    let refused = |text: &str| {
        read_within(limits, &[text.as_bytes()])
            .unwrap_err()
            .to_string()
    };
    let fact = "\"A\"\n{}\n{}\n\n";
    assert_eq!(refused(&fact.repeat(3)), "line 9: more than 2 facts");
    assert_eq!(
        refused(&format!("{fact}\"A\"\n{{\"a\":[0,0,0,0]}}\n")),
        "line 6: more than 3 predecessors"
    );
    assert_eq!(
        refused("PK0\n\"\"\n\nPK1\n"),
        "line 4: more than 1 public keys"
    );
    assert_eq!(
        refused("PK0\n\"\"\n\n\"A\"\n{}\n{}\nPK0\n\"\"\nPK0\n\"\"\n"),
        "line 10: more than 1 signatures"
    );
    assert_eq!(
        refused("\"123456789012345678901\"\n"),
        "line 1: longer than 20 bytes"
    );
    // Nor is more of a line kept that does not end.
    let mut reader = Reader::new(limits);
    let mut envelopes = Vec::new();
    reader.push(&[b' '; 20], &mut envelopes).unwrap();
    assert!(reader.push(b" ", &mut envelopes).is_err());
}

/// Each with predecessors among those before it, some signed.
fn envelopes() -> impl Strategy<Value = Vec<Envelope>> {
    let role = (
        "[a-c😀\u{FFFF}]",
        any::<bool>(),
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    );
    let fact = (
        "[A-C]",
        prop::collection::vec(role, 0..3),
        "\\PC{0,5}",
        prop::collection::vec(("[kl\n]{1,2}", "[a-z]{4}"), 0..3),
    );
    prop::collection::vec(fact, 0..20).prop_map(|facts| {
        let mut envelopes: Vec<Envelope> = Vec::new();
        for (kind, roles, field, signatures) in facts {
            let known: Vec<Reference> = envelopes
                .iter()
                .map(|one| one.fact.reference.clone())
                .collect();
            let mut predecessors = std::collections::BTreeMap::new();
            for (role, one, indexes) in roles {
                let mut of = Vec::new();
                if !known.is_empty() {
                    of.extend(indexes.iter().map(|index| index.get(&known).clone()));
                }
                let of = match of.pop() {
                    Some(last) if one => Predecessors::One(last),
                    Some(last) => Predecessors::Many([of, vec![last]].concat()),
                    None => Predecessors::Many(Vec::new()),
                };
                predecessors.insert(role.into(), of);
            }
            let fields = json::Object::new(vec![("f".into(), Value::from(field))]);
            let fact = Fact::new(
                kind.into(),
                predecessors.into_iter().collect(),
                &Value::Object(fields),
            )
            .unwrap();
            if known.contains(&fact.reference) {
                continue;
            }
            let signatures = signatures.into_iter().map(|(key, signature)| Signature {
                key: key.into(),
                signature: signature.into(),
            });
            envelopes.push(Envelope {
                fact,
                signatures: signatures.collect(),
            });
        }
        envelopes
    })
}

proptest! {
    #[test]
    fn a_written_graph_is_read_back_in_any_chunks(envelopes in envelopes(), cuts: Vec<prop::sample::Index>) {
        let text = write(&envelopes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read_within(Limits::DEFAULT, &chunks), Ok(envelopes));
    }

    #[test]
    fn any_bytes_are_read_or_refused_wherever_they_are_cut(
        lines in prop::collection::vec(
            prop_oneof![
                Just("\"A\"".to_owned()), Just("{}".to_owned()), Just(String::new()), Just("PK0".to_owned()),
                Just("\"k\"".to_owned()), Just("{\"a\":0}".to_owned()), "\\PC{0,8}",
            ],
            0..30,
        ),
        noise: Vec<u8>,
        cut: prop::sample::Index,
    ) {
        for bytes in [noise, lines.join("\n").into_bytes()] {
            let (one, other) = bytes.split_at(cut.index(bytes.len() + 1));
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = read_within(Limits::DEFAULT, &[&bytes]);
            prop_assert_eq!(&read_within(Limits::DEFAULT, &[one, other]), &whole);
            prop_assert_eq!(&read_within(Limits::DEFAULT, &each), &whole);
        }
    }
}

#[test]
fn a_role_is_refused_before_its_name_is_repeated() {
    let long = "r".repeat(MAX_NAME + 1);
    assert_eq!(
        refused(&format!("\"A\"\n{{\"{long}\":\"x\"}}\n{{}}\n")),
        "line 2: expected an object of roles and indexes of facts, but the role name is longer \
         than 200 characters"
    );
}
