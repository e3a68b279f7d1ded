use std::sync::Arc;

use super::{BadKey, SignatureFlaw, Signer, Verifier, generate};
use crate::{
    fact::{Envelope, Fact},
    graph::{Limits, Reader},
    json::{self, Object, Value},
    store::KeyPair,
};

/// Made by Node: see make-facts.mjs.
const VECTORS: &str = include_str!("../../tests/vectors/facts.json");
/// Bodies of a real client and server.
const LOGIN: &str = include_str!("../../tests/vectors/login.json");

fn member<'a>(of: &'a Value<'_>, name: &str) -> &'a Value<'a> {
    of.as_object().and_then(|object| object.get(name)).unwrap()
}

fn graph(file: &Value<'_>, name: &str) -> Vec<Envelope> {
    let mut envelopes = Vec::new();
    let mut reader = Reader::new(Limits::DEFAULT);
    let text = member(file, name).as_str().unwrap();
    reader.push(text.as_bytes(), &mut envelopes).unwrap();
    reader.finish(&mut envelopes).unwrap();
    envelopes
}

/// The key pairs that node-forge made.
fn forge_keys(vectors: &Value<'_>) -> Vec<KeyPair> {
    let Value::Array(keys) = member(vectors, "keys") else {
        panic!("no keys");
    };
    let keys = keys.iter().map(|key| KeyPair {
        public: member(key, "publicPem").as_str().unwrap().into(),
        private: member(key, "privatePem").as_str().unwrap().into(),
    });
    keys.collect()
}

fn signed(fact: Fact, key: &KeyPair) -> Envelope {
    let signature = Signer::new(key).unwrap().sign(&fact).unwrap();
    Envelope {
        fact,
        signatures: vec![signature],
    }
}

fn fact() -> Fact {
    Fact::new("A".into(), Vec::new(), &Value::Object(Object::default())).unwrap()
}

#[test]
fn the_signatures_of_a_real_session_hold() {
    let login = json::parse(LOGIN).unwrap();
    for name in ["single_use", "loaded_graph"] {
        let envelopes = graph(&login, name);
        assert!(
            envelopes
                .iter()
                .any(|envelope| !envelope.signatures.is_empty())
        );
        assert_eq!(Verifier::default().verify(&envelopes), Ok(()));
    }
}

#[test]
fn a_signature_is_the_one_that_node_forge_makes() {
    let vectors = json::parse(VECTORS).unwrap();
    let keys = forge_keys(&vectors);
    let envelopes = graph(&vectors, "graph");
    assert_eq!(Verifier::default().verify(&envelopes), Ok(()));
    let signers = keys.iter().map(|key| Signer::new(key).unwrap());
    let signers: Vec<Signer> = signers.collect();
    let mut compared = 0;
    for Envelope { fact, signatures } in &envelopes {
        for signature in signatures {
            let at = keys
                .iter()
                .position(|key| key.public == signature.key)
                .unwrap();
            assert_eq!(&signers[at].sign(fact).unwrap(), signature);
            compared += 1;
        }
    }
    assert!(compared > 50);
}

#[test]
fn a_new_key_signs_and_is_written_as_node_forge_writes_it() {
    let key = generate().unwrap();
    let lines: Vec<&str> = key.public.split("\r\n").collect();
    assert_eq!(lines.first(), Some(&"-----BEGIN PUBLIC KEY-----"));
    assert_eq!(lines[lines.len() - 2..], ["-----END PUBLIC KEY-----", ""]);
    let body = &lines[1..lines.len() - 2];
    assert!(body[..body.len() - 1].iter().all(|line| line.len() == 64));
    assert!(!key.public.replace("\r\n", "").contains(['\r', '\n']));
    // The length of each line, too: this is a key of upstream's with the same size.
    let theirs = &forge_keys(&json::parse(VECTORS).unwrap())[0].public;
    assert!(
        theirs
            .split("\r\n")
            .map(str::len)
            .eq(lines.iter().map(|line| line.len()))
    );
    assert_eq!(theirs[..60], key.public[..60]);

    let envelope = signed(fact(), &key);
    assert_eq!(Verifier::default().verify(&[envelope]), Ok(()));
    assert!(!format!("{key:?}").contains("PRIVATE"));
}

#[test]
fn line_ends_of_a_key_do_not_matter_but_stay() {
    let vectors = json::parse(VECTORS).unwrap();
    let key = forge_keys(&vectors).remove(0);
    for public in [
        key.public.replace("\r\n", "\n"),
        key.public.trim_end().to_owned(),
        key.public.replace("\r\n", ""),
    ] {
        let public: Arc<str> = public.into();
        let private = key.private.clone();
        let envelope = signed(
            fact(),
            &KeyPair {
                public: public.clone(),
                private,
            },
        );
        assert_eq!(envelope.signatures[0].key, public);
        assert_eq!(Verifier::default().verify(&[envelope]), Ok(()));
    }
}

#[test]
fn the_first_bad_signature_is_named() {
    let vectors = json::parse(VECTORS).unwrap();
    let keys = forge_keys(&vectors);
    let good = signed(fact(), &keys[0]);
    let fields = Value::Object(Object::new(vec![("n".into(), Value::Number(1.0))]));
    let other = signed(
        Fact::new("B".into(), Vec::new(), &fields).unwrap(),
        &keys[0],
    );

    let verifier = Verifier::default();
    let flaw = |bad: Envelope| {
        let reference = bad.fact.reference.clone();
        let invalid = verifier.verify(&[good.clone(), bad]).unwrap_err();
        assert_eq!((invalid.fact, invalid.index), (reference, 1));
        invalid.flaw
    };
    let with = |key: &str, signature: &str| {
        let mut bad = other.clone();
        bad.signatures.push(crate::fact::Signature {
            key: key.into(),
            signature: signature.into(),
        });
        bad
    };
    let key = &keys[0].public;
    let right = &other.signatures[0].signature;
    assert_eq!(
        flaw(with(key, &good.signatures[0].signature)),
        SignatureFlaw::Wrong
    );
    assert_eq!(flaw(with(&keys[1].public, right)), SignatureFlaw::Wrong);
    assert_eq!(flaw(with(key, "")), SignatureFlaw::Wrong);
    assert_eq!(flaw(with(key, "?")), SignatureFlaw::Base64);
    assert_eq!(
        flaw(with("no key", right)),
        SignatureFlaw::Key(BadKey::Pem("PUBLIC KEY"))
    );
    assert_eq!(
        flaw(with(&key.replace("MIIB", "?"), right)),
        SignatureFlaw::Key(BadKey::Base64)
    );
    assert_eq!(
        flaw(with(&key.replace("MIIB", "AAAA"), right)),
        SignatureFlaw::Key(BadKey::Rsa)
    );
    assert_eq!(
        flaw(with(SMALL, right)),
        SignatureFlaw::Key(BadKey::Size(1024))
    );
    assert_eq!(verifier.verify(&[good, other]), Ok(()));
}

#[test]
fn an_invalid_private_key_is_refused() {
    let key = KeyPair {
        public: "".into(),
        private: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".into(),
    };
    assert_eq!(Signer::new(&key).unwrap_err(), BadKey::Rsa);
}

/// Of 1024 bits.
const SMALL: &str = "-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC5L4NmWHuyEvrlOF7ceAFVwITA\n\
Tbvm/h02o4pXVInXQkAr/EI3lMLRM4rqEAg/isgpUowgp7L0OSFwbMZD0s9W5PSL\n\
TI7zouV/p9dncXzLxdL0+vBa9+zy+Fuj9Ju4pOYy8xEuOPBgTw711hWndo3Vpy+s\n\
xy5BEZAXlYpkuTd1YwIDAQAB\n\
-----END PUBLIC KEY-----";
