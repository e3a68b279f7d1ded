//! The line that carries wakes is cut: what was said meanwhile is found when it is back.

use std::time::{Duration, Instant};

use duroxide::runtime::RuntimeOptions;
use tokio::time::sleep;

use crate::{
    crew::{Crew, all_add_up, start_sums},
    ground::*,
};

/// The net is out of reach: whoever is not woken waits for longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LISTEN%'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listening_line_that_is_cut_again_and_again() {
    const MANY: usize = 40;
    let ground = Ground::new().await;
    // Two processes that need each other's word: one only has orchestrations, the other activities.
    let one = ground.watched_with(falling_back(NEVER)).await;
    let other = provider(&ground.database.url(), falling_back(NEVER)).await;
    let only = |orchestrations, workers| RuntimeOptions {
        orchestration_concurrency: orchestrations,
        worker_concurrency: workers,
        ..RuntimeOptions::default()
    };
    let crews = [
        Crew::start(&one, only(2, 0)).await,
        Crew::start(&other, only(0, 2)).await,
    ];
    start_sums(&other, MANY).await;
    let began = Instant::now();
    let mut cut = 0;
    while began.elapsed() < Duration::from_secs(4) {
        cut += ground.sql(CUT).await.len();
        sleep(Duration::from_millis(50)).await;
    }
    assert!(cut > 5, "{cut}");
    all_add_up(&one, MANY, Duration::from_secs(60)).await;
    for crew in crews {
        crew.end().await;
    }
}

/// What is written while the line is away is found by the question that its return asks.
#[tokio::test]
async fn what_was_written_while_the_line_was_cut() {
    let ground = Ground::new().await;
    let provider = ground.watched_with(falling_back(NEVER)).await;
    let other = ground.other().await;
    ground.settle(&provider).await;
    for round in 0..10 {
        let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
        let working = ground.parked(&provider, fetch_work(&provider, LONG)).await;
        ground.sql(CUT).await;
        enqueue(&other, start(&round.to_string())).await;
        schedule(&other, activity("a", round + 2)).await;
        waiting.await.expect("it is found");
        working.await.expect("it is found");
    }
}

/// Every line of a process at once, while it waits.
#[tokio::test]
async fn all_lines_are_cut() {
    let ground = Ground::new().await;
    let provider = ground.watched_with(falling_back(NEVER)).await;
    let other = ground.other().await;
    for round in 0..5 {
        // What is taken in the moment of the cut comes back when its lease is over.
        let lease = Duration::from_secs(5);
        let waiting = ground.parked(&provider, fetch(&provider, lease)).await;
        ground.proxy.cut();
        let instance = round.to_string();
        enqueue(&other, start(&instance)).await;
        let (item, token, _) = waiting.await.expect("it is found");
        assert_eq!(item.instance, instance);
        let turn = Turn {
            events: vec![started(&instance)],
            metadata: named(),
            ..Turn::default()
        };
        end_turn(&provider, &token, turn).await;
    }
}
