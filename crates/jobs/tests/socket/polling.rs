use anyhow::Result;

use crate::{fixture::Fixture, websocket::WebSocket};

/// The most packets that Python's client accepts in one answer.
const MAX_PACKETS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_no_more_packets_than_python_engineio_accepts() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut anna = fixture.poller("anna").await?;
    anna.say(r#"421["room_join",{"room_id":"r"}]"#).await?;
    assert!(anna.hear().await?.starts_with("431["));
    for number in 0..100 {
        fixture.emit("room:r", "number", &number.to_string());
    }
    for number in 0..100 {
        assert_eq!(anna.hear().await?, format!(r#"42["number",{number}]"#));
    }
    assert_eq!(anna.most, MAX_PACKETS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_by_the_upgrade_to_a_websocket() -> Result<()> {
    const MANY: usize = 400;
    let fixture = Fixture::new().await?;
    let mut anna = fixture.poller("anna").await?;
    anna.say(r#"421["room_join",{"room_id":"r"}]"#).await?;
    assert!(anna.hear().await?.starts_with("431["));
    for number in 0..MANY {
        fixture.emit("room:r", "number", &number.to_string());
    }
    let mut packets = vec![anna.hear().await?];
    let probing = tokio::spawn(WebSocket::probe(fixture.address, anna.sid.clone()));
    while !probing.is_finished() {
        anna.fetch().await?;
    }
    packets.extend(anna.unread());
    let mut websocket = probing.await??;
    websocket.say("5").await?;
    fixture.emit("room:r", "number", &MANY.to_string());
    while !packets
        .last()
        .is_some_and(|last| last.contains(&MANY.to_string()))
    {
        packets.extend(websocket.hear().await?);
    }
    packets.retain(|packet| packet.starts_with("42"));
    let expected: Vec<String> = (0..=MANY)
        .map(|number| format!(r#"42["number",{number}]"#))
        .collect();
    assert_eq!(packets, expected);
    assert_eq!(fixture.sockets.members("room:r"), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_may_upgrade_before_it_connects() -> Result<()> {
    let fixture = Fixture::new().await?;
    let poller = crate::poller::Poller::open(fixture.address).await?;
    let mut websocket = WebSocket::probe(fixture.address, poller.sid.clone()).await?;
    websocket.say("5").await?;
    let connected = websocket.connect("anna").await?;
    assert_eq!(connected, format!(r#"40{{"sid":"{}"}}"#, poller.sid));
    websocket.receive_all().await?;
    assert_eq!(fixture.sockets.connected(), 1);
    drop(websocket);
    let gone = async || fixture.sockets.connected() == 0;
    wakeline_testkit::eventually("it to be gone", gone).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_closes_during_the_upgrade_ends_its_session() -> Result<()> {
    let fixture = Fixture::new().await?;
    let anna = fixture.poller("anna").await?;
    let here = async || fixture.sockets.connected() == 1;
    wakeline_testkit::eventually("it to be connected", here).await;
    let websocket = WebSocket::probe(fixture.address, anna.sid.clone()).await?;
    drop(websocket);
    let gone = async || fixture.sockets.connected() == 0;
    wakeline_testkit::eventually("it to be gone", gone).await;
    assert_ne!(anna.poll().await?.status, 200);
    Ok(())
}
