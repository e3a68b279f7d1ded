//! Runs the examples as a reader would.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use wakeline_testkit::PostgresDatabase;

/// Cargo builds the examples with the tests, and beside them.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let build = test.ancestors().nth(2).expect("a place for builds");
    let path = build.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: run the tests of the whole crate",
        path.display()
    );
    path
}

async fn run(name: &str) -> String {
    let database = PostgresDatabase::new(&[]).await;
    let mut command = Command::new(example(name));
    command.arg(database.url()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().expect("the example runs");
    let (out, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{log}");
    out.into_owned()
}

#[tokio::test]
async fn hello_says_hello() {
    let out = run("hello").await;
    assert!(
        out.contains(r#"Completed { output: "Hello, world!""#),
        "{out}"
    );
}

#[tokio::test]
async fn fan_out_adds_up_all_squares() {
    let out = run("fan_out").await;
    assert!(out.contains(r#"Completed { output: "2870""#), "{out}");
}

#[tokio::test]
async fn two_processes_serve_all_timers() {
    let out = run("timers_two_processes").await;
    let mut served: Vec<u64> = out
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once("served timer ")?;
            rest.split(',').next()?.parse().ok()
        })
        .collect();
    served.sort_unstable();
    // An activity may run twice, when its lease was lost.
    served.dedup();
    assert_eq!(served, (1..=12).collect::<Vec<u64>>(), "{out}");
    assert!(out.contains("all 12 timers were served"), "{out}");
}

#[test]
fn an_example_without_a_database_says_what_it_needs() {
    let output = Command::new(example("hello")).output().unwrap();
    assert!(!output.status.success());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("usage: hello <URL>"), "{log}");
}
