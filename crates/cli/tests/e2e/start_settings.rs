//! Settings that are judged at the start: where to listen, and what to log.

use std::{collections::BTreeSet, net::SocketAddr, net::ToSocketAddrs};

use crate::{
    fixture::Fixture,
    server::Serve,
    wire::{Line, get},
};

#[tokio::test]
async fn a_name_is_listened_on_at_each_of_its_addresses() {
    let flags = ["--listen", "localhost:0"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let output = server.output();
    let (_, list) = output.split_once("listening on").expect("the addresses");
    let shown = list.lines().map_while(|line| {
        let address = line.trim().strip_prefix("http://")?;
        address.parse::<SocketAddr>().ok()
    });
    let shown: BTreeSet<_> = shown.collect();
    let port = server.address().port();
    // One that this machine lacks is left out, as `::1` where there is no IPv6.
    let all = ("localhost", port).to_socket_addrs().unwrap();
    let expected = all.filter(|address| std::net::TcpListener::bind((address.ip(), 0)).is_ok());
    assert_eq!(shown, expected.collect(), "{output}");
    for address in shown {
        let mut line = Line::http1(address).await;
        assert_eq!(line.call(get("/readyz")).await.unwrap().status, 200);
    }
    // Nobody but this machine reaches it, so no login is asked for.
    assert_eq!(server.get("/v1/waits").await.status, 200);
    assert!(!output.contains("WARNING"), "{output}");
}

#[tokio::test]
async fn a_name_without_an_address_is_refused() {
    // Too long for the DNS, which is not asked.
    let name = format!("{}.invalid:0", "a".repeat(64));
    let fixture = Fixture::sqlite();
    let log = fixture.serve().flags(&["--listen", &name]).refused().await;
    let expected = format!("wakeline: listen: the addresses of {name} cannot be found: ");
    assert!(log.contains(&expected), "{log}");
}

#[tokio::test]
async fn a_wrong_level_of_the_log_is_refused() {
    let refusal = async |level: &str| {
        let flags = ["--listen", "127.0.0.1:0", "--log-level", level];
        Serve::new(&flags).refused().await
    };
    insta::assert_snapshot!(refusal("inof").await, @r#"
    wakeline: 1 mistake in the configuration:
      - log.level (flag --log-level): found "inof", expected a level (error, warn, info, debug, trace, off) or directives such as info,wakeline_wake=debug
    "#);
    insta::assert_snapshot!(refusal("info,wakeline_wake=debgu").await, @r#"
    wakeline: 1 mistake in the configuration:
      - log.level (flag --log-level): found "info,wakeline_wake=debgu", expected a level (error, warn, info, debug, trace, off) or directives such as info,wakeline_wake=debug
    "#);
}
