use axum::body::Body;
use futures_util::future::join_all;
use http::{StatusCode, header};
use serde_json::{Value, json};
use wakeline_jobs::users::{MAX_PASSWORD, Settings};

use crate::{
    database::Database,
    test_door::{DevDoor, GuardedDoor, OpenDoor, PASSWORD, TestDoor, closed, guarded},
};

pub(crate) async fn a_guest_has_a_token_and_no_password(door: OpenDoor) {
    let guest = door.ask("POST /v1/auth/guest", None).await;
    assert_eq!(guest.status, StatusCode::OK);
    assert_eq!(guest.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(guest.text("token_type"), "bearer");
    assert_eq!(guest.body.as_object().unwrap().len(), 3);
    let email = guest.text("email");
    let (name, domain) = email.split_once('@').unwrap();
    assert_eq!(domain, "guest.user");
    assert!(name.len() == 8 && name.chars().all(|c| c.is_ascii_hexdigit()));

    let token = guest.text("access_token");
    let me = door.ask("GET /v1/auth/users/me", Some(token)).await;
    let expected = json!({
        "id": me.id(), "email": email,
        "is_active": true, "is_superuser": false, "is_verified": false,
    });
    assert_eq!((me.status, &me.body), (StatusCode::OK, &expected));
    for password in ["", "None", "null"] {
        let answer = door.login(email, password).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{password}");
    }
    assert_ne!(door.guest().await, token);
}

pub(crate) async fn a_registered_user_logs_in(door: OpenDoor) {
    let body = json!({ "email": "Ada@Example.com", "password": PASSWORD });
    let made = door.tell("POST /v1/auth/register", None, body).await;
    let expected = json!({
        "id": made.id(), "email": "ada@example.com",
        "is_active": true, "is_superuser": false, "is_verified": false,
    });
    assert_eq!((made.status, &made.body), (StatusCode::CREATED, &expected));

    for email in ["ada@example.com", "ADA@example.com", " ada@example.com"] {
        let login = door.login(email, PASSWORD).await;
        assert_eq!(login.status, StatusCode::OK, "{email}");
        assert_eq!(login.headers[header::CACHE_CONTROL], "no-store");
        assert_eq!(login.text("token_type"), "bearer");
        assert_eq!(login.body.as_object().unwrap().len(), 2);
        let token = login.text("access_token");
        let me = door.ask("GET /v1/auth/users/me", Some(token)).await;
        assert_eq!(me.body, expected);
    }
}

pub(crate) async fn an_email_is_registered_once_whatever_its_case(door: OpenDoor) {
    door.register("ada@example.com").await;
    let body = json!({ "email": "ADA@Example.com", "password": PASSWORD });
    let again = door.tell("POST /v1/auth/register", None, body).await;
    insta::assert_snapshot!(again.refusal(), @r#"400 {"detail":"REGISTER_USER_ALREADY_EXISTS"}"#);
}

pub(crate) async fn a_registration_cannot_set_rights(door: OpenDoor) {
    let body = json!({
        "email": "ada@example.com", "password": PASSWORD,
        "is_superuser": true, "is_verified": true, "is_active": false,
        "id": "00000000-0000-0000-0000-000000000000",
    });
    let made = door.tell("POST /v1/auth/register", None, body).await;
    assert!(!made.id().is_nil());
    let flags = ["is_active", "is_superuser", "is_verified"].map(|flag| &made.body[flag]);
    assert_eq!(flags, [true, false, false]);
}

pub(crate) async fn a_wrong_password_and_an_unknown_email_look_the_same(door: OpenDoor) {
    door.register("ada@example.com").await;
    let long = "x".repeat(MAX_PASSWORD + 1);
    for (email, password) in [
        ("ada@example.com", "another horse"),
        ("ada@example.com", ""),
        ("ada@example.com", &long),
        ("bob@example.com", PASSWORD),
        ("bob", PASSWORD),
        ("ada%00@example.com", PASSWORD),
    ] {
        let answer = door.login(email, password).await;
        let refusal = r#"400 {"detail":"LOGIN_BAD_CREDENTIALS"}"#;
        assert_eq!(answer.refusal(), refusal, "{email}");
    }
}

pub(crate) async fn an_inactive_user_cannot_log_in(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let off = json!({ "is_active": false });
    let path = format!("PATCH /v1/auth/users/{ada}");
    assert_eq!(
        door.tell(&path, Some(&admin), off).await.status,
        StatusCode::OK
    );
    let answer = door.login("ada@example.com", PASSWORD).await;
    assert_eq!(
        answer.refusal(),
        r#"400 {"detail":"LOGIN_BAD_CREDENTIALS"}"#
    );
}

pub(crate) async fn invalid_fields_of_a_registration_are_named(door: OpenDoor) {
    let long = "x".repeat(MAX_PASSWORD + 1);
    let bodies = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        json!({ "email": 5, "password": null }).to_string(),
        json!({ "email": "ada", "password": PASSWORD }).to_string(),
        json!({ "email": "a@wakeline.localhost", "password": PASSWORD }).to_string(),
        json!({ "email": "ada@example.com", "password": "seven c" }).to_string(),
        json!({ "email": "ada@example.com", "password": long }).to_string(),
    ];
    let mut refusals = Vec::new();
    for body in bodies {
        let body = Body::from(body);
        refusals.push(door.send("POST /v1/auth/register", None, body).await);
    }
    for form in ["", "username=ada%40example.com", "username=%ff&password=x"] {
        let body = Body::from(form);
        refusals.push(door.send("POST /v1/auth/jwt/login", None, body).await);
    }
    let refusals: Vec<_> = refusals
        .iter()
        .map(super::test_door::Answer::refusal)
        .collect();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    422 {"detail":[{"input":null,"loc":["body"],"msg":"Field required","type":"missing"}]}
    422 {"detail":[{"ctx":{"error":"EOF while parsing an object at line 1 column 1"},"input":{},"loc":["body",1],"msg":"JSON decode error","type":"json_invalid"}]}
    422 {"detail":[{"input":null,"loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","type":"model_attributes_type"}]}
    422 {"detail":[{"input":null,"loc":["body","email"],"msg":"Field required","type":"missing"},{"input":null,"loc":["body","password"],"msg":"Field required","type":"missing"}]}
    422 {"detail":[{"input":null,"loc":["body","email"],"msg":"Input should be a valid string","type":"string_type"},{"input":null,"loc":["body","password"],"msg":"Input should be a valid string","type":"string_type"}]}
    422 {"detail":[{"ctx":{"reason":"An email address must have an @-sign."},"input":"ada","loc":["body","email"],"msg":"value is not a valid email address: An email address must have an @-sign.","type":"value_error"}]}
    422 {"detail":[{"ctx":{"reason":"Addresses of this domain are given by the server itself."},"input":"a@wakeline.localhost","loc":["body","email"],"msg":"value is not a valid email address: Addresses of this domain are given by the server itself.","type":"value_error"}]}
    422 {"detail":[{"ctx":{"min_length":8},"input":null,"loc":["body","password"],"msg":"String should have at least 8 characters","type":"string_too_short"}]}
    422 {"detail":[{"ctx":{"max_length":1024},"input":null,"loc":["body","password"],"msg":"String should have at most 1024 bytes","type":"string_too_long"}]}
    422 {"detail":[{"input":null,"loc":["body","username"],"msg":"Field required","type":"missing"},{"input":null,"loc":["body","password"],"msg":"Field required","type":"missing"}]}
    422 {"detail":[{"input":null,"loc":["body","password"],"msg":"Field required","type":"missing"}]}
    422 {"detail":[{"input":null,"loc":["body"],"msg":"username: the value is not UTF-8","type":"string_unicode"}]}
    "#);
}

pub(crate) async fn guests_and_registration_are_refused_when_they_are_off(database: Database) {
    let door = TestDoor::new(&database, closed()).await;
    let guest = door.ask("POST /v1/auth/guest", None).await;
    insta::assert_snapshot!(guest.refusal(), @r#"403 {"detail":"Guests are not let in here (jobs.guests); log in instead","status":403,"title":"Forbidden","type":"/v1/problems/forbidden"}"#);
    let body = json!({ "email": "ada@example.com", "password": PASSWORD });
    let register = door.tell("POST /v1/auth/register", None, body).await;
    insta::assert_snapshot!(register.refusal(), @r#"403 {"detail":"Nobody registers here (jobs.registration); a superuser may do it for you","status":403,"title":"Forbidden","type":"/v1/problems/forbidden"}"#);
    let me = door.ask("GET /v1/auth/users/me", None).await;
    insta::assert_snapshot!(me.refusal(), @r#"401 {"detail":"Unauthorized"}"#);
}

pub(crate) async fn a_superuser_registers_users_when_registration_is_off(database: Database) {
    let settings = Settings {
        registration: false,
        ..guarded()
    };
    let door = TestDoor::new(&database, settings).await;
    let admin = door.token("admin@example.com").await;
    let guest = door.guest().await;
    let body = json!({ "email": "ada@example.com", "password": PASSWORD });
    for (token, status) in [
        (None, StatusCode::FORBIDDEN),
        (Some("x.y.z"), StatusCode::FORBIDDEN),
        (Some(guest.as_str()), StatusCode::FORBIDDEN),
        (Some(admin.as_str()), StatusCode::CREATED),
    ] {
        let answer = door.tell("POST /v1/auth/register", token, body.clone());
        assert_eq!(answer.await.status, status, "{token:?}");
    }
    let ada = door.token("ada@example.com").await;
    let me = door.ask("GET /v1/auth/users/me", Some(&ada)).await;
    assert_eq!(me.body["is_superuser"], false);
}

pub(crate) async fn in_dev_mode_every_caller_is_a_superuser(door: DevDoor) {
    door.register("ada@example.com").await;
    for token in [door.guest().await, door.token("ada@example.com").await] {
        let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
        assert_eq!(me.body["is_superuser"], true);
    }
}

pub(crate) async fn password_checks_past_the_limit_are_refused(door: OpenDoor) {
    door.register("ada@example.com").await;
    let guesses = (0..200).map(|n| {
        // Each guess at an account of its own: guesses at one account would wait for each other.
        let (door, email) = (door.clone(), format!("{n}@example.com"));
        async move { door.login(&email, &format!("guess {n}")).await }
    });
    let answers = join_all(guesses).await;
    let with = |status: StatusCode| answers.iter().filter(move |one| one.status == status);
    let refused = with(StatusCode::SERVICE_UNAVAILABLE).count();
    assert!(refused > 0, "all guesses were checked at once");
    assert_eq!(with(StatusCode::BAD_REQUEST).count() + refused, 200);
    let busy = with(StatusCode::SERVICE_UNAVAILABLE).next().unwrap();
    assert_eq!(busy.headers[header::RETRY_AFTER], "1");
    assert_eq!(busy.text("type"), "urn:wakeline:overloaded");
    // After them logins succeed again.
    door.token("ada@example.com").await;
}

pub(crate) async fn a_logout_needs_a_token(door: OpenDoor) {
    let token = door.guest().await;
    let out = door.ask("POST /v1/auth/jwt/logout", Some(&token)).await;
    assert_eq!(
        (out.status, out.body),
        (StatusCode::NO_CONTENT, Value::Null)
    );
    let nobody = door.ask("POST /v1/auth/jwt/logout", None).await;
    assert_eq!(nobody.refusal(), r#"401 {"detail":"Unauthorized"}"#);
}
