//! Tokens of providers.

use std::{fs, path::Path, sync::Arc};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderValue, header};
use ring::{hmac, rand::SystemRandom, signature as signing};
use serde_json::{Value, json};
use wakeline_feed::{
    login::{Caller, KeySource, KeysUnavailable, Login},
    signature,
    store::{KeyPair, Principal},
};
use wakeline_web::token::Key;

const NOW: u64 = 1_800_000_000;
const SECRET: &str = "a secret that both have";

/// A key set of one key, and one that cannot be had.
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

fn sealed(algorithm: &str, key_id: &str, claims: &Value) -> String {
    let kind = match algorithm {
        "HS384" => hmac::HMAC_SHA384,
        "HS512" => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    let header = json!({ "alg": algorithm, "kid": key_id });
    let message = format!("{}.{}", part(&header), part(claims));
    let key = hmac::Key::new(kind, SECRET.as_bytes());
    let seal = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(seal))
}

fn signed(key: &KeyPair, key_id: &str, claims: &Value) -> String {
    let header = json!({ "alg": "RS256", "kid": key_id });
    let message = format!("{}.{}", part(&header), part(claims));
    let pem: String = key
        .private
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let pair = signing::RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap();
    let mut bytes = vec![0; pair.public().modulus_len()];
    let random = SystemRandom::new();
    pair.sign(
        &signing::RSA_PKCS1_SHA256,
        &random,
        message.as_bytes(),
        &mut bytes,
    )
    .unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn claims() -> Value {
    json!({ "sub": "somebody", "iss": "issuer", "aud": "us", "exp": NOW + 600, "display_name": "Some Body" })
}

fn with(field: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[field] = value;
    claims
}

fn provider(directory: &Path, name: &str, more: Value) {
    let mut written = json!({ "provider": name, "issuer": "issuer", "audience": "us" });
    for (field, value) in more.as_object().unwrap() {
        written[field] = value.clone();
    }
    fs::write(
        directory.join(format!("{name}.provider")),
        written.to_string(),
    )
    .unwrap();
}

fn shared(directory: &Path) {
    provider(
        directory,
        "shared",
        json!({ "key_id": "one", "key": SECRET }),
    );
}

fn login(directory: &Path) -> Login {
    let key = Key::Secret(Vec::new());
    Login::read(directory, Arc::new(Source(key))).unwrap()
}

async fn ask(login: &Login, authorization: Option<&str>) -> Result<Caller, String> {
    let mut headers = HeaderMap::new();
    if let Some(text) = authorization {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(text).unwrap());
    }
    let caller = login.identify_at(&headers, NOW).await;
    caller.map_err(|refused| refused.to_string())
}

fn somebody(provider: &str) -> Result<Caller, String> {
    Ok(Caller {
        principal: Some(Principal {
            provider: provider.to_owned(),
            id: "somebody".to_owned(),
        }),
        display_name: "Some Body".to_owned(),
    })
}

#[tokio::test]
async fn a_shared_secret_lets_in_by_all_its_algorithms() {
    let directory = tempfile::tempdir().unwrap();
    shared(directory.path());
    let login = login(directory.path());
    for algorithm in ["HS256", "HS384", "HS512"] {
        let token = sealed(algorithm, "one", &claims());
        assert_eq!(
            ask(&login, Some(&format!("Bearer {token}"))).await,
            somebody("shared")
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_said() {
    let directory = tempfile::tempdir().unwrap();
    shared(directory.path());
    let login = login(directory.path());
    let good = sealed("HS256", "one", &claims());
    let message = good.rsplit_once('.').unwrap().0;
    let without_id = {
        let message = format!("{}.{}", part(&json!({ "alg": "HS256" })), part(&claims()));
        format!("{message}.AAAA")
    };
    for (token, reason) in [
        ("x".to_owned(), "Invalid token"),
        (message.to_owned(), "Invalid token"),
        (without_id, "Invalid token"),
        (
            sealed("HS256", "one", &with("sub", json!(5))),
            "Invalid subject",
        ),
        (
            sealed("HS256", "one", &with("sub", json!(""))),
            "Invalid subject",
        ),
        (
            sealed("HS256", "one", &with("sub", json!("a\u{0}"))),
            "Invalid subject",
        ),
        (
            sealed("HS256", "one", &with("iss", json!("another"))),
            "Invalid issuer",
        ),
        (
            sealed("HS256", "one", &with("iss", json!(null))),
            "Invalid issuer",
        ),
        (
            sealed("HS256", "one", &with("aud", json!("them"))),
            "Invalid audience",
        ),
        (
            sealed("HS256", "one", &with("aud", json!(["us"]))),
            "Invalid audience",
        ),
        (sealed("HS256", "two", &claims()), "Invalid signature"),
        (sealed("none", "one", &claims()), "Invalid signature"),
        (sealed("RS256", "one", &claims()), "Invalid signature"),
        (format!("{message}.AAAA"), "Invalid signature"),
        (
            sealed("HS256", "one", &with("exp", json!(NOW - 61))),
            "Token expired",
        ),
        (
            sealed("HS256", "one", &with("nbf", json!(NOW + 61))),
            "Token expired",
        ),
    ] {
        let refused = ask(&login, Some(&format!("Bearer {token}"))).await;
        assert_eq!(refused, Err(reason.to_owned()), "{token}");
    }
}

#[tokio::test]
async fn without_a_token_nobody_is_let_in_unless_it_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    shared(directory.path());
    let strict = login(directory.path());
    for given in [None, Some("Basic dTpw"), Some("Bearer"), Some("")] {
        assert_eq!(
            ask(&strict, given).await,
            Err("No token".to_owned()),
            "{given:?}"
        );
    }
    fs::write(directory.path().join("allow-anonymous"), "").unwrap();
    let open = login(directory.path());
    for given in [None, Some("Basic dTpw")] {
        assert_eq!(
            ask(&open, given).await,
            Ok(Caller::anonymous()),
            "{given:?}"
        );
    }
    // A token that is no good is not the same as none.
    assert_eq!(
        ask(&open, Some("Bearer x")).await,
        Err("Invalid token".to_owned())
    );
}

#[tokio::test]
async fn public_keys_let_in_and_are_no_secrets() {
    let key = signature::generate().unwrap();
    let directory = tempfile::tempdir().unwrap();
    provider(
        directory.path(),
        "pem",
        json!({ "key_id": "one", "key": &*key.public }),
    );
    let by_pem = login(directory.path());
    let token = signed(&key, "one", &claims());
    assert_eq!(
        ask(&by_pem, Some(&format!("Bearer {token}"))).await,
        somebody("pem")
    );
    // Sealed with the public key's text, as if that were a secret.
    let message = format!(
        "{}.{}",
        part(&json!({ "alg": "HS256", "kid": "one" })),
        part(&claims())
    );
    let seal = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, key.public.as_bytes()),
        message.as_bytes(),
    );
    let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode(seal));
    let refused = ask(&by_pem, Some(&format!("Bearer {forged}"))).await;
    assert_eq!(refused, Err("Invalid signature".to_owned()));

    let pem: String = key
        .private
        .lines()
        .filter(|line| !line.starts_with("---"))
        .collect();
    let pair = signing::RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap();
    let public = signing::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
    let source = Source(Key::rsa(public.n, public.e).unwrap());
    let directory = tempfile::tempdir().unwrap();
    provider(
        directory.path(),
        "set",
        json!({ "jwks_uri": "https://issuer/keys" }),
    );
    let by_set = Login::read(directory.path(), Arc::new(source)).unwrap();
    let token = signed(&key, "set", &claims());
    assert_eq!(
        ask(&by_set, Some(&format!("Bearer {token}"))).await,
        somebody("set")
    );
    let token = signed(&key, "other", &claims());
    let refused = ask(&by_set, Some(&format!("Bearer {token}"))).await;
    assert_eq!(refused, Err("Invalid signature".to_owned()));
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_not_a_bad_token() {
    let directory = tempfile::tempdir().unwrap();
    provider(
        directory.path(),
        "away",
        json!({ "jwks_uri": "https://away/keys" }),
    );
    let token = sealed("RS256", "set", &claims());
    let refused = ask(&login(directory.path()), Some(&format!("Bearer {token}"))).await;
    assert!(refused.unwrap_err().contains("try again later"));
}

#[test]
fn a_provider_that_cannot_be_one_is_named() {
    for (more, reason) in [
        (json!({}), "give either key_id and key, or jwks_uri"),
        (
            json!({ "key": "x" }),
            "give either key_id and key, or jwks_uri",
        ),
        (
            json!({ "key_id": "1", "key": "x", "jwks_uri": "https://a" }),
            "give either",
        ),
        (
            json!({ "jwks_uri": "file:///etc/passwd" }),
            "jwks_uri is not a URL",
        ),
        (json!({ "key_id": "1", "key": "" }), "the key is empty"),
        (
            json!({ "key_id": "1", "key": "-----BEGIN PRIVATE KEY-----" }),
            "this is a private key",
        ),
        (
            json!({ "key_id": "1", "key": "-----BEGIN PUBLIC KEY-----" }),
            "neither an RSA nor an Ed25519 public key",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        provider(directory.path(), "wrong", more);
        let key = Key::Secret(Vec::new());
        let error = Login::read(directory.path(), Arc::new(Source(key)))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("wrong.provider") && error.contains(reason),
            "{error}"
        );
    }
    let empty = tempfile::tempdir().unwrap();
    let key = Key::Secret(Vec::new());
    let error = Login::read(empty.path(), Arc::new(Source(key)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("neither a *.provider file nor an empty file named allow-anonymous"));
}
