use http::StatusCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, TestAnswer};

async fn start(fixture: &Fixture, id: &str) -> TestAnswer {
    let body = json!({"progress_id": id, "description": "Uploading", "unit": "frames"});
    fixture.ask(ME, "POST /v1/rooms/room/progress", body).await
}

async fn update(fixture: &Fixture, id: &str, body: Value) -> TestAnswer {
    let line = format!("PATCH /v1/rooms/room/progress/{id}");
    fixture.ask(ME, &line, body).await
}

async fn end(fixture: &Fixture, id: &str) -> TestAnswer {
    let line = format!("DELETE /v1/rooms/room/progress/{id}");
    fixture.ask(ME, &line, Value::Null).await
}

pub(crate) async fn a_tracker_is_started_updated_and_ended(fixture: Fixture) {
    fixture.make_room("room").await;
    let started = start(&fixture, "a").await;
    assert_eq!(started.status, StatusCode::CREATED);
    insta::assert_snapshot!(started.text(), @r#"{"progress_id":"a","description":"Uploading","n":0,"total":null,"elapsed":0.0,"unit":"frames"}"#);
    let body = json!({"n": 3, "total": 7, "elapsed": 1.5});
    let updated = update(&fixture, "a", body).await;
    assert_eq!(updated.status, StatusCode::OK);
    insta::assert_snapshot!(updated.text(), @r#"{"progress_id":"a","description":"Uploading","n":3,"total":7,"elapsed":1.5,"unit":"frames"}"#);
    let trackers = fixture.frames.trackers("room".to_owned()).await.unwrap();
    assert_eq!((trackers.len(), trackers[0].n), (1, 3));
    let ended = end(&fixture, "a").await;
    assert_eq!(
        (ended.status, ended.text().as_str()),
        (StatusCode::NO_CONTENT, "")
    );
    let emitted = fixture.ports.emitted();
    let emitted = emitted
        .iter()
        .map(|(room, event, payload)| format!("{room} {event} {payload}"));
    insta::assert_snapshot!(emitted.collect::<Vec<_>>().join("\n"), @r#"
    room:room progress_start {"description":"Uploading","progress_id":"a","unit":"frames"}
    room:room progress_update {"description":null,"elapsed":1.5,"n":3,"progress_id":"a","total":7,"unit":null}
    room:room progress_complete {"progress_id":"a"}
    "#);
    assert_eq!(
        fixture.frames.trackers("room".to_owned()).await.unwrap(),
        []
    );
}

pub(crate) async fn an_unknown_tracker_is_not_found(fixture: Fixture) {
    for kind in ["room-not-found", "progress-not-found"] {
        for refused in [
            update(&fixture, "a", json!({"n": 1})).await,
            end(&fixture, "a").await,
        ] {
            assert_eq!(refused.status, StatusCode::NOT_FOUND);
            assert_eq!(refused.json()["type"], format!("/v1/problems/{kind}"));
        }
        if kind == "room-not-found" {
            assert_eq!(start(&fixture, "a").await.status, StatusCode::NOT_FOUND);
        }
        let body = json!({"room_id": "room"});
        fixture.ask(ME, "POST /v1/rooms", body).await;
    }
    assert_eq!(fixture.ports.emitted(), []);
}

pub(crate) async fn malformed_trackers_are_refused(fixture: Fixture) {
    fixture.make_room("room").await;
    start(&fixture, "a").await;
    let long = "x".repeat(1_001);
    let line = "POST /v1/rooms/room/progress";
    for (body, field) in [
        (
            json!({"progress_id": "", "description": ""}),
            "body.progress_id",
        ),
        (
            json!({"progress_id": "a\0", "description": ""}),
            "body.progress_id",
        ),
        (
            json!({"progress_id": "a", "description": long}),
            "body.description",
        ),
        (
            json!({"progress_id": "a", "description": "", "unit": long}),
            "body.unit",
        ),
        (json!({"progress_id": "a"}), "body.description"),
    ] {
        let refused = fixture.ask(ME, line, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert!(refused.text().contains(field), "{}", refused.text());
    }
    for (body, field) in [
        (json!({"description": long}), "body.description"),
        (json!({"elapsed": -1}), "body.elapsed"),
        (json!({"n": 1.5}), "body.n"),
        (json!({"n": -1}), "body.n"),
        (json!({"total": -1}), "body.total"),
    ] {
        let refused = update(&fixture, "a", body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert!(refused.text().contains(field), "{}", refused.text());
    }
    assert_eq!(end(&fixture, "a%00").await.status, StatusCode::NOT_FOUND);
}

pub(crate) async fn a_tracker_with_the_same_id_begins_anew(fixture: Fixture) {
    fixture.make_room("room").await;
    start(&fixture, "a").await;
    update(&fixture, "a", json!({"n": 3})).await;
    assert_eq!(start(&fixture, "a").await.json()["n"], 0);
    assert_eq!(update(&fixture, "a", json!({})).await.json()["n"], 0);
}

pub(crate) async fn a_room_has_a_limited_number_of_trackers(fixture: Fixture) {
    fixture.make_room("room").await;
    let starting = (0..1_001).map(async |number| start(&fixture, &number.to_string()).await.status);
    let started = futures_util::future::join_all(starting).await;
    let refused = started
        .iter()
        .filter(|status| **status != StatusCode::CREATED);
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [&StatusCode::UNPROCESSABLE_ENTITY]
    );
}
