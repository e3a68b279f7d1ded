use http::StatusCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, TestAnswer};

async fn say(fixture: &Fixture, room: &str, content: &str) -> TestAnswer {
    let line = format!("POST /v1/rooms/{room}/chat/messages");
    fixture.ask(ME, &line, json!({ "content": content })).await
}

pub(crate) async fn what_is_said_goes_to_who_is_there(fixture: Fixture) {
    // A room of joblib's that has no frames.
    let said = say(&fixture, "room-s", "hello").await;
    assert_eq!(said.status, StatusCode::CREATED);
    let mut document = said.json();
    let told = fixture.ports.told();
    let expected = (
        "room:room-s".to_owned(),
        "message_new".to_owned(),
        document.clone(),
    );
    assert_eq!(told, [expected]);
    assert!(document["id"].take().is_i64());
    let at = document["created_at"].take();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    insta::assert_snapshot!(document, @r#"{"content":"hello","created_at":null,"email":null,"id":null,"room_id":"room-s","updated_at":null,"user_id":"00000000-0000-0000-0000-000000000001"}"#);
    let long = say(&fixture, "@global", &"ä".repeat(30_000)).await;
    assert_eq!(
        long.json()["content"].as_str().unwrap().chars().count(),
        20_000
    );
}

pub(crate) async fn a_failed_read_is_heard_as_the_real_client_tells_it(fixture: Fixture) {
    let hash = "30ba47c43772e94553e235c91301cac4276d053453807f9f8eb7546b57ba94d0";
    let content = format!(
        "Provider `room-s:filesystem:local` read failed for request `{hash}`:\n```\nTraceback \
         (most recent call last):\n  File \"client.py\", line 819, in _on_provider_request\n    \
         result = instance.read(reg.handler)\nFileNotFoundError: nope\n```"
    );
    let said = say(&fixture, "room-s", &content).await;
    assert_eq!(said.status, StatusCode::CREATED);
    assert_eq!(said.json()["content"], content);
    let heard = fixture.ports.heard.lock().unwrap().clone();
    let expected = [
        "room-s",
        "room-s:filesystem:local",
        hash,
        "FileNotFoundError: nope",
    ];
    assert_eq!(heard, [expected.map(str::to_owned)]);
    say(&fixture, "room-s", "Provider `x` is slow").await;
    assert_eq!(fixture.ports.heard.lock().unwrap().len(), 1);
}

pub(crate) async fn what_is_empty_or_for_no_room_is_not_said(fixture: Fixture) {
    let empty = say(&fixture, "room", "").await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(empty.json()["detail"], @r#""body.content: String should have at least 1 character""#);
    let line = "POST /v1/rooms/room/chat/messages";
    let nothing = fixture.ask(ME, line, Value::Null).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY);
    let nowhere = say(&fixture, "a:b", "hello").await;
    assert_eq!(nowhere.status, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.ports.told(), []);
}
