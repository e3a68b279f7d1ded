//! What each role may do.

use bytes::Bytes;
use serde_json::json;
use wakeline_testbed::issuer::SigningKey;

use super::{SECRET, call, claims};
use crate::{
    fixture::Fixture,
    server::Server,
    wire::{get, post, request},
};

const ROLES: [&str; 4] = ["admin", "read-write", "read-only", "write-only"];

async fn start(fixture: &Fixture) -> Server {
    fixture
        .serve()
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        // These paths need a token here, so that their roles are listed too.
        .flags(&["--auth-jwt-skip-paths", ""])
        // No call here is meant to wait.
        .flags(&["--http-default-hold", "0s"])
        .start()
        .await
}

fn token(role: &str) -> String {
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    key.sign(&claims(&json!({ "role": role })))
}

/// The API document lists all routes, so that none can be forgotten here. For a new route, check
/// its line in the snapshot: it lists the roles that may call it.
#[tokio::test]
async fn the_roles_that_may_call_each_route_are_as_committed() {
    let server = start(&Fixture::sqlite()).await;
    let document = call(&server, get("/openapi.json"), &token("admin")).await;
    let document = document.json();
    let mut lines = Vec::new();
    let paths = document["paths"].as_object().unwrap().iter();
    for (path, operations) in paths.filter(|(path, _)| !super::has_own_users(path)) {
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let mut allowed = Vec::new();
            for role in ROLES {
                let filled = path.replace(['{', '}'], "");
                let call_of_role = request(&method, &filled, Bytes::from_static(b"{}"));
                let answer = call(&server, call_of_role, &token(role)).await;
                match answer.status {
                    403 => {
                        let problem = answer.problem();
                        assert_eq!(problem["type"], "urn:wakeline:forbidden");
                        assert_eq!(problem["error"], "Insufficient permissions");
                    }
                    401 => panic!("{method} {path} does not know {role}"),
                    _ => allowed.push(role),
                }
            }
            lines.push(format!("{method} {path}: {}", allowed.join(", ")));
        }
    }
    insta::assert_snapshot!("access", lines.join("\n"));
}

#[tokio::test]
async fn a_role_pushes_or_pops_as_its_name_says() {
    let server = start(&Fixture::sqlite()).await;
    let items = json!({"items": [{"queue": "q", "payload": 1, "transactionId": "t"}]});
    let push = || post("/api/v1/push", items.to_string());
    let pushed = call(&server, push(), &token("write-only")).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    let refused = call(&server, push(), &token("read-only")).await;
    insta::assert_snapshot!(refused.text(), @r#"{"type":"urn:wakeline:forbidden","title":"Forbidden","status":403,"detail":"the role read-only may not write here; it takes admin or read-write or write-only","error":"Insufficient permissions","code":"forbidden"}"#);

    let pop = || get("/api/v1/pop/queue/q");
    for role in ["read-only", "write-only"] {
        assert_eq!(call(&server, pop(), &token(role)).await.status, 403);
    }
    let popped = call(&server, pop(), &token("read-write")).await;
    let message = &popped.json()["messages"][0];
    let ack = json!({
        "transactionId": "t",
        "partitionId": message["partitionId"],
        "leaseId": message["leaseId"],
    });
    let ack = || post("/api/v1/ack", ack.to_string());
    for role in ["read-only", "write-only"] {
        assert_eq!(call(&server, ack(), &token(role)).await.status, 403);
    }
    let acked = call(&server, ack(), &token("read-write")).await;
    assert_eq!(acked.json()[0]["success"], true, "{}", acked.text());
}

#[tokio::test]
async fn a_token_without_a_known_role_gets_403() {
    let server = start(&Fixture::sqlite()).await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    for claims in [
        claims(&json!({"role": "king"})),
        claims(&json!({"role": null})),
        claims(&json!({"role": null, "roles": ["king", 5]})),
    ] {
        for path in ["/v1/waits", "/openapi.json", "/api/v1/pop/queue/q"] {
            let refused = call(&server, get(path), &key.sign(&claims)).await;
            assert_eq!(refused.status, 403, "{path} {claims}");
            assert_eq!(refused.problem()["error"], "Insufficient permissions");
        }
    }
    let listed = claims(&json!({"role": null, "roles": ["king", "read-only"]}));
    let answer = call(&server, get("/v1/waits"), &key.sign(&listed)).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn the_claim_and_the_names_of_roles_are_configured() {
    let server = Fixture::sqlite()
        .serve()
        .env("WAKELINE_AUTH_JWT_SECRET", SECRET)
        .flags(&["--auth-jwt-roles-claim", "realm_access.roles"])
        .flags(&["--auth-jwt-role-read-only", "viewer"])
        .start()
        .await;
    let key = SigningKey::hs256("s", SECRET.as_bytes());
    for (name, status) in [("viewer", 200), ("read-only", 403)] {
        let nested = claims(&json!({"role": null, "realm_access": {"roles": [name]}}));
        let answer = call(&server, get("/v1/waits"), &key.sign(&nested)).await;
        assert_eq!(answer.status, status, "{name}");
    }
}
