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

pub(crate) async fn everybody_in_the_room_is_told_of_each_change(fixture: Fixture) {
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
    let told = fixture.ports.told().into_iter();
    let told = told.map(|(room, event, payload)| format!("{room} {event} {payload}"));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r#"
    room:room frames_invalidate {"action":"add","count":2,"indices":null,"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"modify","count":null,"indices":[1],"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"modify","count":null,"indices":[0],"reason":null,"room_id":"room"}
    room:room frames_invalidate {"action":"delete","count":1,"indices":[0],"reason":null,"room_id":"room"}
    "#);
}

pub(crate) async fn a_frame_that_is_not_there_is_named_with_those_that_are(fixture: Fixture) {
    fixture.make_room("room").await;
    let mut texts = Vec::new();
    for marks in [&[][..], &["a", "b"]] {
        if !marks.is_empty() {
            fixture.append("room", marks).await;
        }
        for number in ["2", "-1", "9223372036854775807", "-9223372036854775808"] {
            let path = format!("/v1/rooms/room/frames/{number}");
            let data = json!({ "data": in_json(&frame("x")) });
            let asked = [
                fixture.get(&path).await,
                fixture.get(&format!("{path}/metadata")).await,
                fixture.ask(ME, &format!("PUT {path}"), data).await,
                fixture.upload(&format!("PATCH {path}"), *b"\x80").await,
                fixture
                    .ask(ME, &format!("DELETE {path}"), Value::Null)
                    .await,
            ];
            for refused in asked {
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

pub(crate) async fn a_full_room_takes_no_more(fixture: Fixture) {
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

pub(crate) async fn a_room_that_is_not_there_takes_nothing(fixture: Fixture) {
    let one = json!({"frames": [in_json(&frame("a"))]});
    let data = json!({ "data": in_json(&frame("a")) });
    let asked = [
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
    for refused in asked {
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        assert_eq!(refused.json()["type"], "/v1/problems/room-not-found");
    }
    assert_eq!(fixture.ports.told(), []);
}

pub(crate) async fn appends_beside_one_another_are_all_there(fixture: Fixture) {
    fixture.make_room("room").await;
    let marks: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let appending = marks.iter().map(async |mark| {
        // Together, or not at all beside the others.
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

pub(crate) async fn who_hangs_up_does_not_keep_others_from_being_told(fixture: Fixture) {
    fixture.make_room("room").await;
    let body = json!({"frames": [in_json(&frame("a"))]}).to_string();
    let mut sent = 0;
    // Until one is given up that the store is at: it may be done before one can.
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
    let told = fixture.ports.wait_told(sent).await;
    assert_eq!(told[sent - 1].2["count"], sent);
    assert_eq!(fixture.marks("room").await.len(), sent);
}
