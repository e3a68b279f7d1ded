//! Authentication and roles: tokens of a real issuer, keys from every source.

mod keys;
mod roles;

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use wakeline_testbed::issuer::{SigningKey, unsigned};

use crate::{
    fixture::{Fixture, on_both_stores},
    server::{Serve, Server, wakeline},
    wire::{Answer, get, post, request, with_header},
};

const SECRET: &str = "a secret of thirty-two characters";
const TOKEN: &str = "correct-horse-battery";

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock after 1970").as_secs()
}

/// Claims that are valid for an hour, with `changes` applied.
fn claims(change: &Value) -> Value {
    let mut claims = json!({"sub": "someone", "role": "admin", "exp": now() + 3600});
    for (name, value) in change.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims
}

fn as_admin(key: &SigningKey) -> String {
    key.sign(&claims(&json!({})))
}

/// With no login but this token.
async fn call(server: &Server, request: Request<Bytes>, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    server
        .call(with_header(request, "authorization", &bearer))
        .await
}

/// Routes of jobs and providers have users of their own, and zndraw-joblib's shapes.
pub(crate) fn has_own_users(path: &str) -> bool {
    let beginnings = ["/v1/joblib", "/v1/auth", "/v1/rooms", "/v1/problems"];
    beginnings
        .iter()
        .any(|beginning| path.starts_with(beginning))
}

/// Routes of jobs and providers, and routes of feeds, whose errors are Jinaga's: plain text.
pub(crate) fn has_own_error_shapes(path: &str) -> bool {
    has_own_users(path) || path.starts_with("/jinaga")
}

/// The status of a harmless request with this token.
async fn status(server: &Server, token: &str) -> u16 {
    call(server, get("/v1/waits"), token).await.status
}

on_both_stores! {
    a_message_has_the_subject_of_its_producers_token,
}

async fn a_message_has_the_subject_of_its_producers_token(fixture: Fixture) {
    let server = fixture
        .serve()
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .env("WAKELINE_AUTH_TOKENS", TOKEN)
        .start()
        .await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    let producer = |sub: Value| key.sign(&claims(&json!({"sub": sub, "role": "write-only"})));
    let pushers = [
        (producer(json!("sensor 7")), json!("sensor 7")),
        (producer(Value::Null), Value::Null),
        (TOKEN.to_owned(), Value::Null),
    ];
    for (token, stamp) in pushers {
        let forged = json!({"queue": "q", "payload": 1, "producerSub": "forged"});
        let push = post("/api/v1/push", json!({"items": [forged]}).to_string());
        let refused = call(&server, push, &token).await;
        assert_eq!(refused.problem()["field"], "items[0].producerSub");
        let item = json!({"queue": "q", "payload": 1});
        let push = post("/api/v1/push", json!({"items": [item]}).to_string());
        let pushed = call(&server, push, &token).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text());
        let pop = get("/api/v1/pop/queue/q?autoAck=true");
        let popped = call(&server, pop, TOKEN).await;
        assert_eq!(popped.json()["messages"][0]["producerSub"], stamp);
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_with_the_reason() {
    let server = Fixture::sqlite()
        .serve()
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .flags(&["--auth-jwt-issuer", "https://issuer"])
        .flags(&["--auth-jwt-audience", "wakeline"])
        .start()
        .await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    let right = claims(&json!({"iss": "https://issuer", "aud": "wakeline"}));
    let with = |name: &str, value: Value| {
        let mut claims = right.clone();
        claims[name] = value;
        key.sign(&claims)
    };
    let stranger = SigningKey::hs256("s", b"another secret of that many characters");
    let mut texts = Vec::new();
    for token in [
        with("exp", json!(now() - 3600)),
        with("nbf", json!(now() + 3600)),
        with("aud", json!("others")),
        with("iss", json!("https://others")),
        stranger.sign(&right),
        unsigned(&json!({"alg": "none", "typ": "JWT"}), &right),
        "something".to_owned(),
    ] {
        let refused = call(&server, get("/v1/waits"), &token).await;
        assert_eq!(refused.status, 401, "{token}");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
        let problem = refused.problem();
        assert_eq!(problem["type"], "urn:wakeline:unauthorized");
        texts.push(problem["error"].as_str().unwrap().to_owned());
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    Authorization: the token has expired
    Authorization: the token is not valid yet
    Authorization: the token is for another audience
    Authorization: the token is from another issuer
    Authorization: the token is not signed by a key that this server trusts
    Authorization: the token's algorithm is not one that is let in
    Authorization: the token is neither known nor a JWT signed with HS256, RS256 or EdDSA
    ");
    let missing = server.get("/v1/waits").await;
    assert_eq!(missing.status, 401);
    assert_eq!(missing.problem()["error"], "Authentication required");
    // Without a scheme, as Queen's clients may send it.
    let bare = with_header(get("/v1/waits"), "authorization", &key.sign(&right));
    assert_eq!(server.call(bare).await.status, 200);
}

#[tokio::test]
async fn skip_paths_sets_which_paths_need_no_token() {
    let fixture = Fixture::sqlite();
    let serve = || fixture.serve().env("WAKELINE_AUTH_JWT_SECRET", SECRET);
    let server = serve().start().await;
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/", 404),
        ("/health", 200),
        ("/v1/waits", 401),
        ("/openapi.json", 401),
        ("/nowhere", 401),
    ] {
        assert_eq!(server.get(path).await.status, status, "{path}");
    }
    drop(server);
    let flags = ["--auth-jwt-skip-paths", "/openapi.json"];
    let server = serve().flags(&flags).start().await;
    for (path, status) in [("/livez", 200), ("/openapi.json", 200), ("/metrics", 401)] {
        assert_eq!(server.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn the_api_document_says_which_routes_need_a_token() {
    let fixture = Fixture::sqlite();
    let serve = fixture.serve().env("WAKELINE_AUTH_JWT_SECRET", SECRET);
    let flags = ["--auth-jwt-skip-paths", "/openapi.json,/health"];
    let server = serve.flags(&flags).start().await;
    let document = server.get("/openapi.json").await.json();
    let scheme = &document["components"]["securitySchemes"]["bearer"];
    assert_eq!(
        (&scheme["type"], &scheme["scheme"], &scheme["bearerFormat"]),
        (&json!("http"), &json!("bearer"), &json!("JWT"))
    );
    let mut open = Vec::new();
    let paths = document["paths"].as_object().unwrap().iter();
    for (path, operations) in paths.filter(|(path, _)| !has_own_users(path)) {
        for (method, operation) in operations.as_object().unwrap() {
            let is_open = operation["security"].is_null();
            for status in ["401", "403"] {
                let response = &operation["responses"][status];
                assert_eq!(response.is_null(), is_open, "{method} {path}");
            }
            let url = path.replace(['{', '}'], "");
            let call = request(&method.to_uppercase(), &url, Bytes::new());
            let refused = server.call(call).await.status == 401;
            assert_eq!(refused, !is_open, "{method} {path}");
            if is_open {
                open.push(path.as_str());
            } else {
                assert_eq!(operation["security"], json!([{"bearer": []}]));
            }
        }
    }
    assert_eq!(open, ["/health", "/livez", "/readyz"]);
    drop(server);
    let server = fixture.serve().start().await;
    let document = server.get("/openapi.json").await.json();
    assert!(document["components"]["securitySchemes"].is_null());
    assert!(document["paths"]["/v1/waits"]["get"]["security"].is_null());
}

#[tokio::test]
async fn a_signed_token_is_a_user_of_the_jobs_door_with_its_role() {
    let fixture = Fixture::sqlite();
    let server = fixture
        .serve()
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .start()
        .await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    let job = json!({"category": "analysis", "name": "Mean"}).to_string();
    let put = |room: &str| {
        let path = format!("/v1/joblib/rooms/{room}/jobs");
        request("PUT", &path, Bytes::from(job.clone()))
    };
    let mut lines = Vec::new();
    for role in ["admin", "read-write", "read-only", "write-only"] {
        let token = key.sign(&claims(&json!({"sub": role, "role": role})));
        let mut statuses = Vec::new();
        for request in [get("/v1/joblib/workers"), put("room"), put("@global")] {
            statuses.push(call(&server, request, &token).await.status.to_string());
        }
        lines.push(format!("{role}: {}", statuses.join(", ")));
    }
    // Listing, registering for a room, registering for everybody.
    insta::assert_snapshot!(lines.join("\n"), @"
    admin: 200, 201, 201
    read-write: 200, 200, 403
    read-only: 200, 403, 403
    write-only: 403, 403, 403
    ");
    let nobody = server.get("/v1/joblib/workers").await;
    assert_eq!(
        (nobody.status, nobody.text()),
        (401, r#"{"detail":"Unauthorized"}"#.to_owned())
    );
}

#[tokio::test]
async fn a_key_for_signed_tokens_allows_any_listen_address() {
    let fixture = Fixture::sqlite();
    let server = fixture
        .serve()
        .flags(&["--listen", "0.0.0.0:0"])
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .start()
        .await;
    assert!(!server.output().contains("WARNING"), "{}", server.output());
    assert!(!server.output().contains(SECRET));
    let expected = "Authorization: Bearer <a signed token (auth.jwt)>";
    assert!(server.output().contains(expected), "{}", server.output());
}

#[tokio::test]
async fn all_contradictions_between_settings_are_reported_at_once() {
    let log = Serve::new(&["--auth-jwt-algorithm", "RS256"])
        .flags(&["--auth-jwt-role-read-only", "reader"])
        .flags(&["--auth-jwt-role-write-only", "reader"])
        .flags(&["--auth-jwt-clock-skew", "30"])
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .refused()
        .await;
    assert!(!log.contains(SECRET), "{log}");
    insta::assert_snapshot!(log, @r#"
    wakeline: 3 mistakes in the configuration:
      - auth.jwt.clock_skew (flag --auth-jwt-clock-skew): found "30", expected a duration such as 30s or 500ms, from 0s to 10m
      - auth.jwt.algorithm (flag --auth-jwt-algorithm), auth.jwt.secret (environment WAKELINE_AUTH_JWT_SECRET), auth.jwt.public_key (default), auth.jwt.jwks_url (default): RS256 and EdDSA are verified with a public key, not with a secret: leave auth.jwt.secret empty, or set auth.jwt.algorithm to auto
      - auth.jwt.role_admin (default), auth.jwt.role_read_write (default), auth.jwt.role_read_only (flag --auth-jwt-role-read-only), auth.jwt.role_write_only (flag --auth-jwt-role-write-only): two roles are called "reader": each needs a name of its own
    "#);
}

#[tokio::test]
async fn an_unreadable_public_key_file_is_named() {
    let fixture = Fixture::sqlite();
    let missing = fixture.data().join("none.pem").display().to_string();
    let log = fixture
        .serve()
        .flags(&["--auth-jwt-public-key", &missing])
        .refused()
        .await;
    insta::assert_snapshot!(log.replace(&missing, "<path>"), @"wakeline: auth.jwt.public_key: cannot read <path>: No such file or directory (os error 2)");
}

#[test]
fn the_printed_configuration_hides_the_secret() {
    let output = wakeline(&["serve", "--print-config"])
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[auth.jwt]\nsecret = \"***\""), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}
