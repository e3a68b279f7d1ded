use axum::body::Body;
use futures_util::FutureExt;
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, frame, in_json, request};

pub(crate) async fn frames_are_appended_replaced_and_deleted(fixture: Fixture) {
    fixture.make_room("room").await;
    let frames = json!({"frames": [in_json(&frame("a")), in_json(&frame("b"))]});
    let first = fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    assert_eq!(first.status, StatusCode::CREATED);
    insta::assert_snapshot!(first.text(), @r#"{"total":2,"start":0,"stop":2}"#);
    let frames = json!({"frames": [in_json(&frame("c"))]});
    let second = fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    insta::assert_snapshot!(second.text(), @r#"{"total":3,"start":2,"stop":3}"#);
    assert_eq!(fixture.marks("room").await, ["a", "b", "c"]);

    let data = json!({ "data": in_json(&frame("B")) });
    let replaced = fixture.ask(ME, "PUT /v1/rooms/room/frames/1", data).await;
    assert_eq!(replaced.status, StatusCode::OK);
    insta::assert_snapshot!(replaced.text(), @r#"{"index":1}"#);
    assert_eq!(fixture.marks("room").await, ["a", "B", "c"]);

    let deleted = fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
        .await;
    assert_eq!(deleted.status, StatusCode::OK);
    insta::assert_snapshot!(deleted.text(), @r#"{"status":"ok"}"#);
    assert_eq!(fixture.marks("room").await, ["B", "c"]);
    assert_eq!(fixture.get("/v1/rooms/room/frames/1").await.marks(), ["c"]);
}

pub(crate) async fn each_change_is_emitted_to_the_room(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let data = json!({ "data": in_json(&frame("B")) });
    fixture.ask(ME, "PUT /v1/rooms/room/frames/1", data).await;
    fixture
        .upload("PATCH /v1/rooms/room/frames/0", *b"\x81\xa1x\x01")
        .await;
    fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
        .await;
    fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/7", Value::Null)
        .await;
    let emitted = fixture.ports.emitted().into_iter();
    let emitted = emitted.map(|(room, event, payload)| format!("{room} {event} {payload}"));
    insta::assert_snapshot!(emitted.collect::<Vec<_>>().join("\n"), @r#"
    room:room frames_invalidate {"action":"add","count":2,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"modify","count":null,"indices":[1],"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"modify","count":null,"indices":[0],"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"delete","count":1,"indices":[0],"reason":null,"room_id":"room"}
    "#);
}

pub(crate) async fn an_unknown_index_is_refused_with_the_valid_range(fixture: Fixture) {
    fixture.make_room("room").await;
    let mut texts = Vec::new();
    for marks in [&[][..], &["a", "b"]] {
        if !marks.is_empty() {
            fixture.append("room", marks).await;
        }
        for number in ["2", "-1", "9223372036854775807", "-9223372036854775808"] {
            let path = format!("/v1/rooms/room/frames/{number}");
            let data = json!({ "data": in_json(&frame("x")) });
            let answers = [
                fixture.get(&path).await,
                fixture.get(&format!("{path}/metadata")).await,
                fixture.ask(ME, &format!("PUT {path}"), data).await,
                fixture.upload(&format!("PATCH {path}"), *b"\x80").await,
                fixture
                    .ask(ME, &format!("DELETE {path}"), Value::Null)
                    .await,
            ];
            for refused in answers {
                assert_eq!(refused.status, StatusCode::NOT_FOUND, "{}", refused.text());
                texts.push(refused.json()["detail"].to_string());
            }
        }
    }
    texts.dedup();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    "Frame 2 not found: the room has no frames"
    "Frame -1 not found: the room has no frames"
    "Frame 9223372036854775807 not found: the room has no frames"
    "Frame -9223372036854775808 not found: the room has no frames"
    "Frame 2 not found: the room has frames 0 to 1"
    "Frame -1 not found: the room has frames 0 to 1"
    "Frame 9223372036854775807 not found: the room has frames 0 to 1"
    "Frame -9223372036854775808 not found: the room has frames 0 to 1"
    "#);
    let refused = fixture.get("/v1/rooms/room/frames/x").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""path.index: Input should be a valid integer, unable to parse string as an integer""#);
}

pub(crate) async fn a_full_room_refuses_frames(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.room = 3);
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let frames = json!({"frames": [in_json(&frame("c")), in_json(&frame("d"))]});
    let refused = fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""body.frames: the room has 2 frames and may have 3, the limit of this server (jobs.room_frames)""#);
    fixture.append("room", &["c"]).await;
    assert_eq!(fixture.marks("room").await, ["a", "b", "c"]);
}

pub(crate) async fn an_unknown_room_is_not_found_by_every_route(fixture: Fixture) {
    let one = json!({"frames": [in_json(&frame("a"))]});
    let data = json!({ "data": in_json(&frame("a")) });
    let answers = [
        fixture.ask(ME, "POST /v1/rooms/no/frames", one).await,
        fixture.ask(ME, "PUT /v1/rooms/no/frames/0", data).await,
        fixture
            .upload("PATCH /v1/rooms/no/frames/0", *b"\x80")
            .await,
        fixture
            .ask(ME, "DELETE /v1/rooms/no/frames/0", Value::Null)
            .await,
        fixture.get("/v1/rooms/no/frames").await,
        fixture.get("/v1/rooms/no/frames?indices=0").await,
        fixture.get("/v1/rooms/no/frames/0").await,
        fixture.get("/v1/rooms/no/frames/0/metadata").await,
        fixture
            .ask(ME, "PATCH /v1/rooms/no", json!({"frame_count": 1}))
            .await,
        fixture
            .ask(ME, "PATCH /v1/rooms/no", json!({"frame_count": 0}))
            .await,
    ];
    for refused in answers {
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        assert_eq!(refused.json()["type"], "/v1/problems/room-not-found");
    }
    assert_eq!(fixture.ports.emitted(), []);
}

pub(crate) async fn concurrent_appends_are_all_kept(fixture: Fixture) {
    fixture.make_room("room").await;
    let marks: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let appending = marks.iter().map(async |mark| {
        // The two frames of an append stay together.
        let second = format!("{mark}'");
        fixture.append("room", &[mark, &second]).await;
    });
    futures_util::future::join_all(appending).await;
    let mut there = fixture.marks("room").await;
    assert!(
        there
            .chunks(2)
            .all(|pair| pair[1] == format!("{}'", pair[0])),
        "{there:?}"
    );
    there.sort();
    let mut expected: Vec<_> = marks
        .iter()
        .flat_map(|mark| [mark.clone(), format!("{mark}'")])
        .collect();
    expected.sort();
    assert_eq!(there, expected);
}

pub(crate) async fn a_change_whose_caller_hung_up_is_emitted_to_the_room(fixture: Fixture) {
    fixture.make_room("room").await;
    let body = json!({"frames": [in_json(&frame("a"))]}).to_string();
    let mut sent = 0;
    // Until a request is dropped while the store works on it: a fast one is done before.
    loop {
        let request = request(Some(ME), "POST /v1/rooms/room/frames")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.clone()))
            .unwrap();
        sent += 1;
        assert!(sent < 1_000);
        if fixture.send(request).now_or_never().is_none() {
            break;
        }
    }
    let emitted = fixture.ports.wait_emitted(sent).await;
    assert_eq!(emitted[sent - 1].2["count"], sent);
    assert_eq!(fixture.marks("room").await.len(), sent);
}
