use axum::{body::Body, extract::Request};
use http::{StatusCode, header};
use wakeline_jobs::{Error, users::Settings};

use crate::{
    database::Database,
    test_door::{DevDoor, OpenDoor, SecretDoor, TestDoor, dev},
    tokens::{known_secret, token_of},
};

const ROUTES: [&str; 3] = ["GET /caller", "GET /reader", "GET /visitor"];

async fn refusals(door: &TestDoor, token: Option<&str>) -> String {
    let mut refusals = Vec::new();
    for route in ROUTES {
        refusals.push(door.ask(route, token).await.refusal());
    }
    refusals.join("\n")
}

pub(crate) async fn a_caller_without_a_token_is_refused(door: OpenDoor) {
    insta::assert_snapshot!(refusals(&door, None).await, @r#"
    401 {"detail":"Unauthorized"}
    401 {"detail":"Not authenticated"}
    401 {"detail":"Unauthorized"}
    "#);
}

pub(crate) async fn a_caller_with_a_bad_token_is_refused(door: DevDoor) {
    insta::assert_snapshot!(refusals(&door, Some("x.y.z")).await, @r#"
    401 {"detail":"Unauthorized"}
    401 {"detail":"Invalid token"}
    401 {"detail":"Unauthorized"}
    "#);
    for given in ["Bearer", "Bearer ", "Basic YWRhOmhvcnNl", "x", ""] {
        let request = Request::get("/caller").header(header::AUTHORIZATION, given);
        let answer = door.request(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{given}");
    }
}

pub(crate) async fn a_caller_with_a_good_token_is_identified(door: OpenDoor) {
    let ada = door.register("ada@example.com").await;
    let token = door.token("ada@example.com").await;
    for route in ROUTES {
        let answer = door.ask(route, Some(&token)).await;
        let expected = serde_json::json!({ "id": ada, "superuser": false });
        assert_eq!((answer.status, answer.body), (StatusCode::OK, expected));
    }
    let request = Request::get("/caller").header(header::AUTHORIZATION, format!("bearer  {token}"));
    let answer = door.request(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.id(), ada);
}

pub(crate) async fn in_dev_mode_a_caller_needs_no_token(door: DevDoor) {
    let me = door.ask("GET /v1/auth/users/me", None).await;
    insta::assert_snapshot!(me.body, @r#"{"email":"local@wakeline.localhost","id":"51a04c22-30d7-8301-ab2b-534bcbab0e97","is_active":true,"is_superuser":true,"is_verified":false}"#);
    for route in ROUTES {
        let answer = door.ask(route, None).await;
        assert_eq!(
            (answer.id(), &answer.body["superuser"]),
            (me.id(), &true.into())
        );
    }
    let other = TestDoor::new(&door.database, dev()).await;
    assert_eq!(other.ask("GET /caller", None).await.id(), me.id());
}

pub(crate) async fn open_lists_need_no_token(database: Database) {
    let settings = Settings {
        open_lists: true,
        ..known_secret()
    };
    let door = TestDoor::new(&database, settings).await;
    let ada = door.register("ada@example.com").await;
    for token in [None, Some("x.y.z")] {
        let answer = door.ask("GET /visitor", token).await;
        assert_eq!(answer.refusal(), "200 null");
    }
    let token = token_of(ada, 600);
    let answer = door.ask("GET /visitor", Some(&token)).await;
    assert_eq!(answer.id(), ada);
    let answer = door.ask("GET /caller", None).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

pub(crate) async fn a_socket_is_identified_by_its_token(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let token = token_of(ada, 600);
    let caller = door.users.identify_token(Some(&token)).await.unwrap();
    assert_eq!((caller.id, caller.is_superuser), (ada, false));
    for token in [None, Some(""), Some("x.y.z")] {
        let refused = door.users.identify_token(token).await;
        assert!(
            matches!(refused, Err(Error::Detail(StatusCode::UNAUTHORIZED, _))),
            "{token:?}"
        );
    }
    let local = TestDoor::new(&door.database, dev()).await;
    let caller = local.users.identify_token(None).await.unwrap();
    assert!(caller.is_superuser);
    assert!(local.users.identify_token(Some("")).await.is_err());
}
