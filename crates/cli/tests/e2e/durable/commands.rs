//! `wakeline durable`: the commands that read, and the commands that are refused.

use serde_json::Value;
use wakeline_testkit::PostgresDatabase;

use super::{CHILD, Workflows};
use crate::server::{until, wakeline};

fn ids(page: &Value) -> Vec<&str> {
    let instances = page["instances"].as_array().unwrap().iter();
    instances
        .map(|instance| instance["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn instances_are_listed_newest_first() {
    let workflows = Workflows::with_one_of_each().await;
    insta::assert_snapshot!(workflows.text(&["list"]).await, @r#"
    ID              NAME    VERSION  STATUS     EXECUTION  CREATED               UPDATED
    waiting         Waits   1.0.0    Running    1          <time>  <time>
    again           Again   1.0.0    Completed  4          <time>  <time>
    broken          Broken  1.0.0    Failed     1          <time>  <time>
    family/child ü  Greet   1.0.0    Completed  1          <time>  <time>
    family          Family  1.0.0    Completed  1          <time>  <time>
    greet           Greet   1.0.0    Completed  1          <time>  <time>
    "#);

    let all = ["waiting", "again", "broken", CHILD, "family", "greet"];
    let mut seen = Vec::new();
    let mut page = workflows.json(&["list", "--limit", "4"]).await;
    seen.extend(ids(&page).into_iter().map(str::to_owned));
    assert_eq!(seen.len(), 4);
    let next = page["next"].as_str().expect("more").to_owned();
    page = workflows
        .json(&["list", "--limit", "4", "--after", &next])
        .await;
    seen.extend(ids(&page).into_iter().map(str::to_owned));
    assert_eq!(seen, all);
    assert_eq!(page["next"], Value::Null);

    let told = workflows.call(&["list", "--limit", "1"]).await;
    let log = String::from_utf8(told.stderr).unwrap();
    assert!(log.starts_with("there are more: --after '"), "{log}");
}

#[tokio::test]
async fn a_filter_lists_only_matching_instances() {
    let workflows = Workflows::with_one_of_each().await;
    for (filter, found) in [
        (["--status", "Running"].as_slice(), ["waiting"].as_slice()),
        (&["--status", "failed"], &["broken"]),
        (
            &["--status", "completed"],
            &["again", CHILD, "family", "greet"],
        ),
        (&["--status", "ContinuedAsNew"], &[]),
        (&["--name", "Greet"], &[CHILD, "greet"]),
        (&["--name", "Greet", "--status", "Running"], &[]),
        (&["--name", "Waits", "--status", "Running"], &["waiting"]),
        (&["--name", "greet"], &[]),
        (
            &["--status", "completed", "--limit", "2"],
            &["again", CHILD],
        ),
    ] {
        let page = workflows.json(&[&["list"], filter].concat()).await;
        assert_eq!(ids(&page), found, "{filter:?}");
    }
}

#[tokio::test]
async fn an_instance_is_shown_with_its_state_children_and_queue() {
    let workflows = Workflows::with_one_of_each().await;
    let mut outputs = Vec::new();
    for instance in ["family", CHILD, "broken", "again", "waiting"] {
        outputs.push(workflows.text(&["show", instance]).await);
    }
    insta::assert_snapshot!(outputs.join("\n\n"), @r#"
    id            family
    name          Family 1.0.0
    status        Completed, execution 1
    created       <time>
    updated       <time>
    output        Hello, Bob!
    queue         0 messages, 0 for later, 0 activities waiting, 0 with a worker
    child         family/child ü
    execution     1 Completed, 4 events, <time> to <time>

    id            family/child ü
    name          Greet 1.0.0
    status        Completed, execution 1
    created       <time>
    updated       <time>
    parent        family
    output        Hello, Bob!
    custom status greeting
    queue         0 messages, 0 for later, 0 activities waiting, 0 with a worker
    value         language = en
    execution     1 Completed, 6 events, <time> to <time>

    id            broken
    name          Broken 1.0.0
    status        Failed, execution 1
    created       <time>
    updated       <time>
    output        no such customer
    queue         0 messages, 0 for later, 0 activities waiting, 0 with a worker
    execution     1 Failed, 2 events, <time> to <time>

    id            again
    name          Again 1.0.0
    status        Completed, execution 4
    created       <time>
    updated       <time>
    output        turn 4
    queue         0 messages, 0 for later, 0 activities waiting, 0 with a worker
    execution     4 Completed, 2 events, <time> to <time>
    execution     3 ContinuedAsNew, 2 events, <time> to <time>
    execution     2 ContinuedAsNew, 2 events, <time> to <time>
    execution     1 ContinuedAsNew, 2 events, <time> to <time>

    id            waiting
    name          Waits 1.0.0
    status        Running, execution 1
    created       <time>
    updated       <time>
    queue         0 messages, 0 for later, 0 activities waiting, 0 with a worker
    execution     1 Running, 2 events, <time> to now
    "#);
    let shown = workflows.json(&["show", CHILD]).await;
    assert_eq!(shown["parent"], "family");
    assert_eq!(shown["values"][0]["key"], "language");
    assert_eq!(shown["output"], "Hello, Bob!");
}

#[tokio::test]
async fn history_is_shown_in_order_and_by_execution() {
    let workflows = Workflows::with_one_of_each().await;
    insta::assert_snapshot!(workflows.text(&["history", "greet"]).await, @r#"
    1  <time>  OrchestrationStarted  input="Ada" name="Greet" version="1.0.0"
    2  <time>  CustomStatusUpdated  status="greeting"
    3  <time>  KeyValueSet  key="language" <time> value="en"
    4  <time>  ActivityScheduled  input="Ada" name="Greet"
    5  <time>  ActivityCompleted  of 4  result="Hello, Ada!"
    6  <time>  OrchestrationCompleted  output="Hello, Ada!"
    "#);
    insta::assert_snapshot!(workflows.text(&["history", "again", "--execution", "2"]).await, @r#"
    1  <time>  OrchestrationStarted  input="2" name="Again" version="1.0.0"
    2  <time>  OrchestrationContinuedAsNew  input="3"
    "#);
    let lines = workflows.call(&["history", "again", "--json"]).await.stdout;
    let events: Vec<Value> = serde_json::Deserializer::from_slice(&lines)
        .into_iter()
        .map(|event| event.expect("a line of JSON"))
        .collect();
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["number"].as_u64())
        .collect();
    assert_eq!(
        numbers,
        (1..=events.len() as u64).map(Some).collect::<Vec<_>>()
    );
    assert_eq!(events[0]["event"]["type"], "OrchestrationStarted");
    assert_eq!(events[0]["event"]["execution_id"], 4);
}

#[tokio::test]
async fn stats_count_states_and_queues() {
    let workflows = Workflows::with_one_of_each().await;
    workflows.runtime.clone().shutdown(None).await;
    let client = workflows.client();
    client.raise_event("waiting", "go", "now").await.unwrap();
    // A fetch under way when the runtime ended releases its item.
    until("nobody having it", async || {
        let json = workflows.json(&["stats"]).await;
        (json["queues"]["instancesLeased"] == 0).then_some(())
    })
    .await;
    insta::assert_snapshot!(workflows.text(&["stats"]).await, @r#"
    schema      durable
    instances   6: 1 running, 4 completed, 1 failed
    executions  9
    events      28
    messages    1 ready or leased, 0 for later; 0 instances with a dispatcher
    activities  0 waiting, 0 with a worker; 0 unreadable
    sessions    0
    "#);
    let json = workflows.json(&["stats"]).await;
    assert_eq!(json["instances"]["running"], 1);
    assert_eq!(json["queues"]["messages"], 1);
}

#[tokio::test]
async fn an_impossible_command_is_refused_with_the_reason() {
    let workflows = Workflows::with_one_of_each().await;
    let mut outputs = Vec::new();
    for arguments in [
        ["list", "--status", "done"].as_slice(),
        &["list", "--limit", "0"],
        &["list", "--after", "page 2"],
        &["list", "--schema", "elsewhere"],
        &["show", "nobody"],
        &["history", "nobody"],
        &["history", "again", "--execution", "9"],
        &["cancel", "nobody", "--reason", "x"],
        &["cancel", "greet", "--reason", "x"],
        &["delete", "nobody"],
        &["delete", "waiting"],
        &["delete", CHILD],
        &["prune", "--before", "yesterday"],
        &["prune", "--keep-last", "1", "--instance", "nobody"],
        &["prune", "instances", "--before", "2026-02-30"],
    ] {
        outputs.push(format!(
            "{}: {}",
            arguments.join(" "),
            workflows.refusal(arguments).await
        ));
    }
    for (arguments, named) in [
        (["prune"].as_slice(), "--keep-last"),
        (&["prune", "--dry-run"], "--keep-last"),
        (&["prune", "instances"], "--before"),
        (&["cancel", "waiting"], "--reason"),
    ] {
        let output = workflows.call(arguments).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains(named), "{arguments:?}: {log}");
    }
    insta::assert_snapshot!(outputs.join("\n"), @r#"
    list --status done: 2 error: invalid value 'done' for '--status <STATUS>': "done" is not a status; there are Running, Completed, Failed, ContinuedAsNew
    list --limit 0: 2 error: invalid value '0' for '--limit <LIMIT>': 0 is not in 1..=100000
    list --after page 2: 1 wakeline: "page 2" is not the `next` of a page of instances; pass that as `after`
    list --schema elsewhere: 1 wakeline: there is no durable schema "elsewhere" of this version in the database; start a program that runs workflows in it, which creates or upgrades the schema
    show nobody: 1 wakeline: there is no instance "nobody"; a new one appears when a runtime has run its first turn
    history nobody: 1 wakeline: there is no instance "nobody"; a new one appears when a runtime has run its first turn
    history again --execution 9: 1 wakeline: instance "again" has no execution 9: it was pruned, or never existed
    cancel nobody --reason x: 1 wakeline: there is no instance "nobody"; a new one appears when a runtime has run its first turn
    cancel greet --reason x: 1 wakeline: instance "greet" has ended already (Completed); there is nothing to cancel
    delete nobody: 1 wakeline: there is no instance "nobody"; a new one appears when a runtime has run its first turn
    delete waiting: 1 wakeline: instance "waiting" is running; cancel it first, or delete it with --force
    delete family/child ü: 1 wakeline: instance "family/child ü" is a sub-orchestration of "family"; delete "family", which deletes both
    prune --before yesterday: 2 error: invalid value 'yesterday' for '--before <TIME>': "yesterday" is not a time; use one such as 2026-11-01, 2026-11-01T12:00:00Z, or 30d for thirty days ago (also s, m, h, w)
    prune --keep-last 1 --instance nobody: 1 wakeline: there is no instance "nobody"; a new one appears when a runtime has run its first turn
    prune instances --before 2026-02-30: 2 error: invalid value '2026-02-30' for '--before <TIME>': "2026-02-30" is not a time; use one such as 2026-11-01, 2026-11-01T12:00:00Z, or 30d for thirty days ago (also s, m, h, w)
    "#);
    // None of the commands changed anything.
    let running = workflows.json(&["list", "--status", "running"]).await;
    assert_eq!(ids(&running), ["waiting"]);
    let totals = workflows.json(&["stats"]).await;
    assert_eq!(totals["instances"]["total"], 6);
}

#[tokio::test]
async fn commands_create_nothing_in_a_database_without_the_schema() {
    let database = PostgresDatabase::new(&[]).await;
    let url = database.url();
    for arguments in [
        ["list"].as_slice(),
        &["show", "x"],
        &["cancel", "x", "--reason", "x"],
        &["prune", "--keep-last", "1"],
        &["prune", "instances", "--before", "1d"],
    ] {
        let arguments = [&["durable"], arguments, &["--database", &url]].concat();
        let mut command = wakeline(&arguments);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("schema") && log.contains("durable"), "{log}");
    }
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let query = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'durable'";
    let row = client.query_one(query, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[test]
fn an_unreachable_database_is_reported_without_its_password() {
    let port = wakeline_testbed::free_port().unwrap();
    let url = format!("postgres://user:hidden@127.0.0.1:{port}/db");
    let output = wakeline(&["durable", "stats", "--database", &url])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!log.contains("hidden"), "{log}");
    assert!(
        log.contains("the durable database cannot be opened"),
        "{log}"
    );
    assert!(log.contains("Connection refused"), "{log}");

    for arguments in [
        ["durable", "list"].as_slice(),
        &["durable", "prune", "--keep-last", "1"],
        &["durable", "prune", "instances", "--before", "1d"],
    ] {
        let nowhere = wakeline(arguments).output().unwrap();
        assert!(!nowhere.status.success());
        let log = String::from_utf8_lossy(&nowhere.stderr);
        assert!(log.contains("--database <URL>"), "{log}");
    }
}
