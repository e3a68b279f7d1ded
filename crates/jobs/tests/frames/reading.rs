use axum::body::Body;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, frame, frame_of, frames_in, in_json, mark, request};

pub(crate) async fn frames_are_read_by_range_and_by_index(fixture: Fixture) {
    fixture.make_room("room").await;
    assert_eq!(fixture.get("/v1/rooms/room/frames").await.body, [0x90][..]);
    fixture.append("room", &["a", "b", "c", "d", "e"]).await;
    let marks = async |query: &str| {
        let path = format!("/v1/rooms/room/frames{query}");
        fixture.get(&path).await.marks().join("")
    };
    let found = [
        marks("").await,
        marks("?start=1&stop=3").await,
        marks("?start=3").await,
        marks("?stop=2").await,
        marks("?start=2&stop=100").await,
        marks("?start=100").await,
        marks("?start=3&stop=1").await,
        marks("?indices=4,0,2").await,
        marks("?indices=1,1").await,
        marks("?indices=").await,
    ];
    assert_eq!(
        found,
        [
            "abcde", "bc", "de", "ab", "cde", "", "", "eac", "bb", "abcde"
        ]
    );
    assert_eq!(fixture.get("/v1/rooms/room/frames/3").await.marks(), ["d"]);
}

pub(crate) async fn a_read_returns_only_the_requested_keys(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let keys = async |path: &str| {
        let frames = fixture.get(path).await.frames();
        frames
            .iter()
            .map(|frame| frame.keys().join(","))
            .collect::<Vec<_>>()
    };
    let some = keys("/v1/rooms/room/frames?keys=mark,%20arrays.radii,other").await;
    assert_eq!(some, ["arrays.radii,mark", "arrays.radii,mark"]);
    assert_eq!(
        keys("/v1/rooms/room/frames?indices=1&keys=mark").await,
        ["mark"]
    );
    assert_eq!(keys("/v1/rooms/room/frames/0?keys=mark").await, ["mark"]);
    assert_eq!(keys("/v1/rooms/room/frames/0?keys=other").await, [""]);
    assert_eq!(
        keys("/v1/rooms/room/frames/0?keys=").await,
        ["arrays.colors,arrays.radii,mark"]
    );
}

pub(crate) async fn metadata_lists_the_keys_of_a_frame_with_their_types(fixture: Fixture) {
    fixture.make_room("room").await;
    // {b"nd": true, b"type": b"<f8", b"kind": b"", b"shape": [2, 3], b"data": …}
    let array = [
        &b"\x85\xc4\x02nd\xc3\xc4\x04type\xc4\x03<f8\xc4\x04kind\xc4\x00\xc4\x05shape\x92\x02\x03\xc4\x04data\xc4\x30"[..],
        &[0; 48],
    ]
    .concat();
    let one = frame_of(&[
        ("arrays.colors", &array),
        ("arrays.radii", b"\xcb\0\0\0\0\0\0\0\0"),
        ("info.name", b"\xa1x"),
    ]);
    let frames = json!({ "frames": [in_json(&one)] });
    fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    let metadata = fixture.get("/v1/rooms/room/frames/0/metadata").await;
    assert_eq!(metadata.status, StatusCode::OK);
    insta::assert_snapshot!(metadata.text(), @r#"{"frame_id":0,"metadata":{"arrays.colors":{"dtype":"<f8","shape":[2,3],"type":"array"},"arrays.radii":{"dtype":"float64","shape":null,"type":"scalar"},"info.name":{"dtype":"str","shape":null,"type":"scalar"}},"source_room":"room"}"#);
}

pub(crate) async fn malformed_indices_are_refused(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let mut texts = Vec::new();
    for query in [
        "indices=0,x",
        "indices=0,,1",
        "start=-1",
        "stop=x",
        "indices=0,2",
        "indices=-1",
        "indices=9,8,7,6,5,4,3,2,10,11,12",
    ] {
        let refused = fixture.get(&format!("/v1/rooms/room/frames?{query}")).await;
        let status = refused.status.as_u16();
        texts.push(format!("{query}: {status} {}", refused.json()["detail"]));
    }
    insta::assert_snapshot!(texts.join("\n"), @r#"
    indices=0,x: 422 "query.indices: Input should be a valid integer, unable to parse string as an integer"
    indices=0,,1: 422 "query.indices: Input should be a valid integer, unable to parse string as an integer"
    start=-1: 422 "query.start: \"-1\" is not a whole number from 0 to 9223372036854775807"
    stop=x: 422 "query.stop: \"x\" is not a whole number from 0 to 9223372036854775807"
    indices=0,2: 404 "Frame 2 not found: the room has frames 0 to 1"
    indices=-1: 404 "Frame -1 not found: the room has frames 0 to 1"
    indices=9,8,7,6,5,4,3,2,10,11,12: 404 "Frame 9, 8, 7, 6, 5, 4, 3, 2, 10, 11, … not found: the room has frames 0 to 1"
    "#);
}

/// Fills a room so that a read of all frames needs more than one read of the store.
async fn long_room(fixture: &Fixture) -> Vec<String> {
    fixture.make_room("room").await;
    let marks: Vec<_> = (0..200).map(|number| format!("{number:05000}")).collect();
    for marks in marks.chunks(50) {
        let marks: Vec<_> = marks.iter().map(String::as_str).collect();
        fixture.append("room", &marks).await;
    }
    // Longer than one read of the store returns.
    let large = "x".repeat(3 << 20);
    fixture.append("room", &[&large, "last"]).await;
    [marks, vec![large, "last".to_owned()]].concat()
}

pub(crate) async fn a_long_read_comes_in_chunks(fixture: Fixture) {
    let marks = long_room(&fixture).await;
    let request = request(Some(ME), "GET /v1/rooms/room/frames").body(Body::empty());
    let response = fixture.send(request.unwrap()).await;
    let mut body = response.into_body();
    let (mut chunks, mut all) = (0, Vec::new());
    while let Some(chunk) = body.frame().await {
        all.extend_from_slice(&chunk.unwrap().into_data().unwrap());
        chunks += 1;
    }
    assert!(chunks > 3, "{chunks}");
    let found: Vec<_> = frames_in(&all).iter().map(mark).collect();
    assert_eq!(found, marks);
    let some = fixture
        .get("/v1/rooms/room/frames?indices=201,200,0,199")
        .await
        .marks();
    let expected = [&marks[201], &marks[200], &marks[0], &marks[199]];
    assert!(some.iter().eq(expected));
}

pub(crate) async fn a_read_that_loses_a_frame_breaks_off(fixture: Fixture) {
    long_room(&fixture).await;
    let request = request(Some(ME), "GET /v1/rooms/room/frames").body(Body::empty());
    let response = fixture.send(request.unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/199", Value::Null)
        .await;
    let read = response.into_body().collect().await;
    let error = read.expect_err("it must not look whole");
    assert!(error.to_string().contains("Frame"), "{error}");
}

pub(crate) async fn a_read_goes_on_across_gaps_and_later_deletes(fixture: Fixture) {
    let mut marks = long_room(&fixture).await;
    for number in [150, 3, 70] {
        let line = format!("DELETE /v1/rooms/room/frames/{number}");
        fixture.ask(ME, &line, Value::Null).await;
        marks.remove(number);
    }
    assert!(fixture.marks("room").await == marks);
    let request = request(Some(ME), "GET /v1/rooms/room/frames?start=50").body(Body::empty());
    let response = fixture.send(request.unwrap()).await;
    // The frames after the deleted one get other numbers, and are found there.
    fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
        .await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let found: Vec<_> = frames_in(&body).iter().map(mark).collect();
    assert!(found == marks[50..]);
    let replaced = json!({ "data": in_json(&frame("new")) });
    fixture
        .ask(ME, "PUT /v1/rooms/room/frames/100", replaced)
        .await;
    marks.remove(0);
    marks[100] = "new".to_owned();
    assert!(fixture.marks("room").await == marks);
}
