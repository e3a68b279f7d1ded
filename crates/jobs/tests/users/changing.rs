use http::StatusCode;
use serde_json::json;

use crate::test_door::{GuardedDoor, OpenDoor, PASSWORD};

const ME: &str = "PATCH /v1/auth/users/me";

pub(crate) async fn a_user_changes_its_own_email_and_password(door: OpenDoor) {
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    let body = json!({ "email": "Countess@Example.com", "password": "another horse" });
    let changed = door.tell(ME, Some(&token), body).await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(changed.id(), ada);
    assert_eq!(changed.text("email"), "countess@example.com");
    let login = async |email, password| door.login(email, password).await.status;
    assert_eq!(
        login("countess@example.com", "another horse").await,
        StatusCode::OK
    );
    let bad = StatusCode::BAD_REQUEST;
    assert_eq!(login("countess@example.com", PASSWORD).await, bad);
    assert_eq!(login("ada@example.com", "another horse").await, bad);
}

pub(crate) async fn a_user_cannot_change_its_own_rights(door: OpenDoor) {
    let token = door.guest().await;
    let body = json!({ "is_superuser": true, "is_verified": true, "is_active": false });
    let changed = door.tell(ME, Some(&token), body).await;
    assert_eq!(changed.status, StatusCode::OK);
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.body, changed.body);
    let flags = ["is_active", "is_superuser", "is_verified"].map(|flag| &me.body[flag]);
    assert_eq!(flags, [true, false, false]);
    let nobody = door.tell(ME, None, json!({})).await;
    assert_eq!(nobody.refusal(), r#"401 {"detail":"Unauthorized"}"#);
}

pub(crate) async fn a_new_password_invalidates_the_tokens(door: OpenDoor) {
    door.register("ada@example.com").await;
    let old = door.token("ada@example.com").await;
    let body = json!({ "password": "another horse" });
    assert_eq!(door.tell(ME, Some(&old), body).await.status, StatusCode::OK);
    let me = door.ask("GET /v1/auth/users/me", Some(&old)).await;
    assert_eq!(me.refusal(), r#"401 {"detail":"Unauthorized"}"#);
    let login = door.login("ada@example.com", "another horse").await;
    let new = login.text("access_token");
    let me = door.ask("GET /v1/auth/users/me", Some(new)).await;
    assert_eq!(me.status, StatusCode::OK);
    // A new email invalidates no token.
    let body = json!({ "email": "countess@example.com" });
    door.tell(ME, Some(new), body).await;
    let me = door.ask("GET /v1/auth/users/me", Some(new)).await;
    assert_eq!(me.text("email"), "countess@example.com");
}

pub(crate) async fn an_email_of_another_user_is_refused(door: OpenDoor) {
    door.register("ada@example.com").await;
    door.register("bob@example.com").await;
    let token = door.token("ada@example.com").await;
    let taken = json!({ "email": "Bob@example.com" });
    let taken = door.tell(ME, Some(&token), taken).await;
    insta::assert_snapshot!(taken.refusal(), @r#"400 {"detail":"UPDATE_USER_EMAIL_ALREADY_EXISTS"}"#);
    let own = json!({ "email": "Ada@example.com" });
    let own = door.tell(ME, Some(&token), own).await;
    assert_eq!(own.status, StatusCode::OK);
    for invalid in [
        json!({ "email": "bob" }),
        json!({ "password": "short" }),
        json!({ "email": [] }),
        json!({ "is_active": "perhaps" }),
    ] {
        let answer = door.tell(ME, Some(&token), invalid.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{invalid}");
        let field = invalid.as_object().unwrap().keys().next().unwrap();
        assert_eq!(answer.body["detail"][0]["loc"], json!(["body", field]));
    }
}

pub(crate) async fn a_new_email_is_not_verified(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let path = format!("PATCH /v1/auth/users/{ada}");
    let verified = async |body| {
        let changed = door.tell(&path, Some(&admin), body).await;
        changed.body["is_verified"].as_bool().unwrap()
    };
    assert!(verified(json!({ "is_verified": true })).await);
    assert!(verified(json!({ "email": "ADA@example.com" })).await);
    assert!(!verified(json!({ "email": "countess@example.com" })).await);
    assert!(verified(json!({ "email": "ada@example.com", "is_verified": true })).await);
}

pub(crate) async fn a_superuser_reads_and_changes_every_user(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let path = format!("/v1/auth/users/{ada}");
    let seen = door.ask(&format!("GET {path}"), Some(&admin)).await;
    assert_eq!((seen.status, seen.id()), (StatusCode::OK, ada));
    let body = json!({ "is_superuser": true, "password": "another horse" });
    let changed = door
        .tell(&format!("PATCH {path}"), Some(&admin), body)
        .await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(changed.body["is_superuser"], true);
    let login = door.login("ada@example.com", "another horse").await;
    let ada = login.text("access_token");
    let seen = door.ask(&format!("GET {path}"), Some(ada)).await;
    assert_eq!(seen.body, changed.body);

    let unknown = uuid::Uuid::new_v4();
    for id in [unknown.to_string().as_str(), "nobody", "%ff"] {
        let path = format!("/v1/auth/users/{id}");
        for method in ["GET", "PATCH", "DELETE"] {
            let what = format!("{method} {path}");
            let answer = door.tell(&what, Some(&admin), json!({})).await;
            assert_eq!(answer.refusal(), r#"404 {"detail":"Not Found"}"#, "{what}");
        }
    }
}

pub(crate) async fn a_user_who_is_no_superuser_cannot_read_or_change_users(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    for id in [ada, uuid::Uuid::new_v4()] {
        for method in ["GET", "PATCH", "DELETE"] {
            let what = format!("{method} /v1/auth/users/{id}");
            let answer = door.tell(&what, Some(&token), json!({})).await;
            assert_eq!(answer.refusal(), r#"403 {"detail":"Forbidden"}"#, "{what}");
            let answer = door.tell(&what, None, json!({})).await;
            assert_eq!(
                answer.refusal(),
                r#"401 {"detail":"Unauthorized"}"#,
                "{what}"
            );
        }
    }
    let me = door.ask("GET /v1/auth/users/me", Some(&token)).await;
    assert_eq!(me.id(), ada);
}

pub(crate) async fn a_change_takes_effect_at_once(door: GuardedDoor) {
    let ada = door.register("ada@example.com").await;
    let admin = door.token("admin@example.com").await;
    let token = door.token("ada@example.com").await;
    let path = format!("PATCH /v1/auth/users/{ada}");
    for round in 0..3 {
        for is_active in [false, true] {
            let body = json!({ "is_active": is_active, "is_superuser": round == 1 });
            door.tell(&path, Some(&admin), body).await;
            let seen = door.ask("GET /caller", Some(&token)).await;
            assert_eq!(seen.status == StatusCode::OK, is_active);
        }
        let seen = door.ask("GET /caller", Some(&token)).await;
        assert_eq!(seen.body["superuser"], round == 1);
    }
}
