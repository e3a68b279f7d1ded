//! Signed tokens. The first line is the text after `Authorization: `, the rest are claims that are
//! signed here, so that what is read behind the signature is reached.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, header};
use wakeline_server::{config, fuzzing::Login};
use wakeline_web::token::{Key, Token, sign};

const SECRET: &str = "a secret of thirty-two characters";
const NOW: u64 = 1_800_000_000;

static LOGIN: LazyLock<Login> = LazyLock::new(|| {
    let settings = [
        ("auth.tokens", "a-token-that-is-fixed"),
        ("auth.jwt.secret", SECRET),
        ("auth.jwt.audience", "wakeline"),
        ("auth.jwt.role_claim", "realm.role"),
        ("auth.jwt.roles_claim", "realm.roles"),
    ];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let config = config::load(None, [], settings.to_vec()).expect("a configuration");
    Login::new(&config).expect("a login")
});

pub fn run(input: &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == b'\n');
    let given = parts.next().unwrap_or_default();
    identify(given);
    if let Ok(text) = str::from_utf8(given) {
        parse(text);
    }
    let claims = parts
        .next()
        .and_then(|claims| serde_json::from_slice(claims).ok());
    let claims: Option<serde_json::Map<String, serde_json::Value>> = claims;
    if let Some(claims) = claims {
        let token = sign(SECRET.as_bytes(), &claims);
        let read = parse(&token).expect("a token that was signed here");
        assert!(read, "it is signed");
        identify(format!("Bearer {token}").as_bytes());
    }
}

fn identify(authorization: &[u8]) {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(authorization) {
        headers.insert(header::AUTHORIZATION, value);
    }
    if let Err(refused) = LOGIN.identify(&headers) {
        assert!(!refused.is_empty());
    }
}

/// Whether it is signed by the secret; `None` if it is no token.
fn parse(text: &str) -> Option<bool> {
    let token = Token::parse(text).ok()?;
    let _ = token.check_time(NOW, 30);
    let _ = token.check_time(0, u64::MAX);
    for name in token.claims().keys() {
        let _ = (token.claim(name), token.names(name, "wakeline"));
    }
    let other = [
        Key::Ed25519(vec![7; 32]),
        Key::Rsa {
            n: vec![0xff; 256],
            e: vec![1, 0, 1],
        },
    ];
    assert!(!other.iter().any(|key| token.is_signed_by(key)));
    Some(token.is_signed_by(&Key::Secret(SECRET.as_bytes().to_vec())))
}
