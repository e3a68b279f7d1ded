use http::StatusCode;
use serde_json::{Value, json};
use wakeline_jobs::frames::FramesChange;

use crate::fixture::{Fixture, ME, frame, in_json};

const ROUNDS: usize = 20;
const AT_ONCE: usize = 16;

fn counts(emitted: &[(String, String, Value)]) -> Vec<i64> {
    let counts = emitted
        .iter()
        .map(|(_, _, payload)| payload["count"].as_i64());
    counts.map(Option::unwrap).collect()
}

/// The appends run on several threads, so that what follows a commit can be overtaken.
pub(crate) async fn events_of_a_room_come_in_the_order_of_their_commits(fixture: Fixture) {
    fixture.make_room("room").await;
    let mut expected = 0;
    for _ in 0..ROUNDS {
        let appending = (0..AT_ONCE).map(|_| {
            let frames = fixture.frames.clone();
            tokio::spawn(
                async move { frames.append(ME, "room".to_owned(), vec![frame("a")]).await },
            )
        });
        for appended in futures_util::future::join_all(appending).await {
            appended.unwrap().unwrap();
        }
        let emitted = fixture.ports.wait_emitted(AT_ONCE).await;
        fixture.ports.emitted();
        let wanted: Vec<_> = (expected + 1..=expected + 16).collect();
        assert_eq!(counts(&emitted), wanted);
        expected += 16;
    }
}

pub(crate) async fn an_event_of_another_node_comes_in_its_order(fixture: Fixture) {
    fixture.make_room("room").await;
    fixture.ports.has_company(true);
    fixture.append("room", &["a"]).await;
    let change = |count| FramesChange {
        room_id: "room".to_owned(),
        action: "add".to_owned(),
        indices: None,
        count: Some(count),
        reason: None,
    };
    fixture.frames.receive_change(2, change(2));
    fixture.frames.receive_change(4, change(4));
    fixture.frames.receive_change(3, change(3));
    assert_eq!(counts(&fixture.ports.emitted()), [1, 2, 3, 4]);
    // Number 5 was lost: the next one is sent after a while, and its like at once.
    fixture.frames.receive_change(6, change(6));
    assert_eq!(counts(&fixture.ports.wait_emitted(1).await), [6]);
    fixture.frames.receive_change(5, change(5));
    assert_eq!(counts(&fixture.ports.emitted()), [6, 6]);
}

pub(crate) async fn a_refused_change_holds_up_no_event(fixture: Fixture) {
    fixture.make_room("room").await;
    let nothing = fixture
        .ask(ME, "DELETE /v1/rooms/room/frames/0", Value::Null)
        .await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    let frames = json!({"frames": [in_json(&frame("a"))]});
    fixture.ask(ME, "POST /v1/rooms/room/frames", frames).await;
    assert_eq!(counts(&fixture.ports.emitted()), [1]);
}
