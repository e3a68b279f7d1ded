use http::StatusCode;
use serde_json::{Value, json};
use wakeline_jobs::caller::Caller;

use crate::fixture::{ADMIN, Fixture, ME, OTHER, TestAnswer, frame, in_json};

async fn lock(fixture: &Fixture, caller: Caller, locked: bool) -> TestAnswer {
    let body = json!({ "locked": locked });
    fixture.ask(caller, "PATCH /v1/rooms/room", body).await
}

/// A change by each route.
async fn edits(fixture: &Fixture, caller: Caller) -> Vec<TestAnswer> {
    let frames = json!({"frames": [in_json(&frame("x"))]});
    let data = json!({ "data": in_json(&frame("x")) });
    let mut answers = Vec::new();
    for (line, body) in [
        ("POST /v1/rooms/room/frames", frames),
        ("PUT /v1/rooms/room/frames/0", data.clone()),
        ("PATCH /v1/rooms/room/frames/0", data),
        ("DELETE /v1/rooms/room/frames/0", Value::Null),
    ] {
        answers.push(fixture.ask(caller, line, body).await);
    }
    answers
}

pub(crate) async fn a_locked_room_refuses_the_edits_of_others(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    assert_eq!(lock(&fixture, ME, true).await.status, StatusCode::OK);
    let room = fixture.get("/v1/rooms/room").await.json();
    assert_eq!(room["locked"], true);
    let emitted = fixture.ports.emitted().pop().unwrap();
    assert_eq!(
        (emitted.1.as_str(), &emitted.2["locked"]),
        ("room_update", &json!(true))
    );

    let mut refused = edits(&fixture, OTHER).await;
    refused.push(lock(&fixture, OTHER, false).await);
    let provider = crate::ports::provider("room", "mount", OTHER.id);
    fixture.ports.register(provider);
    for frame_count in [5, 0] {
        let mount = json!({ "frame_count": frame_count });
        refused.push(fixture.ask(OTHER, "PATCH /v1/rooms/room", mount).await);
    }
    for refused in refused {
        assert_eq!(refused.status, StatusCode::LOCKED, "{}", refused.text());
        assert_eq!(refused.json()["type"], "/v1/problems/room-locked");
    }
    assert_eq!(fixture.ports.emitted(), []);
    assert_eq!(fixture.marks("room").await, ["a", "b"]);
    for editor in [ME, ADMIN] {
        for done in edits(&fixture, editor).await {
            assert!(done.status.is_success(), "{}", done.text());
        }
    }
}

pub(crate) async fn a_room_is_unlocked_by_the_user_who_locked_it_or_a_superuser(fixture: Fixture) {
    fixture.make_room("room").await;
    for unlocks in [ME, ADMIN] {
        assert_eq!(lock(&fixture, ME, true).await.status, StatusCode::OK);
        // The room stays its first locker's.
        lock(&fixture, ADMIN, true).await;
        assert_eq!(lock(&fixture, OTHER, true).await.status, StatusCode::LOCKED);
        assert_eq!(lock(&fixture, unlocks, false).await.status, StatusCode::OK);
        let room = fixture.get("/v1/rooms/room").await.json();
        assert_eq!(room["locked"], false);
    }
    let nowhere = json!({"locked": true});
    let nowhere = fixture.ask(ME, "PATCH /v1/rooms/no", nowhere).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
}

pub(crate) async fn a_locked_room_is_unmounted_when_its_provider_is_removed(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.mount("room", 5).await;
    lock(&fixture, ADMIN, true).await;
    fixture.ports.unregister("room", "mount");
    fixture
        .frames
        .provider_gone("room".to_owned())
        .await
        .unwrap();
    let room = fixture.get("/v1/rooms/room").await.json();
    assert_eq!(
        (&room["frame_count"], &room["locked"]),
        (&json!(0), &json!(true))
    );
}
