//! `bench hold` against a stand-in that holds pops in memory. This checks the load generator, not
//! the product.

#[path = "hold/stand_in.rs"]
mod stand_in;

use clap::Parser;
use stand_in::StandIn;
use wakeline_bench::Command;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

async fn hold(server: &StandIn, more: &str) -> anyhow::Result<()> {
    let line = format!("bench hold --url {} --idle 200ms {more}", server.url);
    let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
    wakeline_bench::run(cli.command).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_holds_all_waiters_of_one_queue_and_wakes_them_all() {
    let server = StandIn::start().await;
    hold(&server, "--waiters 200 --wakes 20 --wake-all")
        .await
        .unwrap();
    assert_eq!(server.most_held(), 200);
    assert_eq!(server.queues(), 1);
    assert_eq!(server.delivered(), 220);
    assert!(server.connections() > 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_carries_a_queue_for_each_waiter_over_few_connections() {
    let server = StandIn::start().await;
    hold(
        &server,
        "--waiters 200 --topics each --http 2 --connections 4 --wakes 20 --wake-all --json",
    )
    .await
    .unwrap();
    assert_eq!(server.most_held(), 200);
    assert_eq!(server.queues(), 200);
    assert_eq!(server.delivered(), 220);
    // Four for the waiters; the rest are the pushes and the probes.
    assert!(server.connections() < 20, "{}", server.connections());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leased_messages_are_acked() {
    let server = StandIn::start().await;
    hold(&server, "--waiters 20 --wakes 5 --lease --wake-all")
        .await
        .unwrap();
    assert_eq!(server.acked(), 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_spread_over_the_nodes_and_pushes_go_to_their_own() {
    let (first, second) = (StandIn::start().await, StandIn::start().await);
    let pushes = StandIn::start().await;
    hold(
        &first,
        &format!(
            "--url {} --push-url {} --waiters 20 --wakes 0",
            second.url, pushes.url
        ),
    )
    .await
    .unwrap();
    assert_eq!(
        (first.most_held(), second.most_held(), pushes.most_held()),
        (10, 10, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missed_target_is_a_finding_and_a_failed_request_an_error() {
    let server = StandIn::start().await;
    hold(
        &server,
        "--waiters 5 --wakes 1 --target-p99 0ms --target-cpu 3",
    )
    .await
    .unwrap();
    server.refuse_pushes();
    let error = hold(&server, "--waiters 5 --wakes 2")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("2 requests failed"), "{error}");
    assert!(
        error.contains("507") && error.contains("no room"),
        "{error}"
    );
}
