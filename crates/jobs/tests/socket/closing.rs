use anyhow::Result;
use wakeline_testkit::soon;

use crate::{fixture::Fixture, poller::request, recording_backend::WORKER, websocket::WebSocket};

/// After a close packet Python's clients stay disconnected; after a cut they reconnect.
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_cuts_connections_without_a_close_packet() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut websocket = fixture.websocket("anna").await?;
    let join = format!(
        r#"42["join_provider_room",{{"provider_name":"anna:fs:x","worker_id":"{WORKER}"}}]"#
    );
    websocket.say(&join).await?;
    websocket.receive_all().await?;
    let mut poller = fixture.poller("ben").await?;
    poller.say(r#"421["room_join",{"room_id":"r"}]"#).await?;
    assert!(poller.hear().await?.starts_with("431["));
    let (held, ()) = tokio::join!(
        async { soon("the poll to end", poller.poll()).await },
        soon("all to be closed", fixture.sockets.close()),
    );
    assert_eq!(held?.status, 503);
    assert_eq!(websocket.hear().await?, None);
    assert_eq!(fixture.sockets.connected(), 0);
    fixture
        .door
        .until_events(&["joined anna:fs:x", "left anna:fs:x"])
        .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_accepted_after_the_shutdown() -> Result<()> {
    let fixture = Fixture::new().await?;
    let poller = fixture.poller("ben").await?;
    fixture.sockets.close().await;
    assert_eq!(poller.poll().await?.status, 503);
    let opening = "/socket.io/?transport=polling&EIO=4";
    assert_eq!(
        request(fixture.address, "GET", opening, "").await?.status,
        503
    );
    assert!(WebSocket::raw(fixture.address, "").await.is_err());
    fixture.emit("room:r", "unheard", "{}");
    Ok(())
}
