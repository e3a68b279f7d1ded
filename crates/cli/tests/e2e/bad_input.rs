//! Bad input at every route of the API document: the answer is always a problem that names the
//! wrong field, never the server's fault, never a hang, and never at the cost of a neighbour.

mod bodies;
mod cases;
mod feeds;
mod flood;
mod jobs;

use std::time::Duration;

use http::HeaderValue;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, on_both_stores},
    server::Server,
    wire::{Answer, Line, get, post, request, with_header},
};
use cases::Case;

on_both_stores! {
    bad_input_is_refused_and_neighbours_are_served,
    bad_input_of_jobs_and_providers_is_refused,
    bad_input_of_feeds_is_refused,
    a_preference_that_cannot_be_read_is_ignored,
    bodies_past_the_limit_are_refused_and_neighbours_are_served,
}

#[tokio::test]
async fn malformed_http_is_refused() {
    let server = Fixture::sqlite().serve().start().await;
    flood::malformed_http(&server).await;
    assert_still_works(&server).await;
}

/// The bodies are sent slowly, so that the neighbours are certainly served at the same time.
const NEIGHBOURS: usize = 4;

async fn bad_input_is_refused_and_neighbours_are_served(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let document = server.get("/openapi.json").await.json();
    let cases = cases::all(&document);
    assert!(cases.len() > 1_200, "only {} cases", cases.len());
    let bad = async {
        let mut wrong = Vec::new();
        let mut http2 = Line::http2(server.address()).await;
        for case in &cases {
            // Over both protocols: what hyper makes of a request differs.
            let first = server.call(case.request.clone()).await;
            let second = http2.call(case.request.clone()).await.expect("an answer");
            for answer in [first, second] {
                wrong.extend(judge(case, &answer));
            }
        }
        wrong
    };
    let wrong = beside_neighbours(&server, bad).await;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_still_works(&server).await;
}

async fn bad_input_of_feeds_is_refused(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let wrong = beside_neighbours(&server, feeds::wrong(&server)).await;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_still_works(&server).await;
}

/// The one thing that a request may say in vain (RFC 7240).
async fn a_preference_that_cannot_be_read_is_ignored(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let job = json!({"category": "analysis", "name": "Sum"}).to_string();
    let register = request("PUT", "/v1/joblib/rooms/lab/jobs", job.into());
    let worker = server.call(register).await.json()["worker_id"].clone();
    let claim = json!({ "worker_id": worker }).to_string();
    let specification = r#"let site: A.Site = { domain: "a" } (site: A.Site) { post: A.Post [ post->site: A.Site = site ] }"#;
    let feeds = with_header(
        post("/jinaga/feeds", specification),
        "content-type",
        "text/plain",
    );
    let feeds = server.call(feeds).await.json();
    let feed = feeds["feeds"][0].as_str().expect("a feed").to_owned();
    let bad: [&[u8]; 6] = [
        b"wait=-1",
        b"wait=abc",
        b"wait",
        b"wait=1.5",
        b"wait=x, wait=9",
        b"wait=\xff",
    ];
    for prefer in bad {
        for (asked, status) in [
            (get("/api/v1/pop/queue/q"), 204),
            (post("/v1/joblib/tasks/claim", claim.clone()), 200),
            (get(&format!("/jinaga/feeds/{feed}?b=")), 200),
        ] {
            let mut asked = asked;
            let value = HeaderValue::from_bytes(prefer).expect("a header's value");
            asked.headers_mut().insert("prefer", value);
            let what = format!("{} {}", asked.uri(), String::from_utf8_lossy(prefer));
            let answer = server.call(asked).await;
            assert_eq!(answer.status, status, "{what}: {}", answer.text());
            assert!(!answer.headers.contains_key("preference-applied"), "{what}");
        }
    }
}

async fn bad_input_of_jobs_and_providers_is_refused(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let document = server.get("/openapi.json").await.json();
    let wrong = beside_neighbours(&server, jobs::wrong(&server, &document)).await;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_still_works(&server).await;
}

async fn bodies_past_the_limit_are_refused_and_neighbours_are_served(fixture: Fixture) {
    let server = fixture.serve().start().await;
    beside_neighbours(&server, flood::bodies(&server)).await;
    assert_still_works(&server).await;
}

/// The mistake in the answer to a bad request, if there is one.
fn judge(case: &Case, answer: &Answer) -> Option<String> {
    let text = answer.text();
    let short: String = text.chars().take(300).collect();
    let about = format!("{}: {} {short}", case.what, answer.status);
    if answer.status != case.status {
        return Some(format!("expected {}; {about}", case.status));
    }
    if answer.status == 200 {
        // The answer to one item of several.
        let told = answer.json()[0]["error"].as_str().map(str::to_owned);
        let named = format!("{}: ", case.field.as_deref().unwrap_or_default());
        let is_named = told.is_some_and(|told| told.starts_with(&named));
        return (!is_named).then(|| format!("expected {named:?} in the item; {about}"));
    }
    let problem = answer.problem();
    let field = problem["field"].as_str();
    if case
        .field
        .as_deref()
        .is_some_and(|expected| field != Some(expected))
    {
        return Some(format!("expected {:?} to be named; {about}", case.field));
    }
    let is_named = field.is_none_or(|field| text.contains(&format!("\"detail\":\"{field}: ")));
    (!is_named).then(|| format!("the detail does not begin with the field; {about}"))
}

/// Producers and consumers at work for as long as `work` takes; each of them must get every answer.
async fn beside_neighbours<T>(server: &Server, work: impl Future<Output = T>) -> T {
    let neighbour = async |number: usize| {
        let mut line = Line::http1(server.address()).await;
        let partition = number.to_string();
        let mut served = 0_u64;
        loop {
            let item = json!({"queue": "neighbours", "partition": partition, "payload": served});
            let push = crate::wire::post("/api/v1/push", json!({"items": [item]}).to_string());
            let pushed = line.call(push).await.expect("a neighbour's push");
            assert_eq!(pushed.status, 201, "{}", pushed.text());
            let pop =
                format!("/api/v1/pop/queue/neighbours/partition/{number}?autoAck=true&wait=true");
            let popped = line
                .call(crate::wire::get(&pop))
                .await
                .expect("a neighbour's pop");
            assert_eq!(popped.payloads(), [json!(served)]);
            served += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let neighbours = async {
        let [a, b, c, d] = std::array::from_fn::<_, NEIGHBOURS, _>(neighbour);
        tokio::join!(a, b, c, d)
    };
    tokio::select! {
        done = work => done,
        _ = neighbours => unreachable!("they never end"),
    }
}

async fn assert_still_works(server: &Server) {
    let held = server.hold("/api/v1/pop/queue/good?wait=true&timeout=60000");
    server.until_waiting(1).await;
    server.push("good", json!("as ever")).await;
    assert_eq!(held.await.unwrap().payloads(), [json!("as ever")]);
    let log = server.log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
    let waits: Value = server.get("/v1/waits").await.json();
    assert_eq!(waits["total"], 0);
}
