//! The commands that call a server.

use std::process::Output;

use serde_json::{Value, json};

use crate::{
    fixture::Fixture,
    redact::redacted,
    server::{Server, wakeline},
};

const TOKEN: &str = "a-token-for-the-test";

/// Runs the command to its end, off the test's own thread.
async fn run(server: &Server, arguments: &[&str]) -> Output {
    let mut command = wakeline(arguments);
    command
        .env("WAKELINE_URL", server.url())
        .env("WAKELINE_TOKEN", TOKEN);
    let run = tokio::task::spawn_blocking(move || command.output());
    run.await.unwrap().expect("the command runs")
}

async fn json(server: &Server, arguments: &[&str]) -> Value {
    let output = run(server, arguments).await;
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {log}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[tokio::test]
async fn commands_push_pop_and_acknowledge_a_message() {
    let server = Fixture::sqlite()
        .serve()
        .flags(&["--auth-tokens", TOKEN])
        .start()
        .await;
    let mut outputs = Vec::new();
    outputs.push(
        json(
            &server,
            &["push", "orders", r#"{"n": 1}"#, "--transaction-id", "t-1"],
        )
        .await,
    );
    outputs.push(
        json(
            &server,
            &["push", "orders", "not JSON", "--partition", "text"],
        )
        .await,
    );
    let popped = json(&server, &["pop", "orders", "--partition", "Default"]).await;
    let text = |name: &str| popped[name].as_str().unwrap().to_owned();
    let ids = (text("transactionId"), text("partitionId"), text("leaseId"));
    outputs.push(popped);
    let ack = [
        "ack",
        "--transaction-id",
        &ids.0,
        "--partition-id",
        &ids.1,
        "--lease-id",
        &ids.2,
    ];
    outputs.push(json(&server, &ack).await);
    outputs.push(
        json(
            &server,
            &[
                "pop",
                "orders",
                "--auto-ack",
                "--group",
                "g",
                "--partition",
                "text",
            ],
        )
        .await,
    );
    insta::assert_json_snapshot!(redacted(&outputs.into()), @r#"
    [
      {
        "messageId": "<id 1>",
        "status": "queued"
      },
      {
        "messageId": "<id 2>",
        "status": "queued"
      },
      {
        "createdAt": "<time>",
        "data": {
          "n": 1
        },
        "leaseId": "<id 3>",
        "partition": "Default",
        "partitionId": "<id 4>",
        "transactionId": "t-1"
      },
      {
        "leaseReleased": true,
        "success": true
      },
      {
        "createdAt": "<time>",
        "data": "not JSON",
        "leaseId": null,
        "partition": "text",
        "partitionId": "<id 5>",
        "transactionId": "<id 2>"
      }
    ]
    "#);

    // The answer may have been lost.
    let again = run(&server, &ack).await;
    assert!(again.status.success(), "{again:?}");
    let unknown = ack.map(|word| if word == ids.0 { "unknown" } else { word });
    let refused = run(&server, &unknown).await;
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("invalid or expired lease"), "{error}");

    let nothing = run(&server, &["pop", "empty"]).await;
    assert!(nothing.status.success() && nothing.stdout.is_empty());
}

#[tokio::test]
async fn a_pop_command_that_waits_is_listed_by_the_waits_command() {
    let server = Fixture::sqlite()
        .serve()
        .flags(&["--auth-tokens", TOKEN])
        .start()
        .await;
    let pop = run(&server, &["pop", "q", "--wait", "60"]);
    let push = async {
        let waits = crate::server::until("somebody waiting", async || {
            let waits = json(&server, &["waits"]).await;
            (waits["total"] == 1).then_some(waits)
        })
        .await;
        assert_eq!(waits["waits"][0]["topics"], json!(["queue/q"]));
        assert_eq!(waits["waits"][0]["group"], "__QUEUE_MODE__");
        json(&server, &["push", "q", "7"]).await;
    };
    let (popped, ()) = tokio::join!(pop, push);
    let popped: Value = serde_json::from_slice(&popped.stdout).unwrap();
    assert_eq!(popped["data"], 7);
}

#[tokio::test]
async fn a_command_that_reaches_no_server_fails_with_an_error() {
    let port = wakeline_testbed::free_port().unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let output = wakeline(&["waits", "--url", &url]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("wakeline: "), "{error}");
}
