use anyhow::Result;
use wakeline_jobs::socket::Limits;
use wakeline_testkit::eventually;

use crate::{
    fixture::{Fixture, limits},
    poller::{Poller, request},
    websocket::WebSocket,
};

const REFUSED: &str = r#"44{"message":"Connection refused by server"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_known_token_connects() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut poller = Poller::open(fixture.address).await?;
    let answer = poller.connect("anna").await?;
    assert_eq!(answer, format!(r#"40{{"sid":"{}"}}"#, poller.sid));
    let _websocket = fixture.websocket("ben").await?;
    eventually("two to be connected", async || {
        fixture.sockets.connected() == 2
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_known_token_the_connection_is_refused() -> Result<()> {
    let fixture = Fixture::new().await?;
    for auth in [
        "",
        "{}",
        r#"{"token":null}"#,
        r#"{"token":"junk"}"#,
        r#"{"token":5}"#,
        "7",
    ] {
        let mut poller = Poller::open(fixture.address).await?;
        poller.say(&format!("40{auth}")).await?;
        assert_eq!(poller.hear().await?, REFUSED, "{auth}");
        let mut websocket = WebSocket::open(fixture.address).await?;
        websocket.say(&format!("40{auth}")).await?;
        assert_eq!(websocket.hear().await?.as_deref(), Some(REFUSED), "{auth}");
    }
    assert_eq!(fixture.sockets.connected(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn other_namespaces_are_refused() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut poller = Poller::open(fixture.address).await?;
    poller.say(r#"40/other,{"token":"anna"}"#).await?;
    assert_eq!(
        poller.hear().await?,
        r#"44/other,{"message":"Invalid namespace"}"#
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn older_protocols_and_malformed_requests_are_refused() -> Result<()> {
    let fixture = Fixture::new().await?;
    for query in [
        "",
        "?EIO=3&transport=polling",
        "?EIO=4",
        "?EIO=4&transport=polling&sid=AAAAAAAAAAAAAAHs",
        "?EIO=4&transport=polling&sid=x",
        "?EIO=4&transport=websocket",
        "?EIO=4&transport=websocket&sid=AAAAAAAAAAAAAAHs",
    ] {
        let target = format!("/socket.io/{query}");
        let answer = request(fixture.address, "GET", &target, "").await?;
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
    }
    let beside = request(fixture.address, "GET", "/", "").await?;
    assert_eq!(beside.body, "beside");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_limit_are_refused_until_one_closes() -> Result<()> {
    let two = Limits {
        connections: 2,
        ..limits()
    };
    let fixture = Fixture::with(two).await?;
    let _first = fixture.poller("anna").await?;
    let second = fixture.websocket("anna").await?;
    let opening = "/socket.io/?transport=polling&EIO=4";
    assert_eq!(
        request(fixture.address, "GET", opening, "").await?.status,
        503
    );
    assert!(WebSocket::raw(fixture.address, "").await.is_err());
    drop(second);
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while request(fixture.address, "GET", opening, "").await?.status != 200 {
        assert!(
            tokio::time::Instant::now() < until,
            "its place was not given back"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_past_the_limit_ends_the_connection() -> Result<()> {
    let fixture = Fixture::new().await?;
    let long = format!(r#"42["unheard_of","{}"]"#, "x".repeat(100_000));
    let mut websocket = fixture.websocket("anna").await?;
    let _ = websocket.say(&long).await;
    assert_eq!(websocket.hear().await?, None);
    let poller = fixture.poller("anna").await?;
    assert!(poller.say(&long).await.is_err());
    eventually("both to be gone", async || fixture.sockets.connected() == 0).await;
    Ok(())
}
