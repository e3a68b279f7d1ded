//! Sessions of clients that have not connected with a token.

use std::time::Duration;

use anyhow::Result;
use wakeline_jobs::socket::Limits;
use wakeline_testkit::eventually;

use crate::{
    fixture::{Fixture, limits},
    poller::{Poller, request},
    websocket::WebSocket,
};

const OPENING: &str = "/socket.io/?transport=polling&EIO=4";

fn four_places() -> Limits {
    Limits {
        connections: 4,
        ..limits()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_token_do_not_keep_users_with_a_token_out() -> Result<()> {
    let fixture = Fixture::with(four_places()).await?;
    let mut strangers = Vec::new();
    for _ in 0..10 {
        strangers.push(Poller::open(fixture.address).await?);
    }
    let mut websockets = Vec::new();
    for _ in 0..10 {
        websockets.push(WebSocket::open(fixture.address).await?);
    }
    let _one = fixture.poller("anna").await?;
    let _two = fixture.websocket("anna").await?;
    let _three = fixture.poller("ben").await?;
    eventually("three to be connected", async || {
        fixture.sockets.connected() == 3
    })
    .await;
    // A session without a token may have the last place.
    let opened = request(fixture.address, "GET", OPENING, "").await?;
    assert_eq!(opened.status, 200);
    let _four = fixture.websocket("ben").await?;
    let refused = request(fixture.address, "GET", OPENING, "").await?;
    assert_eq!(refused.status, 503);
    assert!(
        refused.body.contains("too-many-sockets"),
        "{}",
        refused.body
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_token_get_at_most_half_of_the_connections() -> Result<()> {
    let fixture = Fixture::with(four_places()).await?;
    let mut strangers = Vec::new();
    for _ in 0..10 {
        strangers.push(Poller::open(fixture.address).await?);
    }
    let mut connected = 0;
    for stranger in &mut strangers {
        let answer = stranger.connect("anna").await;
        connected += usize::from(answer.is_ok_and(|answer| answer.starts_with("40")));
    }
    assert_eq!(
        connected, 2,
        "the others were cut for those that came later"
    );
    Ok(())
}

/// The session is closed long before the ping timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_does_not_connect_is_closed_soon() -> Result<()> {
    let patient = Limits {
        ping_interval: Duration::from_secs(600),
        ping_timeout: Duration::from_secs(600),
        ..limits()
    };
    let fixture = Fixture::with(patient).await?;
    let mut silent = WebSocket::open(fixture.address).await?;
    let mut refused = WebSocket::open(fixture.address).await?;
    refused.say(r#"40{"token":"junk"}"#).await?;
    let refusal = refused.hear().await?.unwrap_or_default();
    assert!(refusal.starts_with("44"), "{refusal}");
    let poller = Poller::open(fixture.address).await?;
    let mut anna = fixture.websocket("anna").await?;
    for websocket in [&mut silent, &mut refused] {
        // Engine.IO's close packet comes first.
        while let Some(packet) = websocket.hear().await? {
            assert_eq!(packet, "1");
        }
    }
    eventually("the polling session to end", async || {
        // The session does not exist any more: otherwise the poll would wait.
        poller.say("3").await.is_err()
    })
    .await;
    anna.receive_all().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_message_before_the_connect_is_refused() -> Result<()> {
    let fixture = Fixture::new().await?;
    let long = format!(r#"42["unheard_of","{}"]"#, "x".repeat(20_000));
    let stranger = Poller::open(fixture.address).await?;
    let refused = stranger.say(&long).await.unwrap_err().to_string();
    assert!(refused.starts_with("413 "), "{refused}");
    let mut anna = fixture.poller("anna").await?;
    anna.say(&long).await?;
    anna.say(r#"421["room_join",{"room_id":"r"}]"#).await?;
    assert!(anna.hear().await?.starts_with("431["));
    Ok(())
}
