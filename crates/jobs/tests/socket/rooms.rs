use std::sync::Arc;

use anyhow::Result;
use wakeline_testkit::eventually;

use crate::{fixture::Fixture, recording_backend::WORKER};

fn join(provider: &str) -> String {
    format!(r#"42["join_provider_room",{{"provider_name":"{provider}","worker_id":"{WORKER}"}}]"#)
}

fn leave(provider: &str) -> String {
    format!(r#"42["leave_provider_room",{{"provider_name":"{provider}","worker_id":"{WORKER}"}}]"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_the_room_as_it_was_written() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (mut anna, mut ben) = (
        fixture.websocket("anna").await?,
        fixture.poller("anna").await?,
    );
    let outside = fixture.websocket("root").await?;
    for packet in [join("anna:fs:x"), join("anna:fs:x")] {
        anna.say(&packet).await?;
        ben.say(&packet).await?;
    }
    let room = "providers:anna:fs:x";
    eventually("two to be in the room", async || {
        fixture.sockets.members(room) == 2
    })
    .await;
    let payload = r#"{"z":null,"a":{"b":[null,1.50,"ü"]},"m":""}"#;
    fixture.emit(room, "provider_request", payload);
    let expected = format!(r#"42["provider_request",{payload}]"#);
    assert_eq!(anna.hear().await?, Some(expected.clone()));
    assert_eq!(ben.hear().await?, expected);
    drop(outside);
    fixture
        .door
        .until_events(&["joined anna:fs:x", "joined anna:fs:x"])
        .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_right_after_the_connect_are_handled() -> Result<()> {
    let fixture = Fixture::new().await?;
    for _ in 0..50 {
        let mut anna = fixture.websocket("anna").await?;
        anna.say(&join("anna:fs:x")).await?;
        let there = async || fixture.sockets.members("providers:anna:fs:x") == 1;
        eventually("it to have joined", there).await;
        anna.say("41").await?;
        let gone = async || fixture.sockets.members("providers:anna:fs:x") == 0;
        eventually("it to have gone", gone).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_right_to_serve_does_not_join() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut ben = fixture.websocket("ben").await?;
    ben.say(&join("anna:fs:x")).await?;
    let job = r#"42["join_job_room",{"job_name":"anna:m:Rot","worker_id":null}]"#;
    ben.say(job).await?;
    ben.receive_all().await?;
    assert_eq!(fixture.sockets.members("providers:anna:fs:x"), 0);
    assert_eq!(fixture.sockets.members("jobs:anna:m:Rot"), 0);
    let mut root = fixture.websocket("root").await?;
    root.say(job).await?;
    root.receive_all().await?;
    assert_eq!(fixture.sockets.members("jobs:anna:m:Rot"), 1);
    assert!(fixture.door.events().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_form_are_ignored() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut root = fixture.websocket("root").await?;
    for packet in [
        r#"42["join_provider_room"]"#,
        r#"42["join_provider_room",null]"#,
        r#"42["join_provider_room",{"provider_name":"two:parts"}]"#,
        r#"42["join_provider_room",[{"provider_name":"a:b:c"}]]"#,
        r#"42["unheard_of",{"provider_name":"a:b:c"}]"#,
    ] {
        root.say(packet).await?;
    }
    root.receive_all().await?;
    assert!(fixture.door.events().is_empty());
    assert_eq!(fixture.sockets.connected(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leave_does_not_overtake_its_join() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut anna = fixture.websocket("anna").await?;
    let silent = fixture.door.block_decisions().await;
    anna.say(&join("anna:fs:x")).await?;
    anna.say(&leave("anna:fs:x")).await?;
    drop(silent);
    anna.receive_all().await?;
    assert_eq!(fixture.sockets.members("providers:anna:fs:x"), 0);
    fixture
        .door
        .until_events(&["joined anna:fs:x", "left anna:fs:x"])
        .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_during_its_join_does_not_join() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut anna = fixture.websocket("anna").await?;
    anna.receive_all().await?;
    let silent = fixture.door.block_decisions().await;
    anna.say(&join("anna:fs:x")).await?;
    drop(anna);
    eventually("it to be gone", async || fixture.sockets.connected() == 0).await;
    drop(silent);
    // Decided after the join of the client that disconnected, under the same lock.
    let mut root = fixture.websocket("root").await?;
    root.say(&join("root:fs:y")).await?;
    root.receive_all().await?;
    assert_eq!(fixture.sockets.members("providers:anna:fs:x"), 0);
    fixture.door.until_events(&["joined root:fs:y"]).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_notified_when_the_last_provider_socket_leaves() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut one = fixture.websocket("anna").await?;
    let two = fixture.poller("anna").await?;
    let mut three = fixture.websocket("anna").await?;
    one.say(&join("anna:fs:x")).await?;
    one.receive_all().await?;
    three.say(&join("anna:fs:x")).await?;
    three.receive_all().await?;
    two.say(&join("anna:fs:x")).await?;
    let joined = ["joined anna:fs:x"; 3];
    fixture.door.until_events(&joined).await;
    one.say(&leave("anna:fs:x")).await?;
    one.receive_all().await?;
    drop(three);
    eventually("the connection to be gone", async || {
        fixture.sockets.connected() == 2
    })
    .await;
    assert_eq!(fixture.sockets.members("providers:anna:fs:x"), 1);
    fixture.door.until_events(&joined).await;
    // Engine.IO's close packet of a polling client.
    two.say("1").await?;
    let mut events = joined.to_vec();
    events.push("left anna:fs:x");
    fixture.door.until_events(&events).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_may_send_to_a_socket_that_just_joined() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture
        .door
        .greets
        .set(Arc::downgrade(&fixture.sockets))
        .unwrap();
    let mut anna = fixture.websocket("anna").await?;
    let mut other = fixture.websocket("anna").await?;
    other.say(&join("anna:fs:x")).await?;
    let first = r#"42["provider_request",{"request_id":"first"}]"#;
    assert_eq!(other.hear().await?.as_deref(), Some(first));
    anna.say(&join("anna:fs:x")).await?;
    assert_eq!(anna.hear().await?.as_deref(), Some(first));
    fixture.emit("providers:anna:fs:x", "next", "{}");
    assert_eq!(other.hear().await?.as_deref(), Some(r#"42["next",{}]"#));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_enters_a_room_gets_an_acknowledgement() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut anna = fixture.poller("anna").await?;
    anna.say(r#"421["room_join",{"room_id":"r","client_type":"pyclient"}]"#)
        .await?;
    let expected = format!(
        r#"431[{{"camera_key":null,"room_id":"r","session_id":"{}"}}]"#,
        anna.sid
    );
    assert_eq!(anna.hear().await?, expected);
    assert_eq!(fixture.sockets.members("room:r"), 1);
    assert_eq!(fixture.sockets.members("room:@global"), 0);
    anna.say(r#"422["room_join",{"room_id":"s","client_type":"frontend"}]"#)
        .await?;
    assert!(anna.hear().await?.starts_with("432["));
    assert_eq!(fixture.sockets.members("room:@global"), 1);
    anna.say(r#"423["room_join",{"room_id":"locked"}]"#).await?;
    assert_eq!(anna.hear().await?, r#"433[{"status":423}]"#);
    assert_eq!(fixture.sockets.members("room:locked"), 0);
    anna.say(r#"424["room_join"]"#).await?;
    assert!(anna.hear().await?.contains("unprocessable-content"));
    Ok(())
}
