use http::StatusCode;
use serde_json::json;
use wakeline_jobs::{
    frame::FrameLimits,
    room::{Edited, Stamp},
};
use wakeline_testkit::CommitAlone;

use crate::ground::{Ground, ME, frame, frame_of, in_json};

fn shown(frame: &wakeline_jobs::frame::Frame) -> Vec<(String, Vec<u8>)> {
    let pairs = frame.pairs();
    let pairs =
        pairs.map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.to_vec()));
    pairs.collect()
}

pub(crate) async fn keys_are_put_beside_and_in_the_place_of_others(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a", "b"]).await;
    let part = frame_of(&[("mark", b"B"), ("info.energy", b"\x05")]);
    let merged = ground
        .upload("PATCH /v1/rooms/room/frames/1", &part.bytes()[..])
        .await;
    assert_eq!(merged.status, StatusCode::OK);
    insta::assert_snapshot!(merged.text(), @r#"{"index":1,"updated_keys":["mark","info.energy"]}"#);
    assert_eq!(ground.marks("room").await, ["a", "B"]);
    let keys = ground.get("/v1/rooms/room/frames/1").await.frames()[0].keys();
    assert_eq!(
        keys,
        ["arrays.colors", "arrays.radii", "mark", "info.energy"]
    );
    let data = json!({ "data": in_json(&frame_of(&[("mark", b"C")])) });
    ground.ask(ME, "PATCH /v1/rooms/room/frames/1", data).await;
    assert_eq!(ground.marks("room").await, ["a", "C"]);
}

pub(crate) async fn what_is_sent_in_the_open_is_kept_as_it_is_written(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a"]).await;
    // {"info.x": {"nd": true, "type": "<f4", "shape": [1]}}
    let value = b"\x83\xa2nd\xc3\xa4type\xa3<f4\xa5shape\x91\x01";
    let part = [&b"\x81\xa6info.x"[..], value].concat();
    ground.upload("PATCH /v1/rooms/room/frames/0", part).await;
    let kept = ground
        .get("/v1/rooms/room/frames/0?keys=info.x")
        .await
        .frames();
    assert_eq!(shown(&kept[0]), [("info.x".to_owned(), value.to_vec())]);
    let metadata = ground.get("/v1/rooms/room/frames/0/metadata").await.json();
    let expected = json!({"dtype": "<f4", "shape": [1], "type": "array"});
    assert_eq!(metadata["metadata"]["info.x"], expected);
}

pub(crate) async fn merges_beside_one_another_are_all_there(ground: Ground) {
    ground.make_room("room").await;
    ground.append("room", &["a"]).await;
    let merging = (0..8).map(|number| {
        let key = format!("info.{number}");
        let part = frame_of(&[(&key, b"\x01")]);
        let ground = &ground;
        async move {
            let body = &part.bytes()[..];
            ground
                .upload("PATCH /v1/rooms/room/frames/0", body)
                .await
                .status
        }
    });
    let done = futures_util::future::join_all(merging).await;
    assert_eq!(done, [StatusCode::OK; 8]);
    let keys = ground.get("/v1/rooms/room/frames/0").await.frames()[0].keys();
    assert_eq!(keys.len(), 11, "{keys:?}");
}

pub(crate) async fn a_merge_into_what_was_replaced_meanwhile_is_done_on_the_new_one(
    ground: Ground,
) {
    ground.make_room("room").await;
    ground.append("room", &["a", "b"]).await;
    let found = ground.store.frame("room".to_owned(), 0).await.unwrap();
    let old = found.unwrap().1.unwrap();
    // What has the old stamp is refused, whether the frame was replaced or another is there now.
    let replace = async |stamp: Option<Stamp>| {
        let new = frame("x")
            .merged(&frame_of(&[]), FrameLimits::default())
            .unwrap();
        ground
            .store
            .replace("room".to_owned(), 0, new, stamp)
            .commit_alone()
            .await
            .unwrap()
    };
    assert_eq!(replace(None).await, Edited::Done(2));
    assert_eq!(replace(Some(old.stamp)).await, Edited::Changed);
    let found = ground.store.frame("room".to_owned(), 0).await.unwrap();
    let now = found.unwrap().1.unwrap();
    assert_eq!(replace(Some(now.stamp)).await, Edited::Done(2));
    let found = ground.store.frame("room".to_owned(), 0).await.unwrap();
    let last = found.unwrap().1.unwrap();
    ground
        .store
        .delete("room".to_owned(), 0)
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(replace(Some(last.stamp)).await, Edited::Changed);
    assert_eq!(ground.marks("room").await, ["b"]);
}
