use std::time::Duration;

use anyhow::Result;
use wakeline_jobs::socket::Limits;
use wakeline_testkit::eventually;

use crate::{
    fixture::{Fixture, limits},
    recording_backend::WORKER,
};

fn join() -> String {
    format!(r#"42["join_provider_room",{{"provider_name":"anna:fs:x","worker_id":"{WORKER}"}}]"#)
}

const ROOM: &str = "providers:anna:fs:x";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut() -> Result<()> {
    let impatient = Limits {
        ping_timeout: Duration::from_secs(1),
        buffer: 100_000,
        ..limits()
    };
    let fixture = Fixture::with(impatient).await?;
    let mut anna = fixture.websocket("anna").await?;
    anna.say(&join()).await?;
    anna.receive_all().await?;
    // More than the connection holds and less than its buffer: only the standstill shows it.
    let long = format!("\"{}\"", "x".repeat(10_000));
    for _ in 0..5_000 {
        fixture.emit(ROOM, "long", &long);
    }
    let events = ["joined anna:fs:x", "left anna:fs:x"];
    fixture.door.until_events(&events).await;
    assert_eq!(fixture.sockets.connected(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_misses_an_event_is_cut() -> Result<()> {
    let narrow = Limits {
        buffer: 8,
        ..limits()
    };
    let fixture = Fixture::with(narrow).await?;
    let anna = fixture.poller("anna").await?;
    anna.say(&join()).await?;
    eventually("it to have joined", async || {
        fixture.sockets.members(ROOM) == 1
    })
    .await;
    for _ in 0..9 {
        fixture.emit(ROOM, "event", "{}");
    }
    fixture
        .door
        .until_events(&["joined anna:fs:x", "left anna:fs:x"])
        .await;
    assert_ne!(anna.poll().await?.status, 200);
    let again = fixture.poller("anna").await?;
    again.say(&join()).await?;
    eventually("it to have come back", async || {
        fixture.sockets.members(ROOM) == 1
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_too_much_at_once_is_cut() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut anna = fixture.websocket("anna").await?;
    anna.receive_all().await?;
    let _silent = fixture.door.block_decisions().await;
    let mut sent = Ok(());
    for _ in 0..5_000 {
        sent = anna.say(&join()).await;
        if sent.is_err() {
            break;
        }
    }
    drop(sent);
    assert_eq!(anna.hear().await?, None);
    eventually("it to be gone", async || fixture.sockets.connected() == 0).await;
    Ok(())
}

/// Otherwise the client would wait for ever for events of a room that it has not joined.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_join_cannot_be_decided_is_cut() -> Result<()> {
    let fixture = Fixture::new().await?;
    for kind in ["provider", "job"] {
        let mut anna = fixture.websocket("anna").await?;
        let join = format!(
            r#"42["join_{kind}_room",{{"{kind}_name":"nowhere:fs:x","worker_id":"{WORKER}"}}]"#
        );
        anna.say(&join).await?;
        assert_eq!(anna.hear().await?, None);
        eventually("it to be gone", async || fixture.sockets.connected() == 0).await;
    }
    Ok(())
}
