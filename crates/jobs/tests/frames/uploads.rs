use http::StatusCode;
use serde_json::{Value, json};
use wakeline_jobs::frame::{FrameLimits, msgpack::put_array};

use crate::fixture::{Fixture, ME, frame, frame_of, in_json};

pub(crate) async fn json_and_messagepack_uploads_store_the_same_frames(fixture: Fixture) {
    fixture.make_room("room").await;
    let one = frame_of(&[
        ("arrays.colors", b"\x90"),
        ("arrays.radii", &[7; 300]),
        ("mark", b"a"),
    ]);
    let two = frame("b");
    let frames = json!({"frames": [in_json(&one), in_json(&two)]});
    fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    let mut packed = Vec::new();
    put_array(&mut packed, 2);
    packed.extend_from_slice(one.bytes());
    packed.extend_from_slice(two.bytes());
    let done = fixture
        .upload("POST /v1/rooms/room/frames", packed.clone())
        .await;
    assert_eq!(done.status, StatusCode::CREATED);
    let plain = json!({"arrays.colors": "kA==", "arrays.radii": "", "mark": "Yw=="});
    fixture
        .ask(
            ME,
            "POST /v1/rooms/room/frames",
            json!({ "frames": [plain] }),
        )
        .await;

    let all = fixture.get("/v1/rooms/room/frames?stop=4").await;
    assert_eq!(all.frames(), [one.clone(), two.clone(), one, two]);
    // A frame uploaded as MessagePack is read back byte by byte.
    assert_eq!(
        fixture
            .get("/v1/rooms/room/frames?start=2&stop=4")
            .await
            .body,
        packed
    );
    assert_eq!(fixture.get("/v1/rooms/room/frames/4").await.marks(), ["c"]);
    let whole = frame("A");
    fixture
        .upload("PUT /v1/rooms/room/frames/0", &whole.bytes()[..])
        .await;
    assert_eq!(
        fixture.get("/v1/rooms/room/frames/0").await.frames(),
        [whole]
    );
}

async fn refused(fixture: &Fixture, line: &str, body: Value) -> String {
    let refused = fixture.ask(ME, line, body).await;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        refused.text()
    );
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(refused.json()["type"], "/v1/problems/unprocessable-content");
    refused.json()["detail"].as_str().unwrap().to_owned()
}

pub(crate) async fn malformed_frames_are_refused_with_the_position(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    let good = in_json(&frame("b"));
    let append = "POST /v1/rooms/room/frames";
    let put = "PUT /v1/rooms/room/frames/0";
    let mut texts = Vec::new();
    for (line, body) in [
        (append, json!({})),
        (append, json!({"frames": []})),
        (append, json!({"frames": 5})),
        (append, json!({"frames": [5]})),
        (append, json!({"frames": [good, {"mark": 5}]})),
        (append, json!({"frames": [good, {"mark": "%"}]})),
        (append, json!({"frames": [good, {"b64:%": ""}]})),
        (
            append,
            json!({"frames": [good, {"mark": "", "b64:bWFyaw==": ""}]}),
        ),
        (append, json!({"frames": [good, {"arrays.colors": ""}]})),
        (append, json!({"frames": [good, {}]})),
        (put, json!({})),
        (put, json!({"data": {"arrays.radii": ""}})),
    ] {
        texts.push(refused(&fixture, line, body).await);
    }
    for (line, body) in [
        (append, &b"\x80"[..]),
        (append, b"\x90"),
        (append, b"\x91\x81\xa1a"),
        (append, b"\x91\x80"),
        (
            append,
            b"\x91\x82\xadarrays.colors\x00\xacarrays.radii\x00\xc0",
        ),
        (put, b"\x91\x80"),
        (put, b"\x80"),
        ("PATCH /v1/rooms/room/frames/0", b"\x82\xa1a\x00\xa1a\x00"),
        ("PATCH /v1/rooms/room/frames/0", b""),
    ] {
        let refused = fixture.upload(line, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        texts.push(refused.json()["detail"].as_str().unwrap().to_owned());
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    body.frames: missing at line 1 column 2
    body.frames: 0 frames; 1 to 1000 are taken at once (jobs.request_frames)
    body.frames: invalid type: integer, expected a sequence at line 1 column 11
    body.frames[0]: invalid type: integer, expected an object at line 1 column 1
    body.frames[1].mark: invalid type: integer, expected a string at line 1 column 9
    body.frames[1]: the value of mark is not base64 (Invalid symbol 37, offset 0.)
    body.frames[1]: the key b64:% is not base64 (Invalid symbol 37, offset 0.)
    body.frames[1]: the key mark is there twice
    body.frames[1]: missing required keys: arrays.radii
    body.frames[1]: missing required keys: arrays.colors, arrays.radii
    body.data: missing at line 1 column 2
    body.data: missing required keys: arrays.colors
    body: not a frame as MessagePack: an array is expected
    body.frames: 0 frames; 1 to 1000 are taken at once (jobs.request_frames)
    body.frames[0]: not a frame as MessagePack: it breaks off
    body.frames[0]: missing required keys: arrays.colors, arrays.radii
    body: not a frame as MessagePack: there is more after its end
    body: not a frame as MessagePack: a map is expected
    body: missing required keys: arrays.colors, arrays.radii
    body: the key a is there twice
    body: not a frame as MessagePack: it breaks off
    ");
    assert_eq!(fixture.marks("room").await, ["a"]);
}

pub(crate) async fn frames_over_a_limit_are_refused_with_the_limit(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| {
        limits.request = 2;
        limits.frame = FrameLimits {
            bytes: 200,
            keys: 4,
            key: 20,
        };
    });
    fixture.make_room("room").await;
    let append = "POST /v1/rooms/room/frames";
    let with = |key: &str, value: &[u8]| {
        let required = [
            ("arrays.colors", &b""[..]),
            ("arrays.radii", b""),
            ("mark", b"a"),
        ];
        in_json(&frame_of(&[&required[..], &[(key, value)]].concat()))
    };
    let mut many = with("d", b"");
    many["e"] = json!("");
    let texts = [
        refused(
            &fixture,
            append,
            json!({"frames": [with("d", b""), with("d", b""), with("d", b"")]}),
        )
        .await,
        refused(&fixture, append, json!({ "frames": [many] })).await,
        refused(
            &fixture,
            append,
            json!({"frames": [with(&"k".repeat(21), b"")]}),
        )
        .await,
        refused(&fixture, append, json!({"frames": [with("d", &[0; 200])]})).await,
    ];
    insta::assert_snapshot!(texts.join("\n"), @"
    body.frames: 3 frames; 1 to 2 are taken at once (jobs.request_frames)
    body.frames[0]: more than 4 keys, the limit of this server (jobs.frame_keys)
    body.frames[0]: a key of more than 20 bytes, the limit of this server
    body.frames[0]: longer than 200 bytes, the limit of this server (jobs.frame_bytes)
    ");
    fixture.append("room", &["a"]).await;
    let part = frame_of(&[("d", b""), ("e", b"")]);
    let merged = fixture
        .upload("PATCH /v1/rooms/room/frames/0", &part.bytes()[..])
        .await;
    assert_eq!(merged.status, StatusCode::UNPROCESSABLE_ENTITY);
    let refused = fixture.get("/v1/rooms/room/frames?indices=0,0,0").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.json()["detail"], @r#""query.indices: more than 2 numbers, the limit of this server (jobs.request_frames)""#);
}
