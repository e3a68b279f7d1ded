//! `/v1/durable`: the server shows a durable schema.

use serde_json::{Value, json};
use wakeline_testbed::Postgres;

use super::{CHILD, Workflows};
use crate::{
    fixture::Fixture,
    redact::redacted,
    server::{Server, until},
};

const ROUTES: [&str; 4] = [
    "/v1/durable",
    "/v1/durable/instances",
    "/v1/durable/instances/x",
    "/v1/durable/instances/x/history",
];

/// A server on a store of its own that shows the workflows.
async fn serve(workflows: &Workflows) -> Server {
    let flags = ["--durable-database", &workflows.url];
    Fixture::sqlite().serve().flags(&flags).start().await
}

async fn json(server: &Server, path: &str) -> Value {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

fn ids(page: &Value) -> Vec<&str> {
    let instances = page["instances"].as_array().unwrap().iter();
    instances
        .map(|instance| instance["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_schema_is_shown_with_its_instances_states_and_queues() {
    let workflows = Workflows::with_one_of_each().await;
    workflows.runtime.clone().shutdown(None).await;
    let server = serve(&workflows).await;
    let child = "family%2Fchild%20%C3%BC";
    let shown = json!([
        json(&server, "/v1/durable").await,
        json(&server, "/v1/durable/instances?limit=2").await["instances"],
        json(&server, &format!("/v1/durable/instances/{child}")).await,
    ]);
    insta::assert_json_snapshot!(redacted(&shown), @r#"
    [
      {
        "events": 28,
        "executions": 9,
        "instances": {
          "completed": 4,
          "failed": 1,
          "running": 1,
          "total": 6
        },
        "queues": {
          "activities": 0,
          "activitiesLeased": 0,
          "instancesLeased": 0,
          "later": 0,
          "messages": 0,
          "sessions": 0,
          "spoilt": 0
        },
        "schema": "durable"
      },
      [
        {
          "createdAt": "<time>",
          "execution": 1,
          "id": "waiting",
          "name": "Waits",
          "status": "Running",
          "updatedAt": "<time>",
          "version": "1.0.0"
        },
        {
          "createdAt": "<time>",
          "execution": 4,
          "id": "again",
          "name": "Again",
          "status": "Completed",
          "updatedAt": "<time>",
          "version": "1.0.0"
        }
      ],
      {
        "children": [],
        "childrenCount": 0,
        "createdAt": "<time>",
        "customStatus": "greeting",
        "customStatusVersion": 1,
        "execution": 1,
        "executions": [
          {
            "completedAt": "<time>",
            "events": 6,
            "number": 1,
            "startedAt": "<time>",
            "status": "Completed"
          }
        ],
        "executionsCount": 1,
        "id": "family/child ü",
        "name": "Greet",
        "output": "Hello, Bob!",
        "outputBytes": 11,
        "parent": "family",
        "queue": {
          "activities": 0,
          "activitiesLeased": 0,
          "isLeased": false,
          "later": 0,
          "messages": 0
        },
        "status": "Completed",
        "updatedAt": "<time>",
        "values": [
          {
            "bytes": 2,
            "key": "language",
            "value": "en"
          }
        ],
        "valuesCount": 1,
        "version": "1.0.0"
      }
    ]
    "#);

    let history = json(
        &server,
        &format!("/v1/durable/instances/{child}/history?limit=2"),
    )
    .await;
    assert_eq!(history["instance"], CHILD);
    assert_eq!(history["execution"], 1);
    assert_eq!(
        history["events"][0]["event"]["type"],
        "OrchestrationStarted"
    );
    assert_eq!(history["next"], 2);
    let rest = format!("/v1/durable/instances/{child}/history?after=2");
    let rest = json(&server, &rest).await;
    let last = rest["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["event"]["type"], "OrchestrationCompleted");
    assert_eq!(rest["events"][0]["number"], 3);
    assert_eq!(rest["next"], Value::Null);
    let second = json(&server, "/v1/durable/instances/again/history?execution=2").await;
    assert_eq!(second["events"][0]["event"]["input"], "2");
}

#[tokio::test]
async fn instances_are_filtered_and_paged() {
    let workflows = Workflows::with_one_of_each().await;
    let server = serve(&workflows).await;
    let list = async |query: &str| json(&server, &format!("/v1/durable/instances?{query}")).await;
    assert_eq!(ids(&list("status=running").await), ["waiting"]);
    assert_eq!(ids(&list("status=Failed").await), ["broken"]);
    assert_eq!(ids(&list("name=Greet").await), [CHILD, "greet"]);
    assert!(ids(&list("name=nothing").await).is_empty());
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("limit=1{after}")).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        let next = next
            .replace('/', "%2F")
            .replace(' ', "%20")
            .replace('ü', "%C3%BC");
        after = format!("&after={next}");
    }
    assert_eq!(
        seen,
        ["waiting", "again", "broken", CHILD, "family", "greet"]
    );
}

#[tokio::test]
async fn without_durable_database_the_schema_is_read_from_the_store() {
    let workflows = Workflows::with_one_of_each().await;
    let server = Fixture::postgres_at(workflows.url.clone())
        .serve()
        .flags(&["--durable-schema", "durable"])
        .start()
        .await;
    assert_eq!(json(&server, "/v1/durable").await["instances"]["total"], 6);
}

#[tokio::test]
async fn without_durable_schema_the_routes_answer_404() {
    let server = Fixture::sqlite().serve().start().await;
    for path in ROUTES {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        let problem = answer.problem();
        assert_eq!(problem["type"], "urn:wakeline:not-found");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("durable.schema"), "{detail}");
    }
    let log = Fixture::sqlite()
        .serve()
        .flags(&["--durable-schema", "durable"])
        .refused()
        .await;
    assert!(
        log.contains("set durable.database to the database that has it"),
        "{log}"
    );
}

#[tokio::test]
async fn bad_parameters_and_unknown_instances_are_refused_by_name() {
    let workflows = Workflows::with_one_of_each().await;
    let server = serve(&workflows).await;
    for (path, status, named) in [
        (
            "instances?status=done",
            400,
            "Running, Completed, Failed, ContinuedAsNew",
        ),
        ("instances?limit=0", 400, "limit: "),
        ("instances?limit=1001", 400, "limit: "),
        ("instances?after=page2", 400, "after: "),
        ("instances?after=99999999999999999999.x", 400, "after: "),
        ("instances/nobody", 404, "no instance"),
        ("instances/nobody%00", 404, "no instance"),
        ("instances/%ff", 400, "path: "),
        ("instances/nobody/history", 404, "no instance"),
        ("instances/again/history?execution=9", 404, "no execution 9"),
        ("instances/again/history?execution=-1", 400, "execution: "),
        ("instances/again/history?after=x", 400, "after: "),
        ("instances/again/history?limit=x", 400, "limit: "),
    ] {
        let answer = server.get(&format!("/v1/durable/{path}")).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let detail = answer.problem()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{path}: {detail}");
    }
    let none = json(&server, "/v1/durable/instances?name=%00").await;
    assert!(ids(&none).is_empty());
    let posted = server
        .post("/v1/durable/instances/waiting", &json!({}))
        .await;
    assert_eq!(posted.status, 405);
}

#[tokio::test]
async fn a_missing_schema_is_shown_once_it_is_created() {
    let fixture = Fixture::postgres().await;
    let flags = ["--durable-schema", "durable"];
    let server = fixture.serve().flags(&flags).start().await;
    let answer = server.get("/v1/durable").await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.problem()["type"], "urn:wakeline:durable-schema");

    let _workflows = Workflows::at(fixture.postgres_url().to_owned()).await;
    let totals = until("the schema", async || {
        let answer = server.get("/v1/durable").await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(totals["instances"]["total"], 0);
}

#[tokio::test]
async fn an_outage_of_the_durable_database_gets_503_and_the_view_recovers() {
    let mut postgres = Postgres::start().unwrap();
    let workflows = Workflows::at(postgres.url()).await;
    workflows.run("greet", "Greet", "Ada").await;
    let server = serve(&workflows).await;
    json(&server, "/v1/durable/instances/greet").await;

    postgres.stop().unwrap();
    for path in ROUTES {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.problem()["type"], "urn:wakeline:store-unavailable");
    }
    // The server itself does not need the durable database.
    assert_eq!(server.get("/readyz").await.status, 200);

    postgres.start_again().unwrap();
    until("the view", async || {
        let answer = server.get("/v1/durable/instances/greet").await;
        (answer.status == 200).then_some(())
    })
    .await;
}
