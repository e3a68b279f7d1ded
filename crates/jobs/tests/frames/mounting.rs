use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    fixture::{ADMIN, Fixture, ME, OTHER, TestAnswer, frame, in_json},
    ports::{answer, provider},
};

async fn set_count(
    fixture: &Fixture,
    caller: wakeline_jobs::caller::Caller,
    count: i64,
) -> TestAnswer {
    let body = json!({ "frame_count": count });
    fixture.ask(caller, "PATCH /v1/rooms/room", body).await
}

async fn count(fixture: &Fixture) -> Value {
    fixture.get("/v1/rooms/room").await.json()["frame_count"].clone()
}

fn emitted(fixture: &Fixture) -> String {
    let emitted = fixture.ports.emitted().into_iter();
    let emitted = emitted.map(|(room, event, payload)| format!("{room} {event} {payload}"));
    emitted.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn the_owner_of_the_provider_mounts_and_unmounts(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.ports.register(provider("room", "mount", ME.id));
    let done = set_count(&fixture, ME, 5).await;
    assert_eq!(done.status, StatusCode::OK);
    insta::assert_snapshot!(done.text(), @r#"{"status":"ok","room_id":"room"}"#);
    set_count(&fixture, ME, 8).await;
    assert_eq!(count(&fixture).await, 8);
    // As the real client does it: the provider first, then the count.
    fixture.ports.unregister("room", "mount");
    assert_eq!(set_count(&fixture, ME, 0).await.status, StatusCode::OK);
    assert_eq!(count(&fixture).await, 0);
    assert_eq!(set_count(&fixture, ME, 0).await.status, StatusCode::OK);
    insta::assert_snapshot!(emitted(&fixture), @r#"
    room:room frames_invalidate {"action":"clear","count":5,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"clear","count":8,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"clear","count":0,"indices":null,"reason":null,"room_id":"room"}
    "#);
    fixture.append("room", &["a"]).await;
    let nothing = fixture.ask(ME, "PATCH /v1/rooms/room", json!({})).await;
    assert_eq!(nothing.status, StatusCode::OK);
    assert_eq!(fixture.marks("room").await, ["a"]);
}

pub(crate) async fn a_mounted_room_is_read_only(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    fixture.mount("room", 5).await;
    let one = json!({"frames": [in_json(&frame("x"))]});
    let data = json!({ "data": in_json(&frame("x")) });
    let answers = [
        fixture.ask(ME, "POST /v1/rooms/room/frames", one).await,
        fixture.ask(ME, "PUT /v1/rooms/room/frames/0", data).await,
        fixture
            .upload("PATCH /v1/rooms/room/frames/0", *b"\x80")
            .await,
        fixture
            .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
            .await,
    ];
    for refused in answers {
        assert_eq!(refused.status, StatusCode::CONFLICT);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.text(), @r#"{"type":"/v1/problems/room-read-only","title":"Conflict","status":409,"detail":"Room 'room' is read-only: its frames come from a provider"}"#);
        }
    }
    assert_eq!(
        fixture.get("/v1/rooms/room/frames?stop=1").await.marks(),
        ["a"]
    );
}

pub(crate) async fn only_the_owner_of_a_frames_provider_mounts(fixture: Fixture) {
    fixture.make_room("room").await;
    let nobody = set_count(&fixture, ME, 5).await;
    assert_eq!(nobody.status, StatusCode::FORBIDDEN);
    fixture.ports.register(provider("room", "mount", ME.id));
    fixture
        .ports
        .register(provider("elsewhere", "mount", OTHER.id));
    let other = set_count(&fixture, OTHER, 5).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    insta::assert_snapshot!(other.text(), @r#"{"type":"/v1/problems/forbidden","title":"Forbidden","status":403,"detail":"Only the owner of a frames provider of the room sets its frame count"}"#);
    assert_eq!(count(&fixture).await, 0);
    set_count(&fixture, ME, 5).await;
    assert_eq!(
        set_count(&fixture, OTHER, 0).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(count(&fixture).await, 5);
    assert_eq!(set_count(&fixture, ADMIN, 6).await.status, StatusCode::OK);
    assert_eq!(set_count(&fixture, ADMIN, 0).await.status, StatusCode::OK);
    for count in [-1, 1_000_001] {
        let refused = set_count(&fixture, ME, count).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let refused = fixture
        .ask(ME, "PATCH /v1/rooms/room", json!({"frame_count": "5"}))
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""body.frame_count: invalid type: string, expected i64 at line 1 column 18""#);
    assert_eq!(count(&fixture).await, 0);
}

pub(crate) async fn a_room_is_unmounted_when_its_last_provider_is_removed(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    fixture.mount("room", 5).await;
    fixture.ports.emitted();
    fixture.ports.unregister("room", "mount");
    for _ in 0..2 {
        fixture
            .frames
            .provider_gone("room".to_owned())
            .await
            .unwrap();
    }
    assert_eq!(count(&fixture).await, 1);
    insta::assert_snapshot!(emitted(&fixture), @r#"room:room frames_invalidate {"action":"clear","count":1,"indices":null,"reason":"provider_disconnected","room_id":"room"}"#);
    fixture.append("room", &["b"]).await;
    // A room of jobs and providers need not be a room with frames.
    fixture
        .frames
        .provider_gone("nowhere".to_owned())
        .await
        .unwrap();
}

pub(crate) async fn a_room_stays_mounted_while_another_provider_serves_it(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.mount("room", 5).await;
    fixture.ports.register(provider("room", "other", OTHER.id));
    fixture.ports.unregister("room", "mount");
    fixture
        .frames
        .provider_gone("room".to_owned())
        .await
        .unwrap();
    assert_eq!(count(&fixture).await, 5);
    fixture
        .ports
        .answer(1, answer(false, frame("x").bytes().clone()));
    assert_eq!(fixture.get("/v1/rooms/room/frames/1").await.marks(), ["x"]);
}

pub(crate) async fn mounted_frames_without_a_provider_are_not_found(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    fixture.mount("room", 5).await;
    fixture.ports.unregister("room", "mount");
    for path in ["/v1/rooms/room/frames/3", "/v1/rooms/room/frames"] {
        let none = fixture.get(path).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(none.json()["type"], "/v1/problems/frame-not-found");
    }
    assert_eq!(fixture.get("/v1/rooms/room/frames/0").await.marks(), ["a"]);
}
