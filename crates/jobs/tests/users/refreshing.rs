use http::StatusCode;
use uuid::Uuid;
use wakeline_jobs::users::{REFRESHED_TOKEN, UserChanges};

use crate::{
    test_door::{Answer, SecretDoor},
    tokens::token_of,
};

/// Half of the lifetime of the settings, and a little.
const FRESH: u64 = 1_900;
const DUE: u64 = 1_700;

fn refreshed(answer: &Answer) -> Option<&str> {
    answer
        .headers
        .get(REFRESHED_TOKEN)
        .map(|token| token.to_str().unwrap())
}

pub(crate) async fn a_token_past_half_of_its_life_is_renewed(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let due = token_of(ada, DUE);
    for route in ["/caller", "/reader", "/visitor", "/v1/auth/users/me"] {
        let answer = door.ask(&format!("GET {route}"), Some(&due)).await;
        assert_eq!(answer.status, StatusCode::OK);
        let next = refreshed(&answer).unwrap().to_owned();
        let answer = door.ask("GET /caller", Some(&next)).await;
        assert_eq!((answer.id(), refreshed(&answer)), (ada, None));
    }
    // The token is renewed also when the request fails.
    let path = format!("GET /v1/auth/users/{}", Uuid::new_v4());
    let answer = door.ask(&path, Some(&due)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(refreshed(&answer).is_some());
}

pub(crate) async fn a_fresh_token_is_not_renewed(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let answer = door.ask("GET /caller", Some(&token_of(ada, FRESH))).await;
    assert_eq!((answer.id(), refreshed(&answer)), (ada, None));
    let answer = door
        .ask("GET /caller", Some(&door.token("ada@example.com").await))
        .await;
    assert_eq!((answer.id(), refreshed(&answer)), (ada, None));
}

pub(crate) async fn a_caller_that_was_not_identified_gets_no_new_token(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let due = token_of(ada, DUE);
    // A route without authentication has not checked that the user still exists.
    let answer = door.ask("GET /open", Some(&due)).await;
    assert_eq!((answer.status, refreshed(&answer)), (StatusCode::OK, None));
    let off = UserChanges {
        is_active: Some(false),
        ..UserChanges::default()
    };
    door.users.change(ada, off).await.unwrap();
    for (route, token) in [
        ("GET /caller", due),
        ("GET /caller", token_of(Uuid::new_v4(), DUE)),
        ("GET /caller", "x.y.z".to_owned()),
    ] {
        let answer = door.ask(route, Some(&token)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(refreshed(&answer), None);
    }
}

pub(crate) async fn a_logout_gets_no_new_token(door: SecretDoor) {
    let ada = door.register("ada@example.com").await;
    let due = token_of(ada, DUE);
    let answer = door.ask("POST /v1/auth/jwt/logout", Some(&due)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(refreshed(&answer), None);
}
