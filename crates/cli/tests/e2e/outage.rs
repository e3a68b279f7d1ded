//! An outage of the database while requests are held: they stay held and are served after it.

use serde_json::json;
use wakeline_testbed::Postgres;

use crate::{
    fixture::Fixture,
    nodes::until_mode,
    server::{Server, until},
};

const POP: &str = "/api/v1/pop/queue/q?wait=true&timeout=85000&autoAck=true&batch=1";

#[tokio::test]
async fn held_pops_survive_an_outage_of_postgres() {
    let mut postgres = Postgres::start().unwrap();
    let fixture = Fixture::postgres_at(postgres.url());
    let start = || fixture.serve().flags(&["--bus-canary", "500ms"]).start();
    let (one, other) = tokio::join!(start(), start());
    let held: Vec<_> = (0..4).map(|_| one.hold(POP)).collect();
    one.until_waiting(4).await;
    // And parked: a pop whose first check of the store fails is not held yet and gets the error.
    one.until_store_checks(4).await;

    postgres.stop().unwrap();
    for server in [&one, &other] {
        until_unready_because_of_the_store(server).await;
        assert_push_is_refused(server).await;
    }
    assert_eq!(one.get("/livez").await.status, 200);
    one.until_waiting(4).await;
    assert!(held.iter().all(|held| !held.is_finished()));

    postgres.start_again().unwrap();
    for server in [&one, &other] {
        until("readiness", async || {
            (server.get("/readyz").await.status == 200).then_some(())
        })
        .await;
    }
    // A push on the other node, so that the bus must be back too, or the fallback replace it.
    for n in 0..4 {
        let item = json!({"queue": "q", "partition": n.to_string(), "payload": n});
        // Each connection of the server finds out by itself that the database is back. Until then
        // it refuses with "nothing was done, try again", which the test does.
        until("a push that is taken", async || {
            let pushed = other.post("/api/v1/push", &json!({"items": [item]})).await;
            if pushed.status != 201 {
                assert_eq!(pushed.problem()["type"], "urn:wakeline:store-unavailable");
            }
            (pushed.status == 201).then_some(())
        })
        .await;
    }
    let mut found = Vec::new();
    for held in held {
        found.extend(held.await.unwrap().payloads());
    }
    found.sort_by_key(serde_json::Value::as_u64);
    // The pushes refused during the outage are not among them, and none is left behind.
    assert_eq!(found, [json!(0), json!(1), json!(2), json!(3)]);
    assert_eq!(one.get("/api/v1/pop/queue/q").await.status, 204);
    for server in [&one, &other] {
        until_mode(server, "postgres", "live").await;
    }
}

async fn until_unready_because_of_the_store(server: &Server) {
    let verbose = until("readyz to see the outage", async || {
        let answer = server.get("/readyz?verbose").await;
        (answer.status == 503).then(|| answer.json())
    })
    .await;
    assert_eq!(verbose["status"], "unready");
    assert_eq!(verbose["store"]["kind"], "postgres");
    assert_eq!(verbose["store"]["answers"], false);
    until_mode(server, "postgres", "polling").await;
    let plain = server.get("/readyz").await;
    assert_eq!(plain.problem()["type"], "urn:wakeline:store-unavailable");
}

async fn assert_push_is_refused(server: &Server) {
    let items = json!({"items": [{"queue": "q", "payload": "never"}]});
    let answer = server.post("/api/v1/push", &items).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.problem()["type"], "urn:wakeline:store-unavailable");
}
