use http::StatusCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ME, OTHER, TestAnswer};

async fn say(fixture: &Fixture, room: &str, content: &str) -> TestAnswer {
    let line = format!("POST /v1/rooms/{room}/chat/messages");
    fixture.ask(ME, &line, json!({ "content": content })).await
}

async fn list(fixture: &Fixture, query: &str) -> Value {
    let page = fixture
        .get(&format!("/v1/rooms/room/chat/messages{query}"))
        .await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text());
    page.json()
}

fn contents(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["content"].as_str().unwrap())
        .collect()
}

pub(crate) async fn messages_are_listed_in_pages_newest_first(fixture: Fixture) {
    let path = "/v1/rooms/room/chat/messages";
    assert_eq!(fixture.get(path).await.status, StatusCode::NOT_FOUND);
    fixture.make_room("room").await;
    let empty = list(&fixture, "").await;
    insta::assert_snapshot!(empty, @r#"{"items":[],"metadata":{"has_more":false,"newest_timestamp":null,"oldest_timestamp":null,"total_count":0}}"#);
    let mut said = Vec::new();
    for content in ["one", "two", "three"] {
        said.push(say(&fixture, "room", content).await.json());
    }
    let first = list(&fixture, "?limit=2").await;
    assert_eq!(contents(&first), ["three", "two"]);
    assert_eq!(first["items"][0], said[2]);
    assert_eq!(first["metadata"]["has_more"], true);
    assert_eq!(first["metadata"]["total_count"], 3);
    let before = &first["metadata"]["oldest_timestamp"];
    let second = list(&fixture, &format!("?limit=2&before={before}")).await;
    assert_eq!(contents(&second), ["one"]);
    assert_eq!(second["metadata"]["has_more"], false);
    for bad in ["limit=0", "limit=101", "limit=x", "before=-1"] {
        let refused = fixture.get(&format!("{path}?{bad}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}

pub(crate) async fn only_the_newest_messages_are_kept(fixture: Fixture) {
    let fixture = fixture.with_limits(|limits| limits.messages = 2);
    fixture.make_room("room").await;
    for content in ["one", "two", "three\0"] {
        say(&fixture, "room", content).await;
    }
    let page = list(&fixture, "").await;
    assert_eq!(contents(&page), ["three\u{fffd}", "two"]);
    assert_eq!(page["metadata"]["total_count"], 2);
}

pub(crate) async fn messages_of_one_moment_have_times_of_their_own(fixture: Fixture) {
    fixture.make_room("room").await;
    let saying = (0..20).map(async |number: i32| {
        let body = json!({ "content": number.to_string() });
        let line = "POST /v1/rooms/room/chat/messages";
        fixture.ask(OTHER, line, body).await.json()["id"]
            .as_i64()
            .unwrap()
    });
    let mut ids = futures_util::future::join_all(saying).await;
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    assert_eq!(
        list(&fixture, "?limit=100").await["metadata"]["total_count"],
        20
    );
}

pub(crate) async fn a_chat_message_is_emitted_to_the_room(fixture: Fixture) {
    // A room that exists for jobs only and has no frames.
    let said = say(&fixture, "room-s", "hello").await;
    assert_eq!(said.status, StatusCode::CREATED);
    let mut document = said.json();
    let emitted = fixture.ports.emitted();
    let expected = (
        "room:room-s".to_owned(),
        "message_new".to_owned(),
        document.clone(),
    );
    assert_eq!(emitted, [expected]);
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

pub(crate) async fn a_failed_read_reported_by_the_real_client_is_recognised(fixture: Fixture) {
    let hash = "30ba47c43772e94553e235c91301cac4276d053453807f9f8eb7546b57ba94d0";
    let content = format!(
        "Provider `room-s:filesystem:local` read failed for request `{hash}`:\n```\nTraceback \
         (most recent call last):\n  File \"client.py\", line 819, in _on_provider_request\n    \
         result = instance.read(reg.handler)\nFileNotFoundError: nope\n```"
    );
    let said = say(&fixture, "room-s", &content).await;
    assert_eq!(said.status, StatusCode::CREATED);
    assert_eq!(said.json()["content"], content);
    let failed_reads = fixture.ports.failed_reads.lock().unwrap().clone();
    let expected = [
        "room-s",
        "room-s:filesystem:local",
        hash,
        "FileNotFoundError: nope",
    ];
    assert_eq!(failed_reads, [expected.map(str::to_owned)]);
    say(&fixture, "room-s", "Provider `x` is slow").await;
    assert_eq!(fixture.ports.failed_reads.lock().unwrap().len(), 1);
}

pub(crate) async fn an_empty_message_or_one_to_an_invalid_room_is_refused(fixture: Fixture) {
    let empty = say(&fixture, "room", "").await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    insta::assert_snapshot!(empty.json()["detail"], @r#""body.content: String should have at least 1 character""#);
    let line = "POST /v1/rooms/room/chat/messages";
    let nothing = fixture.ask(ME, line, Value::Null).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY);
    let nowhere = say(&fixture, "a:b", "hello").await;
    assert_eq!(nowhere.status, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.ports.emitted(), []);
}
