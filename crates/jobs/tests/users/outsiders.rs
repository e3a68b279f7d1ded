use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};
use wakeline_web::{Identity, Role};

use crate::{
    database::Database,
    test_door::{GuardedDoor, OpenDoor, TestDoor, open},
};

const ME: &str = "GET /v1/auth/users/me";

fn subject(name: &str, role: Role) -> Identity {
    Identity {
        subject: Some(name.to_owned()),
        role,
    }
}

pub(crate) async fn a_subject_of_the_server_is_a_user(door: OpenDoor) {
    let ada = subject("ada", Role::ReadWrite);
    let me = door.ask_as(ME, ada.clone(), Value::Null).await;
    let expected = json!({
        "id": me.id(), "email": "ada@subject.wakeline.localhost",
        "is_active": true, "is_superuser": false, "is_verified": false,
    });
    assert_eq!((me.status, &me.body), (StatusCode::OK, &expected));
    let other = TestDoor::new(&door.database, open()).await;
    assert_eq!(other.ask_as(ME, ada, Value::Null).await.body, expected);

    let id = "e6f5a4d0-3c2b-4a19-8f7e-6d5c4b3a2910";
    let me = door
        .ask_as(ME, subject(id, Role::ReadWrite), Value::Null)
        .await;
    assert_eq!(me.text("id"), id);
    let nameless = Identity {
        subject: None,
        role: Role::Admin,
    };
    let me = door.ask_as(ME, nameless, Value::Null).await;
    assert_eq!(me.text("email"), "admin@role.wakeline.localhost");
}

pub(crate) async fn the_role_of_the_subject_decides_whether_it_is_a_superuser(door: OpenDoor) {
    let (mut seen, roles) = (Vec::new(), [Role::Admin, Role::ReadWrite, Role::Admin]);
    for role in roles {
        let me = door.ask_as(ME, subject("ada", role), Value::Null).await;
        let caller = door
            .ask_as("GET /caller", subject("ada", role), Value::Null)
            .await;
        assert_eq!(me.id(), caller.id());
        seen.push((
            me.body["is_superuser"].clone(),
            caller.body["superuser"].clone(),
        ));
    }
    let yes = || (json!(true), json!(true));
    assert_eq!(seen, [yes(), (json!(false), json!(false)), yes()]);
}

pub(crate) async fn a_subject_of_the_server_cannot_change_its_user(door: OpenDoor) {
    let body = json!({ "password": "correct horse" });
    let ada = subject("ada", Role::Admin);
    let answer = door.ask_as("PATCH /v1/auth/users/me", ada, body).await;
    insta::assert_snapshot!(answer.refusal(), @r#"403 {"detail":"You are logged in by the server itself (auth.tokens, auth.jwt); there is nothing to change here","status":403,"title":"Forbidden","type":"/v1/problems/forbidden"}"#);
}

pub(crate) async fn a_subject_of_the_server_can_be_deactivated(door: GuardedDoor) {
    let ada = subject("ada", Role::Admin);
    let id = door.ask_as(ME, ada.clone(), Value::Null).await.id();
    let admin = door.token("admin@example.com").await;
    let path = format!("/v1/auth/users/{id}");
    let off = json!({ "is_active": false });
    door.tell(&format!("PATCH {path}"), Some(&admin), off).await;
    let answer = door.ask_as(ME, ada.clone(), Value::Null).await;
    assert_eq!(answer.refusal(), r#"401 {"detail":"Unauthorized"}"#);
    // After its user is deleted, the subject's next call creates it again: the server accepts its
    // token.
    door.ask(&format!("DELETE {path}"), Some(&admin)).await;
    let answer = door.ask_as(ME, ada, Value::Null).await;
    assert_eq!((answer.status, answer.id()), (StatusCode::OK, id));
}

pub(crate) async fn concurrent_calls_of_a_subject_create_one_user(database: Database) {
    let doors = [
        TestDoor::new(&database, open()).await,
        TestDoor::new(&database, open()).await,
    ];
    let asking = (0..40).map(|n| {
        let door = doors[n % 2].clone();
        tokio::spawn(async move {
            let ada = subject("ada", Role::ReadWrite);
            door.ask_as(ME, ada, Value::Null).await
        })
    });
    let answers: Vec<_> = join_all(asking).await;
    let first = answers[0].as_ref().unwrap().id();
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!((answer.status, answer.id()), (StatusCode::OK, first));
    }
}
