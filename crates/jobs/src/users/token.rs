//! The users' tokens: JWT, signed with HS256 and nothing else.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;
use wakeline_web::token::{self as web, Token};

/// The audience of fastapi-users' tokens.
const AUDIENCE: &str = "fastapi-users:auth";
/// Longer tokens are refused.
const MAX_LENGTH: usize = 4 * 1024;

/// The secret that signs and verifies.
pub(super) struct TokenKey(Vec<u8>);

/// The claims that this door reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(super) user: Uuid,
    pub(super) epoch: i32,
    /// Seconds since 1970.
    pub(super) end: u64,
}

#[derive(Deserialize)]
struct Body {
    sub: Uuid,
    exp: u64,
    #[serde(default)]
    epoch: i32,
}

impl TokenKey {
    pub(super) fn new(secret: &[u8]) -> Self {
        Self(secret.to_vec())
    }

    pub(super) fn sign(&self, claims: Claims) -> String {
        let body = json!({
            "sub": claims.user, "aud": [AUDIENCE], "exp": claims.end, "epoch": claims.epoch,
        });
        web::sign(&self.0, &body)
    }

    /// The claims of a token that this key has signed and that is valid at `now`.
    pub(super) fn read(&self, token: &str, now: u64) -> Option<Claims> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let token = Token::parse(token).ok()?;
        let is_good = token.algorithm() == "HS256"
            && token.is_signed_by(&web::Key::Secret(self.0.clone()))
            && token.names("aud", AUDIENCE)
            && token.check_time(now, 0).is_ok();
        let body = is_good.then(|| Body::deserialize(token.claims()));
        let Body { sub, exp, epoch } = body?.ok()?;
        Some(Claims {
            user: sub,
            epoch,
            end: exp,
        })
    }
}

impl fmt::Debug for TokenKey {
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
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    use ring::hmac;
    use serde_json::Value;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    const SECRET: &[u8] = b"a secret of at least 32 characters";

    fn key() -> TokenKey {
        TokenKey::new(SECRET)
    }

    fn claims() -> Claims {
        Claims {
            user: Uuid::max(),
            epoch: 3,
            end: NOW + 60,
        }
    }

    /// Signed with the right key; the claims may be wrong.
    fn signed(header: &Value, body: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(body));
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        let signature = hmac::sign(&key, message.as_bytes());
        format!("{message}.{}", BASE64.encode(signature))
    }

    fn good() -> (Value, Value) {
        let body = json!({ "sub": Uuid::max(), "aud": [AUDIENCE], "exp": NOW + 60, "epoch": 3 });
        (json!({ "alg": "HS256", "typ": "JWT" }), body)
    }

    #[test]
    fn a_signed_token_is_valid_until_it_expires() {
        let token = key().sign(claims());
        assert_eq!(key().read(&token, NOW), Some(claims()));
        assert_eq!(key().read(&token, NOW + 59), Some(claims()));
        assert_eq!(key().read(&token, NOW + 60), None);
    }

    #[test]
    fn a_token_of_fastapi_users_is_accepted() {
        // As zndraw-auth 0.2.3 gave it at a login.
        let key_of_both = TokenKey::new(b"a-secret-that-others-have-as-well");
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
    fn a_token_with_another_signature_algorithm_or_claim_is_refused() {
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
            TokenKey::new(b"another secret").sign(claims()),
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
    fn a_new_token_is_due_after_half_of_the_lifetime() {
        let lifetime = Duration::from_secs(60);
        assert!(!claims().is_due(lifetime, NOW));
        assert!(!claims().is_due(lifetime, NOW + 29));
        assert!(claims().is_due(lifetime, NOW + 30));
    }
}
