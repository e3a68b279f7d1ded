use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    ground::{ADMIN, Answered, Ground, ME, OTHER, frame, in_json},
    neighbours::{answer, provider},
};

async fn set_count(ground: &Ground, caller: wakeline_jobs::caller::Caller, count: i64) -> Answered {
    let body = json!({ "frame_count": count });
    ground.ask(caller, "PATCH /v1/rooms/room", body).await
}

async fn count(ground: &Ground) -> Value {
    ground.get("/v1/rooms/room").await.json()["frame_count"].clone()
}

fn told(ground: &Ground) -> String {
    let told = ground.neighbours.told().into_iter();
    let told = told.map(|(room, event, payload)| format!("{room} {event} {payload}"));
    told.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn the_owner_of_the_provider_mounts_and_gives_back(ground: Ground) {
    ground.make_room("room").await;
    ground.neighbours.register(provider("room", "mount", ME.id));
    let done = set_count(&ground, ME, 5).await;
    assert_eq!(done.status, StatusCode::OK);
    insta::assert_snapshot!(done.text(), @r#"{"status":"ok","room_id":"room"}"#);
    set_count(&ground, ME, 8).await;
    assert_eq!(count(&ground).await, 8);
    // As the real client does it: the provider first, then the count.
    ground.neighbours.unregister("room", "mount");
    assert_eq!(set_count(&ground, ME, 0).await.status, StatusCode::OK);
    assert_eq!(count(&ground).await, 0);
    assert_eq!(set_count(&ground, ME, 0).await.status, StatusCode::OK);
    insta::assert_snapshot!(told(&ground), @r#"
    room:room frames_invalidate {"action":"clear","count":5,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"clear","count":8,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"clear","count":0,"indices":null,"reason":null,"room_id":"room"}
    "#);
    ground.append("room", &["a"]).await;
    let nothing = ground.ask(ME, "PATCH /v1/rooms/room", json!({})).await;
    assert_eq!(nothing.status, StatusCode::OK);
    assert_eq!(ground.marks("room").await, ["a"]);
}

pub(crate) async fn a_mounted_room_is_read_only(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a"]).await;
    ground.mount("room", 5).await;
    let one = json!({"frames": [in_json(&frame("x"))]});
    let data = json!({ "data": in_json(&frame("x")) });
    let asked = [
        ground.ask(ME, "POST /v1/rooms/room/frames", one).await,
        ground.ask(ME, "PUT /v1/rooms/room/frames/0", data).await,
        ground
            .upload("PATCH /v1/rooms/room/frames/0", *b"\x80")
            .await,
        ground
            .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
            .await,
    ];
    for refused in asked {
        assert_eq!(refused.status, StatusCode::CONFLICT);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.text(), @r#"{"detail":"Room 'room' is read-only: its frames come from a provider","status":409,"title":"Conflict","type":"/v1/problems/room-read-only"}"#);
        }
    }
    assert_eq!(
        ground.get("/v1/rooms/room/frames?stop=1").await.marks(),
        ["a"]
    );
}

pub(crate) async fn others_do_not_mount(ground: Ground) {
    ground.make_room("room").await;
    let nobody = set_count(&ground, ME, 5).await;
    assert_eq!(nobody.status, StatusCode::FORBIDDEN);
    ground.neighbours.register(provider("room", "mount", ME.id));
    ground
        .neighbours
        .register(provider("elsewhere", "mount", OTHER.id));
    let other = set_count(&ground, OTHER, 5).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    insta::assert_snapshot!(other.text(), @r#"{"detail":"Only the owner of a frames provider of the room sets its frame count","status":403,"title":"Forbidden","type":"/v1/problems/forbidden"}"#);
    assert_eq!(count(&ground).await, 0);
    set_count(&ground, ME, 5).await;
    assert_eq!(
        set_count(&ground, OTHER, 0).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(count(&ground).await, 5);
    assert_eq!(set_count(&ground, ADMIN, 6).await.status, StatusCode::OK);
    assert_eq!(set_count(&ground, ADMIN, 0).await.status, StatusCode::OK);
    for count in [-1, 1_000_001] {
        let refused = set_count(&ground, ME, count).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let refused = ground
        .ask(ME, "PATCH /v1/rooms/room", json!({"frame_count": "5"}))
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""body.frame_count: invalid type: string \"5\", expected i64 at line 1 column 18""#);
    assert_eq!(count(&ground).await, 0);
}

pub(crate) async fn when_the_last_provider_is_gone_so_are_its_frames(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a"]).await;
    ground.mount("room", 5).await;
    ground.neighbours.told();
    ground.neighbours.unregister("room", "mount");
    for _ in 0..2 {
        ground
            .frames
            .provider_gone("room".to_owned())
            .await
            .unwrap();
    }
    assert_eq!(count(&ground).await, 1);
    insta::assert_snapshot!(told(&ground), @r#"room:room frames_invalidate {"action":"clear","count":1,"indices":null,"reason":"provider_disconnected","room_id":"room"}"#);
    ground.append("room", &["b"]).await;
    // Rooms of joblib need not be rooms with frames.
    ground
        .frames
        .provider_gone("nowhere".to_owned())
        .await
        .unwrap();
}

pub(crate) async fn while_another_provider_is_there_the_room_stays_mounted(ground: Ground) {
    ground.make_room("room").await;
    ground.mount("room", 5).await;
    ground
        .neighbours
        .register(provider("room", "other", OTHER.id));
    ground.neighbours.unregister("room", "mount");
    ground
        .frames
        .provider_gone("room".to_owned())
        .await
        .unwrap();
    assert_eq!(count(&ground).await, 5);
    ground
        .neighbours
        .answer(1, answer(false, frame("x").bytes().clone()));
    assert_eq!(ground.get("/v1/rooms/room/frames/1").await.marks(), ["x"]);
}

pub(crate) async fn a_mount_without_a_provider_has_no_frames_to_give(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a"]).await;
    ground.mount("room", 5).await;
    ground.neighbours.unregister("room", "mount");
    for path in ["/v1/rooms/room/frames/3", "/v1/rooms/room/frames"] {
        let none = ground.get(path).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(none.json()["type"], "/v1/problems/frame-not-found");
    }
    assert_eq!(ground.get("/v1/rooms/room/frames/0").await.marks(), ["a"]);
}
