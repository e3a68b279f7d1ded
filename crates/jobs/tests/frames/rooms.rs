use http::StatusCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, TestAnswer, request};

async fn make(fixture: &Fixture, room: &str, from: Option<&str>) -> TestAnswer {
    let body = match from {
        Some(from) => json!({"room_id": room, "copy_from": from}),
        None => json!({ "room_id": room }),
    };
    fixture.ask(ME, "POST /v1/rooms", body).await
}

pub(crate) async fn a_room_is_created_once(fixture: Fixture) {
    let made = make(&fixture, "room-s", Some("@none")).await;
    assert_eq!(made.status, StatusCode::CREATED);
    insta::assert_snapshot!(made.text(), @r#"{"status":"ok","room_id":"room-s","frame_count":0,"created":true}"#);
    fixture.append("room-s", &["a", "b"]).await;
    let again = make(&fixture, "room-s", None).await;
    assert_eq!(again.status, StatusCode::OK);
    insta::assert_snapshot!(again.text(), @r#"{"status":"ok","room_id":"room-s","frame_count":2,"created":false}"#);

    let mut room = fixture.get("/v1/rooms/room-s").await.json();
    let created_at = room["created_at"].take();
    assert!(created_at.as_str().unwrap().ends_with('Z'), "{created_at}");
    insta::assert_snapshot!(room, @r#"{"created_at":null,"frame_count":2,"id":"room-s","locked":false,"mounted":false,"room_id":"room-s"}"#);
    let none = fixture.get("/v1/rooms/nowhere").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    insta::assert_snapshot!(none.text(), @r#"{"type":"/v1/problems/room-not-found","title":"Not Found","status":404,"detail":"Room 'nowhere' not found"}"#);
}

pub(crate) async fn a_room_begins_with_the_frames_of_another(fixture: Fixture) {
    fixture.make_room("one").await;
    fixture.append("one", &["a", "b", "c", "d"]).await;
    fixture
        .ask(ME, "DELETE /v1/rooms/one/frames/1", Value::Null)
        .await;
    let made = make(&fixture, "two", Some("one")).await;
    assert_eq!(made.json()["frame_count"], 3);
    assert_eq!(fixture.marks("two").await, ["a", "c", "d"]);
    let empty = make(&fixture, "three", Some("@empty")).await;
    assert_eq!(empty.json()["frame_count"], 1);
    let frames = fixture.get("/v1/rooms/three/frames").await.frames();
    assert_eq!(frames[0].keys(), [] as [&str; 0]);
    let nothing = make(&fixture, "four", None).await;
    assert_eq!(nothing.json()["frame_count"], 0);
    let copy = make(&fixture, "five", Some("four")).await;
    assert_eq!(copy.json()["frame_count"], 0);
    fixture.append("five", &["x"]).await;
    assert_eq!(fixture.marks("five").await, ["x"]);
}

pub(crate) async fn a_copied_room_changes_independently(fixture: Fixture) {
    fixture.make_room("one").await;
    fixture.append("one", &["a", "b"]).await;
    make(&fixture, "two", Some("one")).await;
    fixture.append("two", &["c"]).await;
    fixture
        .ask(ME, "DELETE /v1/rooms/two/frames/0", Value::Null)
        .await;
    fixture
        .ask(ME, "DELETE /v1/rooms/one/frames/1", Value::Null)
        .await;
    assert_eq!(fixture.marks("one").await, ["a"]);
    assert_eq!(fixture.marks("two").await, ["b", "c"]);
}

pub(crate) async fn a_copy_of_an_unknown_mounted_or_large_room_is_refused(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.copy = 100);
    fixture.make_room("large").await;
    fixture.append("large", &["a", &"b".repeat(100)]).await;
    fixture.make_room("mounted").await;
    fixture.mount("mounted", 3).await;
    let mut refusals = Vec::new();
    for from in ["nowhere", "mounted", "large", "@other"] {
        let refused = make(&fixture, "new", Some(from)).await;
        refusals.push(format!(
            "{} {}",
            refused.status.as_u16(),
            refused.json()["detail"]
        ));
    }
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    404 "Room 'nowhere' not found"
    409 "Room 'mounted' is read-only: its frames come from a provider"
    422 "body.copy_from: the frames of 'large' are 189 bytes, and 100 are copied at most (jobs.room_copy)"
    422 "body.copy_from: '@other' is neither a room nor @empty nor @none"
    "#);
    let none = fixture.get("/v1/rooms/new").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

pub(crate) async fn rooms_have_pages_newest_first(fixture: Fixture) {
    for room in ["one", "two", "three"] {
        fixture.make_room(room).await;
    }
    fixture.append("two", &["a"]).await;
    let page = fixture.get("/v1/rooms?limit=2&offset=1").await.json();
    let shown = |page: &Value| {
        let items = page["items"].as_array().unwrap().clone();
        let items = items
            .iter()
            .map(|room| (room["id"].clone(), room["frame_count"].clone()));
        items.collect::<Vec<_>>()
    };
    let expected = [("two".into(), 1.into()), ("one".into(), 0.into())];
    assert_eq!(shown(&page), expected);
    assert_eq!(page["total"], 3);
    assert_eq!((&page["limit"], &page["offset"]), (&json!(2), &json!(1)));
    let none = fixture.get("/v1/rooms?limit=0").await.json();
    assert_eq!((shown(&none).len(), &none["total"]), (0, &json!(3)));
    let refused = fixture.get("/v1/rooms?limit=501").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(refused.text(), @r#"{"type":"/v1/problems/unprocessable-content","title":"Unprocessable Content","status":422,"detail":"query.limit: \"501\" is not a whole number from 0 to 500"}"#);
}

pub(crate) async fn names_reserved_for_scopes_are_no_room_names(fixture: Fixture) {
    for name in ["@global", "@internal", "a@b", "a:b", ""] {
        let refused = make(&fixture, name, None).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}");
        assert_eq!(refused.json()["type"], "/v1/problems/invalid-room-id");
    }
    let body = json!({"copy_from": "@none"});
    let unnamed = fixture.ask(ME, "POST /v1/rooms", body).await;
    assert_eq!(unnamed.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(unnamed.text(), @r#"{"type":"/v1/problems/unprocessable-content","title":"Unprocessable Content","status":422,"detail":"body.room_id: missing at line 1 column 21"}"#);
    for line in [
        "GET /v1/rooms/a%00b",
        "GET /v1/rooms/a:b/frames",
        "GET /v1/rooms/a%00/frames/0",
    ] {
        let refused = fixture.ask(ME, line, Value::Null).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{line}");
    }
    let refused = make(&fixture, "room", Some("a\0")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    make(&fixture, "ä b/c", None).await;
    let found = fixture.get("/v1/rooms/%C3%A4%20b%2Fc").await;
    assert_eq!(found.json()["id"], "ä b/c");
}

pub(crate) async fn one_of_many_concurrent_callers_creates_the_room(fixture: Fixture) {
    fixture.make_room("source").await;
    fixture.append("source", &["a", "b"]).await;
    let making = (0..10).map(|_| make(&fixture, "new", Some("source")));
    let made = futures_util::future::join_all(making).await;
    let count = |status| made.iter().filter(|made| made.status == status).count();
    assert_eq!((count(StatusCode::CREATED), count(StatusCode::OK)), (1, 9));
    assert!(made.iter().all(|made| made.json()["frame_count"] == 2));
    assert_eq!(fixture.marks("new").await, ["a", "b"]);
}

pub(crate) async fn callers_without_a_token_are_refused_on_every_route(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.append("room", &["a"]).await;
    for line in [
        "POST /v1/rooms",
        "GET /v1/rooms",
        "GET /v1/rooms/room",
        "PATCH /v1/rooms/room",
        "POST /v1/rooms/room/chat/messages",
        "GET /v1/rooms/room/chat/messages",
        "POST /v1/rooms/room/progress",
        "PATCH /v1/rooms/room/progress/a",
        "DELETE /v1/rooms/room/progress/a",
        "GET /v1/rooms/room/frames",
        "POST /v1/rooms/room/frames",
        "GET /v1/rooms/room/frames/0",
        "GET /v1/rooms/room/frames/0/metadata",
        "PUT /v1/rooms/room/frames/0",
        "PATCH /v1/rooms/room/frames/0",
        "DELETE /v1/rooms/room/frames/0",
    ] {
        let request = request(None, line).body(axum::body::Body::empty()).unwrap();
        let refused = TestAnswer::of(fixture.send(request).await).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{line}");
        assert_eq!(refused.text(), r#"{"detail":"Unauthorized"}"#);
    }
    assert_eq!(fixture.marks("room").await, ["a"]);
}
