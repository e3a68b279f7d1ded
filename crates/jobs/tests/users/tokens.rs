use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use http::{StatusCode, header};
use ring::hmac;
use serde_json::{Value, json};
use uuid::Uuid;
use wakeline_jobs::users::Settings;

use crate::test_door::{SecretDoor, open};

const SECRET: &str = "a secret that others have as well";

pub(crate) fn known_secret() -> Settings {
    Settings {
        secret: Some(SECRET.to_owned()),
        ..open()
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// The token that another program with the secret would sign.
pub(crate) fn signed(header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", BASE64.encode(signature))
}

/// A token of the user that is valid for `seconds` more.
pub(crate) fn token_of(user: Uuid, seconds: u64) -> String {
    let claims = json!({ "sub": user, "aud": ["fastapi-users:auth"], "exp": now() + seconds });
    signed(&json!({ "alg": "HS256", "typ": "JWT" }), &claims)
}

pub(crate) async fn a_token_of_fastapi_users_is_accepted(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let mut claims = json!({ "sub": ada, "aud": ["fastapi-users:auth"], "exp": now() + 600 });
    let header = json!({ "alg": "HS256", "typ": "JWT" });
    for audience in [json!(["fastapi-users:auth"]), json!("fastapi-users:auth")] {
        claims["aud"] = audience;
        let token = signed(&header, &claims);
        let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
        assert_eq!((me.status, me.id()), (StatusCode::OK, ada));
    }
    // And FastAPI Users accepts our tokens.
    let token = door.token("ada@example.com").await;
    let parts: Vec<_> = token.split('.').collect();
    let part =
        |n: usize| -> Value { serde_json::from_slice(&BASE64.decode(parts[n]).unwrap()).unwrap() };
    assert_eq!(part(0), header);
    assert_eq!(part(1)["sub"], ada.to_string());
    assert_eq!(part(1)["aud"], json!(["fastapi-users:auth"]));
    let left = part(1)["exp"].as_u64().unwrap() - now();
    assert!((3_500..=3_600).contains(&left), "{left}");
}

pub(crate) async fn a_forged_token_is_refused(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let good = json!({ "sub": ada, "aud": ["fastapi-users:auth"], "exp": now() + 600 });
    let header = json!({ "alg": "HS256", "typ": "JWT" });
    let with = |field: &str, value: Value| {
        let mut claims = good.clone();
        claims[field] = value;
        signed(&header, &claims)
    };
    let token = signed(&header, &good);
    let (message, signature) = token.rsplit_once('.').unwrap();
    let other = hmac::Key::new(hmac::HMAC_SHA256, b"another secret");
    let foreign = hmac::sign(&other, message.as_bytes());
    let other = door.register("bob@example.com").await;
    let mut swapped = good.clone();
    swapped["sub"] = json!(other);
    let tokens = [
        "x".to_owned(),
        format!("{message}."),
        format!("{message}.{}", BASE64.encode(foreign)),
        format!("{}.{signature}", unsigned(&header, &swapped)),
        format!("{}.", unsigned(&json!({ "alg": "none" }), &good)),
        signed(&json!({ "alg": "none" }), &good),
        signed(&json!({ "alg": "RS256" }), &good),
        with("aud", json!("fastapi-users:reset")),
        with("exp", json!(now() - 1)),
        with("sub", json!("ada@example.com")),
        with("epoch", json!(1)),
    ];
    assert_eq!(
        door.ask("GET /caller", Some(&token)).await.status,
        StatusCode::OK
    );
    for token in tokens {
        let answer = door.ask("GET /caller", Some(&token)).await;
        assert_eq!(
            answer.refusal(),
            r#"401 {"detail":"Unauthorized"}"#,
            "{token}"
        );
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    }
}

pub(crate) async fn a_token_of_an_unknown_user_is_refused(door: SecretDoor) {
    let token = token_of(Uuid::new_v4(), 600);
    let answer = door.ask("GET /caller", Some(&token)).await;
    assert_eq!(answer.refusal(), r#"401 {"detail":"Unauthorized"}"#);
}
