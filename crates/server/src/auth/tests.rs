//! Tokens of a real issuer, and the keys that verify them.

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use wakeline_testbed::issuer::{KeySet, SigningKey, unsigned};

use super::{jwks::Jwks, jwt::Jwt, key::IssuerKey, *};
use crate::config::load;

const SECRET: &str = "a secret of thirty-two characters";

/// Made once: primes take their time.
static RSA: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::rs256("rsa"));

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn claims() -> Value {
    json!({"sub": "someone", "role": "read-write", "exp": now() + 3600})
}

fn with(change: Value) -> Value {
    let mut claims = claims();
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn jwt(settings: &[(&str, &str)]) -> Jwt {
    let flags = settings
        .iter()
        .map(|(key, text)| (format!("auth.jwt.{key}"), (*text).to_owned()));
    let config = load(None, [], flags.collect()).unwrap();
    Jwt::new(&config.jwt).unwrap().expect("a key is given")
}

fn text(refused: Result<Identity, LoginError>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn each_kind_of_key_checks_its_own_algorithm() {
    let secret = SigningKey::hs256("s", SECRET.as_bytes());
    let eddsa = SigningKey::eddsa("ed");
    let pems = [RSA.public_pem(), eddsa.public_pem()];
    for (key, setting) in [
        (&secret, ("secret", SECRET)),
        (&*RSA, ("public_key", pems[0].as_str())),
        (&eddsa, ("public_key", pems[1].as_str())),
    ] {
        let jwt = jwt(&[setting]);
        let identity = jwt.identify(&key.sign(&claims())).unwrap();
        assert_eq!(identity.subject.as_deref(), Some("someone"));
        assert_eq!(identity.role, Role::ReadWrite);
        for other in [&secret, &RSA, &eddsa] {
            let same = std::ptr::eq(other, key);
            let token = other.sign(&claims());
            assert_eq!(jwt.identify(&token).is_ok(), same, "{other:?} with {key:?}");
        }
    }
}

#[test]
fn a_public_key_is_never_taken_for_a_secret() {
    let eddsa = SigningKey::eddsa("ed");
    for key in [&*RSA, &eddsa] {
        let pem = key.public_pem();
        let (jwt, both) = (
            jwt(&[("public_key", &pem)]),
            jwt(&[("public_key", &pem), ("secret", SECRET)]),
        );
        for forged in key.public_forms() {
            let token = SigningKey::hs256("x", &forged).sign(&claims());
            for jwt in [&jwt, &both] {
                assert_eq!(
                    text(jwt.identify(&token)),
                    "Authorization: the token is not signed by a key that this server trusts"
                );
            }
        }
        // The right signature under a wrong name.
        for algorithm in ["HS256", "EdDSA", "RS256", "RS512", "PS256"] {
            let header = json!({"typ": "JWT", "alg": algorithm});
            let is_own = format!("{key:?}").contains(algorithm);
            let token = key.sign_with(&header, &claims());
            assert_eq!(both.identify(&token).is_ok(), is_own, "{key:?} {algorithm}");
        }
    }
}

#[test]
fn an_unsigned_token_is_refused() {
    let jwt = jwt(&[("secret", SECRET)]);
    for algorithm in ["none", "None", "NONE", "HS256", ""] {
        let token = unsigned(&json!({"alg": algorithm}), &claims());
        assert!(jwt.identify(&token).is_err(), "{algorithm}");
    }
    let signed = SigningKey::hs256("s", SECRET.as_bytes()).sign(&claims());
    let (message, signature) = signed.rsplit_once('.').unwrap();
    let admin = unsigned(&json!({"alg": "HS256"}), &with(json!({"role": "admin"})));
    for token in [
        format!("{admin}{signature}"),
        format!("{message}."),
        message.to_owned(),
        format!("{signed}."),
        format!("{signed}A"),
        "..".to_owned(),
        "x".to_owned(),
    ] {
        assert!(jwt.identify(&token).is_err(), "{token}");
    }
}

#[test]
fn each_claim_that_is_wrong_is_named() {
    let jwt = jwt(&[
        ("secret", SECRET),
        ("issuer", "https://issuer"),
        ("audience", "wakeline"),
    ]);
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    let right = json!({"iss": "https://issuer", "aud": ["other", "wakeline"]});
    let mut texts = Vec::new();
    for wrong in [
        json!({"exp": now() - 60}),
        json!({"exp": null}),
        json!({"exp": "tomorrow"}),
        json!({"nbf": now() + 600}),
        json!({"aud": "other"}),
        json!({"aud": null}),
        json!({"iss": "https://other"}),
        json!({"iss": null}),
        json!({"sub": "a\0b"}),
        json!({"sub": "x".repeat(256)}),
        json!({"sub": 5}),
        json!({"role": "king"}),
    ] {
        let mut claims = with(right.clone());
        for (name, value) in wrong.as_object().unwrap() {
            claims[name] = value.clone();
        }
        texts.push(text(jwt.identify(&key.sign(&claims))));
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    Authorization: the token has expired
    Authorization: the token has no exp
    Authorization: the token's exp cannot be read
    Authorization: the token is not valid yet
    Authorization: the token is for another audience
    Authorization: the token has no aud
    Authorization: the token is from another issuer
    Authorization: the token has no iss
    Authorization: the token's sub is not a text of at most 255 characters
    Authorization: the token's sub is not a text of at most 255 characters
    Authorization: the token's sub is not a text of at most 255 characters
    the token has none of the roles admin, read-write, read-only, write-only (claims role and roles)
    ");
    let critical = json!({"alg": "HS256", "crit": ["b64"]});
    let token = key.sign_with(&critical, &with(right.clone()));
    insta::assert_snapshot!(text(jwt.identify(&token)), @"Authorization: the token has critical headers that are not known here");
    // Within the skew of the clocks, and with everything right.
    for change in [
        json!({"exp": now() - 5}),
        json!({"nbf": now() + 5}),
        json!({}),
    ] {
        let mut claims = with(right.clone());
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        assert_eq!(
            jwt.identify(&key.sign(&claims)).map(|i| i.role),
            Ok(Role::ReadWrite)
        );
    }
}

#[test]
fn one_algorithm_can_be_named_as_the_only_one() {
    let ed = SigningKey::eddsa("ed");
    let pem = ed.public_pem();
    let jwt = jwt(&[("public_key", &pem), ("algorithm", "EdDSA")]);
    jwt.identify(&ed.sign(&claims())).unwrap();
    let config = load(
        None,
        [],
        vec![
            ("auth.jwt.public_key".to_owned(), pem),
            ("auth.jwt.algorithm".to_owned(), "RS256".to_owned()),
        ],
    )
    .unwrap();
    let error = Jwt::new(&config.jwt).unwrap_err();
    insta::assert_snapshot!(format!("{error:#}"), @"auth.jwt.public_key: a key for EdDSA, which auth.jwt.algorithm does not let in");
}

#[test]
fn an_invalid_public_key_is_refused_with_the_reason() {
    let pem = |label: &str, text: &str| {
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    let texts = [
        "no PEM".to_owned(),
        pem("PRIVATE KEY", "MC4CAQAwBQYDK2VwBCIEIA=="),
        pem("CERTIFICATE", "MIIB"),
        pem("PUBLIC KEY", "MIIB"),
        // RSA with 1024 bits, and a curve of NIST.
        pem(
            "PUBLIC KEY",
            "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDdlatRjRjogo3WojgGHFHYLugdUWAY9iR3fy4arWNA1KoS8kVw33cJibXr8bvwUAUparCwlvdbH6dvEOfou0/gCFQsHUfQrSDv+MuSUMAe8jzKE4qW+jK+xQU9a03GUnKHkkle+Q0pX/g6jXZ7r1/xAK5Do2kQ+X5xK9cipRgEKwIDAQAB",
        ),
        pem(
            "PUBLIC KEY",
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==",
        ),
    ];
    let reasons = texts.map(|text| IssuerKey::from_pem(&text).unwrap_err().to_string());
    insta::assert_snapshot!(reasons.join("\n"), @"
    not a public key in PEM: expected -----BEGIN PUBLIC KEY-----
    this is a private key, which only the issuer should have; give the public one
    not a public key in PEM: expected -----BEGIN PUBLIC KEY-----
    neither an RSA nor an Ed25519 public key
    the RSA key is shorter than 2048 bits
    neither an RSA nor an Ed25519 public key
    ");
}

#[test]
fn of_a_key_set_only_keys_for_signatures_are_used() {
    let ed = SigningKey::eddsa("ed");
    let changed = |key: &SigningKey, name: &str, value: Value| {
        let mut jwk = key.jwk();
        jwk[name] = value;
        jwk
    };
    let read = |jwk: Value| {
        IssuerKey::from_jwk(jwk)
            .map(|key| key.key.algorithm())
            .map_err(|error| format!("{error:#}"))
    };
    assert_eq!(read(ed.jwk()), Ok("EdDSA"));
    assert_eq!(read(RSA.jwk()), Ok("RS256"));
    let left_out = [
        SigningKey::hs256("s", SECRET.as_bytes()).jwk(),
        changed(&ed, "use", json!("enc")),
        changed(&RSA, "alg", json!("RS512")),
        changed(&RSA, "n", json!("AQAB")),
        changed(&ed, "kty", json!("new")),
    ];
    let reasons = left_out.map(|jwk| read(jwk).unwrap_err());
    insta::assert_snapshot!(reasons.join("\n"), @"
    a symmetric key
    not for signatures
    for another algorithm than RS256 or EdDSA
    the RSA key is shorter than 2048 bits
    neither RSA nor Ed25519
    ");
}

#[tokio::test]
async fn an_old_set_serves_while_it_is_fetched_anew() {
    let keys = [SigningKey::eddsa("first"), SigningKey::eddsa("second")];
    let set = KeySet::http(&[&keys[0]]).unwrap();
    let url = set.url();
    let jwt = jwt(&[
        ("jwks_url", &url),
        ("jwks_refresh", "1s"),
        ("jwks_timeout", "60s"),
    ]);
    let (first, second) = (keys[0].sign(&claims()), keys[1].sign(&claims()));
    assert_eq!(jwt.identify(&first), Err(LoginError::UnknownKey));
    jwt.renew_keys().await.unwrap();
    jwt.identify(&first).unwrap();
    set.publish(&[&keys[1]]);
    // Only by asking about a key that the old set has: nothing but its age calls for a new one.
    let waiting = async {
        while jwt.identify(&first).is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let patience = std::time::Duration::from_secs(45);
    tokio::time::timeout(patience, waiting)
        .await
        .expect("a new set");
    jwt.identify(&second).unwrap();
}

#[tokio::test]
async fn answers_that_are_no_key_set_leave_the_old_one() {
    let key = SigningKey::eddsa("ed");
    let set = KeySet::http(&[&key]).unwrap();
    let url = set.url();
    let flags = [
        ("auth.jwt.jwks_url", url.as_str()),
        ("auth.jwt.jwks_timeout", "60s"),
    ];
    let flags = flags.map(|(key, text)| (key.to_owned(), text.to_owned()));
    let config = load(None, [], flags.to_vec()).unwrap();
    for (status, body) in [
        (500, "{\"keys\":[]}".to_owned()),
        (302, String::new()),
        (200, "<html>".to_owned()),
        (200, "{}".to_owned()),
        (
            200,
            format!("{{\"keys\":[], \"x\":\"{}\"}}", "x".repeat(300_000)),
        ),
    ] {
        let url = config.jwt.jwks_url.as_ref().unwrap();
        let jwks = Jwks::new(url, &config.jwt).unwrap();
        set.publish(&[&key]);
        assert!(jwks.renew().await);
        set.answer(status, body.clone());
        let before = set.fetched();
        assert!(jwks.renew().await, "{status}");
        assert_eq!(set.fetched(), before + 1, "it was asked");
        assert_eq!(jwks.current().unwrap().keys.len(), 1, "{status}");
    }
}

#[test]
fn a_token_comes_with_its_scheme_or_bare() {
    let read = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, text.parse().unwrap());
        token(&headers).map(|token| String::from_utf8(token.to_vec()).unwrap())
    };
    for given in ["Bearer a.b.c", "bearer   a.b.c ", "BEARER a.b.c", "a.b.c"] {
        assert_eq!(read(given).as_deref(), Some("a.b.c"), "{given:?}");
    }
    for given in ["", " ", "Bearer", "Bearer  "] {
        assert_eq!(read(given), None, "{given:?}");
    }
    // Not the scheme, but a token that begins like it.
    assert_eq!(read("bearer-token").as_deref(), Some("bearer-token"));
    assert_eq!(token(&HeaderMap::new()), None);
}

#[test]
fn tokens_are_the_same_or_not() {
    assert!(is_same(b"abc", b"abc"));
    for other in [&b"abd"[..], b"ab", b"abcd", b""] {
        assert!(!is_same(b"abc", other));
    }
}
