//! Tokens: JWT, signed with HS256 and nothing else.
//!
//! By hand and not by `jsonwebtoken`: with one algorithm and one key there is nothing to choose,
//! and what cannot be chosen cannot be confused.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::hmac;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;
use wakeline_web::Object;

/// For whom the tokens of fastapi-users are.
const AUDIENCE: &str = "fastapi-users:auth";
/// A longer one is none of ours.
const MAX_LENGTH: usize = 4 * 1024;

/// What signs and checks.
pub(super) struct Key {
    key: hmac::Key,
    /// `{"alg":"HS256","typ":"JWT"}`
    header: String,
}

/// What a token says, of what is asked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(super) user: Uuid,
    pub(super) epoch: i32,
    /// Seconds since 1970.
    pub(super) end: u64,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that whoever reads it must know; none is known here.
    crit: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct Body {
    sub: Uuid,
    aud: Audience,
    exp: u64,
    #[serde(default, skip_serializing)]
    nbf: Option<u64>,
    #[serde(default)]
    epoch: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn is_us(&self) -> bool {
        match self {
            Self::One(name) => name == AUDIENCE,
            Self::Many(names) => names.iter().any(|name| name == AUDIENCE),
        }
    }
}

impl Key {
    pub(super) fn new(secret: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            header: BASE64.encode(br#"{"alg":"HS256","typ":"JWT"}"#),
        }
    }

    pub(super) fn sign(&self, claims: Claims) -> String {
        let body = Body {
            sub: claims.user,
            aud: Audience::Many(vec![AUDIENCE.to_owned()]),
            exp: claims.end,
            nbf: None,
            epoch: claims.epoch,
        };
        let body = serde_json::to_vec(&body).expect("claims are plain data");
        let message = format!("{}.{}", self.header, BASE64.encode(body));
        let signature = hmac::sign(&self.key, message.as_bytes());
        format!("{message}.{}", BASE64.encode(signature))
    }

    /// What a token says that this key has signed and that is valid at `now`.
    pub(super) fn read(&self, token: &str, now: u64) -> Option<Claims> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, body) = message.split_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        // Takes the same time wherever the difference is.
        hmac::verify(&self.key, message.as_bytes(), &signature).ok()?;
        let Object(header): Object<Header> = decoded(header)?;
        let Object(body): Object<Body> = decoded(body)?;
        let is_good = header.alg == "HS256"
            && header.crit.is_none()
            && body.aud.is_us()
            && now < body.exp
            && body.nbf.is_none_or(|begin| begin <= now);
        is_good.then_some(Claims {
            user: body.sub,
            epoch: body.epoch,
            end: body.exp,
        })
    }
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

impl Claims {
    /// Whether half of its time is over, so that the holder should have another.
    pub(super) fn is_due(self, lifetime: Duration, now: u64) -> bool {
        self.end.saturating_sub(now) <= lifetime.as_secs() / 2
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;

    fn key() -> Key {
        Key::new(b"a secret of at least 32 characters")
    }

    fn claims() -> Claims {
        Claims {
            user: Uuid::max(),
            epoch: 3,
            end: NOW + 60,
        }
    }

    /// Signed with the right key, whatever it says.
    fn signed(header: &Value, body: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(body));
        let signature = hmac::sign(&key().key, message.as_bytes());
        format!("{message}.{}", BASE64.encode(signature))
    }

    fn good() -> (Value, Value) {
        let body = json!({ "sub": Uuid::max(), "aud": [AUDIENCE], "exp": NOW + 60, "epoch": 3 });
        (json!({ "alg": "HS256", "typ": "JWT" }), body)
    }

    #[test]
    fn what_was_signed_is_read_back_until_it_ends() {
        let token = key().sign(claims());
        assert_eq!(key().read(&token, NOW), Some(claims()));
        assert_eq!(key().read(&token, NOW + 59), Some(claims()));
        assert_eq!(key().read(&token, NOW + 60), None);
    }

    #[test]
    fn a_token_of_fastapi_users_is_taken() {
        // As zndraw-auth 0.2.3 gave it at a login.
        let key_of_both = Key::new(b"a-secret-that-others-have-as-well");
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJmMTllMjk5NC0wZTZjLTQzODUtOTkxZS1mYTAxYjg3MTEyZTYiLCJhdWQiOlsiZmFzdGFwaS11c2VyczphdXRoIl0sImV4cCI6MTc5NDk0OTMyOX0.GTJYz_lGW0sK8oxRYnEQXD3VUjcwHg_op4gxdIb4hCM";
        let user = "f19e2994-0e6c-4385-991e-fa01b87112e6".parse().unwrap();
        let read = key_of_both.read(token, 1_794_949_328);
        assert_eq!(read.map(|claims| claims.user), Some(user));
        assert_eq!(key_of_both.read(token, 1_794_949_329), None);
    }

    #[test]
    fn an_audience_is_a_text_or_a_list_and_the_epoch_may_be_missing() {
        let (header, mut body) = good();
        assert_eq!(key().read(&signed(&header, &body), NOW), Some(claims()));
        body["aud"] = AUDIENCE.into();
        body["iat"] = NOW.into();
        assert_eq!(key().read(&signed(&header, &body), NOW), Some(claims()));
        body.as_object_mut().unwrap().remove("epoch");
        let first = Claims {
            epoch: 0,
            ..claims()
        };
        assert_eq!(key().read(&signed(&header, &body), NOW), Some(first));
    }

    #[test]
    fn what_is_not_ours_is_not_taken() {
        let (header, body) = good();
        let with = |field: &str, value: Value| {
            let mut body = body.clone();
            body[field] = value;
            signed(&header, &body)
        };
        let without = |field: &str| {
            let mut body = body.clone();
            body.as_object_mut().unwrap().remove(field);
            signed(&header, &body)
        };
        let token = signed(&header, &body);
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut other = BASE64.decode(signature).unwrap();
        other[0] ^= 1;
        let tokens = [
            String::new(),
            "..".to_owned(),
            message.to_owned(),
            format!("{message}."),
            format!("{message}.{}", BASE64.encode(other)),
            format!("{message}.{}", &signature[..20]),
            format!("{token}="),
            format!("{token}.{signature}"),
            Key::new(b"another secret").sign(claims()),
            signed(&json!({ "alg": "none" }), &body),
            signed(&json!({ "alg": "HS512" }), &body),
            signed(&json!({ "alg": "hs256" }), &body),
            signed(&json!({ "alg": "HS256", "crit": ["b64"] }), &body),
            signed(&json!({}), &body),
            with("aud", json!("fastapi-users:verify")),
            with("aud", json!(["fastapi-users:reset"])),
            with("aud", json!([])),
            with("aud", json!(null)),
            with("sub", json!("somebody")),
            with("sub", json!(5)),
            with("exp", json!(NOW)),
            with("exp", json!((NOW + 60).to_string())),
            with("exp", json!(-1)),
            with("nbf", json!(NOW + 1)),
            without("sub"),
            without("aud"),
            without("exp"),
            signed(&header, &json!([Uuid::max(), [AUDIENCE], NOW + 60])),
            with("more", json!("x".repeat(MAX_LENGTH))),
        ];
        for token in tokens {
            assert_eq!(key().read(&token, NOW), None, "{token}");
        }
    }

    #[test]
    fn another_one_is_due_when_half_of_the_time_is_over() {
        let lifetime = Duration::from_secs(60);
        assert!(!claims().is_due(lifetime, NOW));
        assert!(!claims().is_due(lifetime, NOW + 29));
        assert!(claims().is_due(lifetime, NOW + 30));
    }
}
