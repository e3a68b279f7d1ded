use http::StatusCode;
use serde_json::json;
use wakeline_jobs::{
    frame::FrameLimits,
    room::{EditOutcome, FrameVersion},
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, ME, frame, frame_of, in_json};

fn shown(frame: &wakeline_jobs::frame::Frame) -> Vec<(String, Vec<u8>)> {
    let pairs = frame.pairs();
    let pairs =
        pairs.map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.to_vec()));
    pairs.collect()
}

pub(crate) async fn a_merge_adds_and_replaces_keys(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let part = frame_of(&[("mark", b"B"), ("info.energy", b"\x05")]);
    let merged = fixture
        .upload("PATCH /v1/rooms/room/frames/1", &part.bytes()[..])
        .await;
    assert_eq!(merged.status, StatusCode::OK);
    insta::assert_snapshot!(merged.text(), @r#"{"index":1,"updated_keys":["mark","info.energy"]}"#);
    assert_eq!(fixture.marks("room").await, ["a", "B"]);
    let keys = fixture.get("/v1/rooms/room/frames/1").await.frames()[0].keys();
    assert_eq!(
        keys,
        ["arrays.colors", "arrays.radii", "mark", "info.energy"]
    );
    let data = json!({ "data": in_json(&frame_of(&[("mark", b"C")])) });
    fixture.ask(ME, "PATCH /v1/rooms/room/frames/1", data).await;
    assert_eq!(fixture.marks("room").await, ["a", "C"]);
}

pub(crate) async fn values_that_are_not_packed_as_binary_are_kept_unchanged(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    // {"info.x": {"nd": true, "type": "<f4", "shape": [1]}}
    let value = b"\x83\xa2nd\xc3\xa4type\xa3<f4\xa5shape\x91\x01";
    let part = [&b"\x81\xa6info.x"[..], value].concat();
    fixture.upload("PATCH /v1/rooms/room/frames/0", part).await;
    let kept = fixture
        .get("/v1/rooms/room/frames/0?keys=info.x")
        .await
        .frames();
    assert_eq!(shown(&kept[0]), [("info.x".to_owned(), value.to_vec())]);
    let metadata = fixture.get("/v1/rooms/room/frames/0/metadata").await.json();
    let expected = json!({"dtype": "<f4", "shape": [1], "type": "array"});
    assert_eq!(metadata["metadata"]["info.x"], expected);
}

pub(crate) async fn concurrent_merges_are_all_kept(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    let merging = (0..8).map(|number| {
        let key = format!("info.{number}");
        let part = frame_of(&[(&key, b"\x01")]);
        let fixture = &fixture;
        async move {
            let body = &part.bytes()[..];
            fixture
                .upload("PATCH /v1/rooms/room/frames/0", body)
                .await
                .status
        }
    });
    let done = futures_util::future::join_all(merging).await;
    assert_eq!(done, [StatusCode::OK; 8]);
    let keys = fixture.get("/v1/rooms/room/frames/0").await.frames()[0].keys();
    assert_eq!(keys.len(), 11, "{keys:?}");
}

pub(crate) async fn a_merge_during_a_replacement_is_applied_to_the_new_frame(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a", "b"]).await;
    let found = fixture.store.frame("room".to_owned(), 0).await.unwrap();
    let old = found.unwrap().1.unwrap();
    // A write with the old version is refused, whether the frame was replaced or deleted.
    let replace = async |version: Option<FrameVersion>| {
        let new = frame("x")
            .merged(&frame_of(&[]), FrameLimits::default())
            .unwrap();
        fixture
            .store
            .replace("room".to_owned(), None, 0, new, version)
            .done()
            .await
    };
    // The append was the first change.
    let done = |change| EditOutcome::Done { total: 2, change };
    assert_eq!(replace(None).await, done(2));
    assert_eq!(replace(Some(old.version)).await, EditOutcome::Changed);
    let found = fixture.store.frame("room".to_owned(), 0).await.unwrap();
    let now = found.unwrap().1.unwrap();
    assert_eq!(replace(Some(now.version)).await, done(3));
    let found = fixture.store.frame("room".to_owned(), 0).await.unwrap();
    let last = found.unwrap().1.unwrap();
    fixture
        .store
        .delete("room".to_owned(), None, 0)
        .done()
        .await;
    assert_eq!(replace(Some(last.version)).await, EditOutcome::Changed);
    assert_eq!(fixture.marks("room").await, ["b"]);
}
