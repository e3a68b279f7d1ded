//! Tokens of providers.

use std::{fs, sync::Arc};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderValue, header};
use ring::{hmac, rand::SystemRandom, signature as signing};
use serde_json::{Value, json};
use tempfile::TempDir;
use wakeline_feed::{
    login::{Caller, KeySource, KeysUnavailable, Login},
    signature,
    store::{KeyPair, Principal},
};
use wakeline_web::token::Key;

const NOW: u64 = 1_800_000_000;
const SECRET: &str = "a secret that both have";

/// A key set of one key, and one that cannot be fetched.
#[derive(Debug)]
struct Source(Key);

impl KeySource for Source {
    fn key<'a>(
        &'a self,
        uri: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Key>, KeysUnavailable>> {
        async move {
            match uri {
                "https://issuer/keys" => Ok((id == "set").then(|| self.0.clone())),
                _ => Err(KeysUnavailable),
            }
        }
        .boxed()
    }
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn token(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn sealed(algorithm: &str, key_id: &str, claims: &Value) -> String {
    let kind = match algorithm {
        "HS384" => hmac::HMAC_SHA384,
        "HS512" => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    sealed_with(
        kind,
        SECRET,
        &json!({ "alg": algorithm, "kid": key_id }),
        claims,
    )
}

fn sealed_with(kind: hmac::Algorithm, secret: &str, header: &Value, claims: &Value) -> String {
    let key = hmac::Key::new(kind, secret.as_bytes());
    token(header, claims, |message| {
        hmac::sign(&key, message).as_ref().to_vec()
    })
}

fn key_pair(key: &KeyPair) -> signing::RsaKeyPair {
    let lines = key.private.lines().filter(|line| !line.starts_with("---"));
    let der = STANDARD.decode(lines.collect::<String>()).unwrap();
    signing::RsaKeyPair::from_pkcs8(&der).unwrap()
}

fn signed(key: &KeyPair, key_id: &str, claims: &Value) -> String {
    let (pair, random) = (key_pair(key), SystemRandom::new());
    token(
        &json!({ "alg": "RS256", "kid": key_id }),
        claims,
        |message| {
            let mut bytes = vec![0; pair.public().modulus_len()];
            let kind = &signing::RSA_PKCS1_SHA256;
            pair.sign(kind, &random, message, &mut bytes).unwrap();
            bytes
        },
    )
}

fn claims() -> Value {
    json!({ "sub": "anna", "iss": "issuer", "aud": "us", "exp": NOW + 600, "display_name": "Anna" })
}

fn with(field: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[field] = value;
    claims
}

/// A directory with a provider of this name.
fn provider(name: &str, more: Value) -> TempDir {
    let mut written = json!({ "provider": name, "issuer": "issuer", "audience": "us" });
    for (field, value) in more.as_object().unwrap() {
        written[field] = value.clone();
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("{name}.provider"));
    fs::write(file, written.to_string()).unwrap();
    directory
}

fn shared() -> TempDir {
    provider("shared", json!({ "key_id": "one", "key": SECRET }))
}

fn read(directory: &TempDir, key: Key) -> Result<Login, String> {
    let login = Login::read(directory.path(), Arc::new(Source(key)));
    login.map_err(|error| error.to_string())
}

fn login(directory: &TempDir) -> Login {
    read(directory, Key::Secret(Vec::new())).unwrap()
}

async fn identify(login: &Login, token: &str) -> Result<Caller, String> {
    ask(login, Some(&format!("Bearer {token}"))).await
}

async fn ask(login: &Login, authorization: Option<&str>) -> Result<Caller, String> {
    let mut headers = HeaderMap::new();
    if let Some(text) = authorization {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(text).unwrap());
    }
    let caller = login.identify_at(&headers, NOW).await;
    caller.map_err(|refused| refused.to_string())
}

fn anna(provider: &str) -> Result<Caller, String> {
    Ok(Caller {
        principal: Some(Principal {
            provider: provider.to_owned(),
            id: "anna".to_owned(),
        }),
        display_name: "Anna".to_owned(),
    })
}

#[tokio::test]
async fn a_shared_secret_verifies_all_its_algorithms() {
    let login = login(&shared());
    for algorithm in ["HS256", "HS384", "HS512"] {
        let token = sealed(algorithm, "one", &claims());
        assert_eq!(identify(&login, &token).await, anna("shared"));
    }
}

#[tokio::test]
async fn a_bad_token_is_refused_with_its_flaw() {
    let login = login(&shared());
    let good = sealed("HS256", "one", &claims());
    let message = good.rsplit_once('.').unwrap().0;
    let without_id = token(&json!({ "alg": "HS256" }), &claims(), |_| vec![0; 3]);
    let with = |field, value| sealed("HS256", "one", &with(field, value));
    for (token, reason) in [
        ("x".to_owned(), "Invalid token"),
        (message.to_owned(), "Invalid token"),
        (without_id, "Invalid token"),
        (with("sub", json!(5)), "Invalid subject"),
        (with("sub", json!("")), "Invalid subject"),
        (with("sub", json!("a\u{0}")), "Invalid subject"),
        (with("iss", json!("another")), "Invalid issuer"),
        (with("iss", json!(null)), "Invalid issuer"),
        (with("aud", json!("them")), "Invalid audience"),
        (with("aud", json!(["us"])), "Invalid audience"),
        (sealed("HS256", "two", &claims()), "Invalid signature"),
        (sealed("none", "one", &claims()), "Invalid signature"),
        (sealed("RS256", "one", &claims()), "Invalid signature"),
        (format!("{message}.AAAA"), "Invalid signature"),
        (with("exp", json!(NOW - 61)), "Token expired"),
        (with("nbf", json!(NOW + 61)), "Token expired"),
    ] {
        let refused = identify(&login, &token).await;
        assert_eq!(refused, Err(reason.to_owned()), "{token}");
    }
}

#[tokio::test]
async fn a_caller_without_a_token_needs_the_anonymous_marker() {
    let directory = shared();
    let strict = login(&directory);
    for given in [None, Some("Basic dTpw"), Some("Bearer"), Some("")] {
        let refused = ask(&strict, given).await;
        assert_eq!(refused, Err("No token".to_owned()), "{given:?}");
    }
    fs::write(directory.path().join("allow-anonymous"), "").unwrap();
    let open = login(&directory);
    for given in [None, Some("Basic dTpw")] {
        let caller = ask(&open, given).await;
        assert_eq!(caller, Ok(Caller::anonymous()), "{given:?}");
    }
    // A bad token is not the same as none.
    let refused = identify(&open, "x").await;
    assert_eq!(refused, Err("Invalid token".to_owned()));
}

#[tokio::test]
async fn public_keys_verify_and_are_no_secrets() {
    let key = signature::generate().unwrap();
    let by_pem = login(&provider(
        "pem",
        json!({ "key_id": "one", "key": &*key.public }),
    ));
    let token = signed(&key, "one", &claims());
    assert_eq!(identify(&by_pem, &token).await, anna("pem"));
    // Sealed with the public key's text, as if that were a secret.
    let header = json!({ "alg": "HS256", "kid": "one" });
    let forged = sealed_with(hmac::HMAC_SHA256, &key.public, &header, &claims());
    let refused = identify(&by_pem, &forged).await;
    assert_eq!(refused, Err("Invalid signature".to_owned()));

    let public = signing::RsaPublicKeyComponents::<Vec<u8>>::from(key_pair(&key).public());
    let set = provider("set", json!({ "jwks_uri": "https://issuer/keys" }));
    let by_set = read(&set, Key::rsa(public.n, public.e).unwrap()).unwrap();
    let token = signed(&key, "set", &claims());
    assert_eq!(identify(&by_set, &token).await, anna("set"));
    let refused = identify(&by_set, &signed(&key, "other", &claims())).await;
    assert_eq!(refused, Err("Invalid signature".to_owned()));
}

#[tokio::test]
async fn an_unavailable_key_set_is_not_a_bad_token() {
    let login = login(&provider(
        "away",
        json!({ "jwks_uri": "https://away/keys" }),
    ));
    let refused = identify(&login, &sealed("RS256", "set", &claims())).await;
    assert!(refused.unwrap_err().contains("try again later"));
}

#[test]
fn an_invalid_provider_is_named() {
    let either = "give either key_id and key, or jwks_uri";
    let pem = |label: &str| json!({ "key_id": "1", "key": format!("-----BEGIN {label} KEY-----") });
    let all = json!({ "key_id": "1", "key": "x", "jwks_uri": "https://a" });
    let file = json!({ "jwks_uri": "file:///etc/passwd" });
    for (more, reason) in [
        (json!({}), either),
        (json!({ "key": "x" }), either),
        (all, either),
        (file, "jwks_uri is not a URL"),
        (json!({ "key_id": "1", "key": "" }), "the key is empty"),
        (pem("PRIVATE"), "this is a private key"),
        (pem("PUBLIC"), "neither an RSA nor an Ed25519 public key"),
    ] {
        let error = read(&provider("wrong", more), Key::Secret(Vec::new())).unwrap_err();
        assert!(error.contains("wrong.provider"), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = read(&empty, Key::Secret(Vec::new())).unwrap_err();
    assert!(error.contains("neither a *.provider file nor an empty file named allow-anonymous"));
}
