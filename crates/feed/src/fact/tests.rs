use std::sync::Arc;

use super::{
    Fact, Hash, InvalidFact, Kinds, MAX_NAME, MAX_PREDECESSORS, Predecessors, Reference,
    read_predecessors,
    record::{BodyError, read_facts, read_references, write_loaded, write_sent},
};
use crate::json::{self, Object, Value};

/// 17 canonical texts and hashes, captured from jinaga.
const GOLDEN: &str = include_str!("../../tests/vectors/golden-hashes.json");
/// Made by Node: see make-facts.mjs.
const VECTORS: &str = include_str!("../../tests/vectors/facts.json");
/// Bodies of a real client and server.
const LOGIN: &str = include_str!("../../tests/vectors/login.json");

fn member<'a>(of: &'a Value<'_>, name: &str) -> &'a Value<'a> {
    let found = of.as_object().and_then(|object| object.get(name));
    found.unwrap_or_else(|| panic!("no {name} in {of:?}"))
}

fn list<'a>(of: &'a Value<'_>) -> &'a [Value<'a>] {
    match of {
        Value::Array(elements) => elements,
        other => panic!("no list: {other:?}"),
    }
}

fn fact(kind: &str, predecessors: &str, fields: &str) -> Result<Fact, InvalidFact> {
    let roles = read_predecessors(predecessors, &mut Kinds::default())?;
    Fact::new(kind.into(), roles, &json::parse(fields)?)
}

fn reference(kind: &str, text: &str) -> Reference {
    Reference {
        kind: kind.into(),
        hash: Hash::of(text),
    }
}

/// Sorted as a fact's predecessors are; these have hashes that are none.
fn sorted<'a>(predecessors: &Value<'a>) -> Value<'a> {
    let text = |value: &Value<'_>, name| member(value, name).as_str().unwrap().to_owned();
    let members = predecessors.as_object().unwrap().members().iter();
    let members = members.map(|(role, value)| {
        let mut value = value.clone();
        if let Value::Array(references) = &mut value {
            references.sort_by_key(|one| (text(one, "hash"), text(one, "type")));
        }
        (role.clone(), value)
    });
    Value::Object(Object::new(members.collect()))
}

#[test]
fn facts_have_the_recorded_hashes_of_upstream() {
    let golden = json::parse(GOLDEN).unwrap();
    assert_eq!(list(&golden).len(), 17);
    for vector in list(&golden) {
        let whole = Value::Object(Object::new(vec![
            ("fields".into(), member(vector, "fields").clone()),
            (
                "predecessors".into(),
                sorted(member(vector, "predecessors")),
            ),
        ]));
        let canonical = member(vector, "canonical").as_str().unwrap();
        let hash = member(vector, "hash").as_str().unwrap();
        assert_eq!(whole.canonical(), canonical);
        assert_eq!(Hash::of(canonical).to_string(), hash);
        if list_of_none(member(vector, "predecessors")) {
            let fact = Fact::new("T".into(), Vec::new(), member(vector, "fields")).unwrap();
            assert_eq!(fact.canonical(), canonical);
            assert_eq!(fact.reference.hash.to_string(), hash);
        }
    }
}

fn list_of_none(predecessors: &Value<'_>) -> bool {
    predecessors
        .as_object()
        .is_some_and(|of| of.members().is_empty())
}

#[test]
fn facts_have_the_hashes_that_node_computes() {
    let vectors = json::parse(VECTORS).unwrap();
    let facts = list(member(&vectors, "facts"));
    assert!(facts.len() > 50);
    for vector in facts {
        let text = |name| member(vector, name).as_str().unwrap();
        let fact = fact(text("type"), text("predecessors"), text("fields")).unwrap();
        assert_eq!(fact.canonical(), text("canonical"));
        assert_eq!(fact.reference.hash.to_string(), text("hash"));
        let read = read_predecessors(&fact.predecessors_text(), &mut Kinds::default());
        assert_eq!(read.unwrap(), fact.predecessors);
    }
}

#[test]
fn one_predecessor_is_not_an_array_of_one() {
    let of = |predecessors| {
        Fact::new(
            "T".into(),
            vec![("a".into(), predecessors)],
            &Value::Object(Object::default()),
        )
        .unwrap()
        .reference
        .hash
    };
    let one = reference("A", "");
    assert_ne!(
        of(Predecessors::One(one.clone())),
        of(Predecessors::Many(vec![one]))
    );
}

#[test]
fn hashes_are_in_the_order_of_their_texts() {
    for index in 0..500 {
        let (one, mut other) = (
            Hash::of(&index.to_string()),
            Hash::of(&(index + 1).to_string()),
        );
        // Also hashes that differ late.
        other.0[..index % 64].copy_from_slice(&one.0[..index % 64]);
        assert_eq!(
            one.compare_text(&other),
            one.to_string().cmp(&other.to_string())
        );
    }
}

#[test]
fn an_invalid_fact_is_refused_by_name() {
    let refused =
        |kind, predecessors, fields| fact(kind, predecessors, fields).unwrap_err().to_string();
    assert_eq!(refused("", "{}", "{}"), "the type name is empty");
    assert_eq!(
        refused("a\0", "{}", "{}"),
        "the type name has a control character"
    );
    let long = "é".repeat(201);
    assert_eq!(
        refused(&long, "{}", "{}"),
        "the type name is longer than 200 characters"
    );
    assert!(fact(&long[2..], "{}", "{}").is_ok());
    assert_eq!(
        refused("T", "{}", "[]"),
        "'fields' must be an object, not an array"
    );
    assert_eq!(
        refused("T", "[]", "{}"),
        "'predecessors' must be an object, not an array"
    );
    assert_eq!(
        refused("T", r#"{"a":[7]}"#, "{}"),
        "element 0 of role 'a' must be a reference {type, hash}, not a number"
    );
    assert_eq!(
        refused("T", r#"{"a":{"type":"A","hash":"aaa=="}}"#, "{}"),
        "'hash' of role 'a' is not a hash: expected the 88 characters of a SHA-512 in base64"
    );
    assert_eq!(
        refused("T", r#"{"a":{"type":"A"}}"#, "{}"),
        "'hash' is missing"
    );
    assert_eq!(
        refused("T", r#"{"\ud800":[]}"#, "{}"),
        "the role name is not Unicode: it has half of a surrogate pair"
    );
    assert_eq!(
        refused("T", r#"{"__proto__":[]}"#, "{}"),
        "no role can be called '__proto__'"
    );
    assert_eq!(refused("T", r#"{"":[]}"#, "{}"), "the role name is empty");
    // Before its name is repeated.
    let long = format!(r#"{{"{}":7}}"#, "r".repeat(MAX_NAME + 1));
    assert_eq!(
        refused("T", &long, "{}"),
        "the role name is longer than 200 characters"
    );
    let roles = vec![("a".into(), Predecessors::Many(Vec::new())); 2];
    let twice = Fact::new("T".into(), roles, &json::parse("{}").unwrap()).unwrap_err();
    assert_eq!(twice.to_string(), "the role 'a' is there twice");
    let crowd = Predecessors::Many(vec![reference("A", ""); MAX_PREDECESSORS]);
    let crowded = Fact::new(
        "T".into(),
        vec![("a".into(), crowd)],
        &json::parse("{}").unwrap(),
    );
    assert_eq!(
        crowded.unwrap_err().to_string(),
        "more than 10000 predecessors"
    );
}

#[test]
fn loaded_facts_are_written_as_upstream_writes_them() {
    let login = json::parse(LOGIN).unwrap();
    let body = member(&login, "load").as_str().unwrap();
    let facts = read_facts(body.as_bytes(), 10).unwrap();
    let mut out = "{\"facts\":[".to_owned();
    write_loaded(&mut out, &facts[0], "2026-11-15T22:24:45.608Z");
    out.push(',');
    write_loaded(&mut out, &facts[1], "2026-11-15T22:24:46.055Z");
    out.push_str("]}");
    assert_eq!(out, body);
}

#[test]
fn the_users_fact_is_written_as_upstream_writes_it() {
    let login = json::parse(LOGIN).unwrap();
    let body = member(&login, "login").as_str().unwrap();
    let user = json::parse(body).unwrap();
    let fields = member(member(&user, "userFact"), "fields");
    let fact = Fact::new("Jinaga.User".into(), Vec::new(), fields).unwrap();
    let mut out = "{\"userFact\":".to_owned();
    write_sent(&mut out, &fact);
    out.push_str(",\"profile\":{\"displayName\":\"alice\"}}");
    assert_eq!(out, body);
}

#[test]
fn a_wrong_hash_is_another_error_than_a_wrong_shape() {
    let body = r#"{"facts":[{"type":"A","hash":"x","predecessors":{},"fields":{}}]}"#;
    let Err(BodyError::WrongHash {
        index,
        kind,
        sent,
        computed,
    }) = read_facts(body.as_bytes(), 10)
    else {
        panic!("taken");
    };
    assert_eq!((index, &*kind, &*sent), (0, "A", "x"));
    let right = body.replace("\"x\"", &format!("\"{computed}\""));
    assert_eq!(read_facts(right.as_bytes(), 10).unwrap().len(), 1);

    let refused = |body: &str| read_facts(body.as_bytes(), 2).unwrap_err().to_string();
    assert_eq!(refused("[]"), "expected an object at byte 0");
    assert_eq!(refused("{}"), "Expected an array 'facts' property.");
    assert_eq!(refused(r#"{"facts":7}"#), "expected an array at byte 9");
    assert_eq!(
        refused(r#"{"facts":[7]}"#),
        "facts[0]: it must be an object, not a number"
    );
    assert_eq!(refused(r#"{"facts":[{}]}"#), "facts[0]: 'type' is missing");
    assert_eq!(
        refused(r#"{"facts":[{"type":1}]}"#),
        "facts[0]: 'type' must be a string, not a number"
    );
    assert_eq!(
        refused(r#"{"facts":[{"type":"A","hash":"x","fields":{}}]}"#),
        "facts[0]: 'predecessors' is missing"
    );
    let one = right
        .strip_prefix("{\"facts\":[")
        .unwrap()
        .strip_suffix("]}")
        .unwrap();
    let many = format!("\u{FEFF}{{\"other\":[1],\"facts\":[{one},{one},{one}]}}");
    assert_eq!(refused(&many), "more than 2 facts");
    assert_eq!(read_facts(many.as_bytes(), 3).unwrap().len(), 3);
}

#[test]
fn a_reference_with_an_impossible_hash_is_left_out() {
    let known = reference("A", "");
    let mut out = String::new();
    known.write(&mut out);
    assert_eq!(
        out,
        format!("{{\"type\":\"A\",\"hash\":\"{}\"}}", known.hash)
    );
    let body = format!("{{\"references\":[{{\"type\":\"A\",\"hash\":\"no\"}},{out}]}}");
    assert_eq!(read_references(body.as_bytes(), 2).unwrap(), [known]);
    let refused = |body: &str| read_references(body.as_bytes(), 2).unwrap_err().to_string();
    assert_eq!(
        refused(r#"{"references":[{"type":"A"}]}"#),
        "references[0]: 'hash' is missing"
    );
    assert_eq!(
        refused(r#"{"references":["A"]}"#),
        "references[0]: the reference must be a reference {type, hash}, not a string"
    );
}

#[test]
fn types_share_their_text() {
    let mut kinds = Kinds::default();
    let one = kinds.get("A").unwrap();
    assert!(Arc::ptr_eq(&one, &kinds.get("A").unwrap()));
}
