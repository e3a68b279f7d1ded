//! A committed write has woken its waiters, whatever happened to its caller: over every writing
//! route, a client hangs up while its commit is blocked, and a waiter at another node is answered.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use crate::{
    ground::Ground,
    nodes::until_mode,
    server::{Server, until},
    wire::{Line, get, post, request, with_header},
};

/// So rare that only the wake of the write itself can have answered the waiter.
const NO_FALLBACK: [&str; 4] = ["--wake-fallback", "1h", "--wake-fallback-degraded", "1h"];

/// What the node that writes calls itself in the database.
const WRITES: &str = "writes";

/// Far more than a wake takes, far less than the fallback.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// What is done with one route.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum Case {
    /// `write` hangs up while its commit is blocked; `wait`, held at the other node, is answered.
    Wakes {
        write: Request<Bytes>,
        wait: Request<Bytes>,
    },
    /// Nobody can be waiting for what it writes, for this reason.
    WakesNobody(#[expect(dead_code, reason = "for the reader")] &'static str),
}

/// Every route that is not a `GET` must be here: a new one has to say who waits for what it writes.
/// `name` is of this case alone.
async fn case(route: &str, name: &str, node: &Server) -> Case {
    let jobs = Jobs { node, room: name };
    match route {
        "POST /api/v1/push" => Case::Wakes {
            write: post("/api/v1/push", message(name).to_string()),
            wait: pop(name),
        },
        "POST /api/v1/transaction" => Case::Wakes {
            write: post(
                "/api/v1/transaction",
                json!({"operations": [{"type": "push", "items": [item(name)]}]}).to_string(),
            ),
            wait: pop(name),
        },
        "POST /streams/v1/cycle" => {
            let source = format!("{name}-source");
            let taken = leased_with_another_behind(node, &source).await;
            let query = json!({"name": name, "source_queue": source, "config_hash": "c"});
            let query = node.post("/streams/v1/queries", &query).await.json();
            let cycle = json!({
                "query_id": query["query_id"], "partition_id": taken["partitionId"],
                "state_ops": [], "push_items": [item(name)],
            });
            Case::Wakes {
                write: post("/streams/v1/cycle", cycle.to_string()),
                wait: pop(name),
            }
        }
        // The partition is free again, for its next message.
        "POST /api/v1/ack" => {
            let taken = leased_with_another_behind(node, name).await;
            Case::Wakes {
                write: post("/api/v1/ack", acknowledged(&taken, "completed").to_string()),
                wait: pop(name),
            }
        }
        "POST /api/v1/ack/batch" => {
            let taken = leased_with_another_behind(node, name).await;
            let acks = json!({"acknowledgments": [acknowledged(&taken, "completed")]});
            Case::Wakes {
                write: post("/api/v1/ack/batch", acks.to_string()),
                wait: pop(name),
            }
        }
        "POST /api/v1/configure" => {
            let delay =
                |seconds: u32| json!({"queue": name, "options": {"delayedProcessing": seconds}});
            accepted(node, post("/api/v1/configure", delay(3_600).to_string())).await;
            node.push(name, json!("delayed")).await;
            Case::Wakes {
                write: post("/api/v1/configure", delay(0).to_string()),
                wait: pop(name),
            }
        }
        "POST /api/v1/system/maintenance/pop" => {
            let enabled = |is: bool| {
                let body = json!({ "enabled": is }).to_string();
                post("/api/v1/system/maintenance/pop", body)
            };
            node.push(name, json!("paused")).await;
            accepted(node, enabled(true)).await;
            Case::Wakes {
                write: enabled(false),
                wait: pop(name),
            }
        }
        "DELETE /api/v1/consumer-groups/{group}" => {
            consumed(node, name).await;
            Case::Wakes {
                write: request(
                    "DELETE",
                    &format!("/api/v1/consumer-groups/{name}"),
                    Bytes::new(),
                ),
                wait: pop_of_group(name),
            }
        }
        "DELETE /api/v1/consumer-groups/{group}/queues/{queue}" => {
            consumed(node, name).await;
            let path = format!("/api/v1/consumer-groups/{name}/queues/{name}");
            Case::Wakes {
                write: request("DELETE", &path, Bytes::new()),
                wait: pop_of_group(name),
            }
        }
        "POST /api/v1/consumer-groups/{group}/queues/{queue}/seek"
        | "POST /api/v1/consumer-groups/{group}/queues/{queue}/partitions/{partition}/seek" => {
            consumed(node, name).await;
            let partition = if route.contains("partitions") {
                "/partitions/Default"
            } else {
                ""
            };
            let path = format!("/api/v1/consumer-groups/{name}/queues/{name}{partition}/seek");
            Case::Wakes {
                write: post(
                    &path,
                    json!({"timestamp": "2020-01-01T00:00:00Z"}).to_string(),
                ),
                wait: pop_of_group(name),
            }
        }
        "POST /api/v1/messages/{partitionId}/{transactionId}/retry" => {
            let dead = leased(node, name).await;
            accepted(
                node,
                post("/api/v1/ack", acknowledged(&dead, "dlq").to_string()),
            )
            .await;
            Case::Wakes {
                write: post(&format!("{}/retry", path_of(&dead)), ""),
                wait: pop(name),
            }
        }
        // The message failed and is held back; the one behind it can go on without it.
        "DELETE /api/v1/messages/{partitionId}/{transactionId}"
        | "POST /api/v1/messages/{partitionId}/{transactionId}/dlq" => {
            let options = json!({"queue": name, "options": {"retryDelay": 3_600_000}});
            accepted(node, post("/api/v1/configure", options.to_string())).await;
            let failed = leased_with_another_behind(node, name).await;
            accepted(
                node,
                post("/api/v1/ack", acknowledged(&failed, "failed").to_string()),
            )
            .await;
            let path = path_of(&failed);
            Case::Wakes {
                write: if route.starts_with("DELETE") {
                    request("DELETE", &path, Bytes::new())
                } else {
                    post(&format!("{path}/dlq"), "")
                },
                wait: pop(name),
            }
        }
        "DELETE /api/v1/resources/queues/{queue}" => {
            Case::WakesNobody("there is nothing in it any more")
        }
        "POST /api/v1/system/maintenance" => Case::WakesNobody("it only refuses pushes"),
        "POST /api/v1/consumer-groups/{group}/subscription" => {
            Case::WakesNobody("it concerns partitions that the group has not looked for yet")
        }
        "POST /api/v1/lease/{leaseId}/extend" => Case::WakesNobody("a lease only ends later"),
        "POST /api/v1/traces" | "POST /api/v1/stats/refresh" => {
            Case::WakesNobody("it is read only")
        }
        "POST /streams/v1/queries" => Case::WakesNobody("a query is asked for by its name"),
        "POST /streams/v1/state/get" | "POST /internal/api/notify" => {
            Case::WakesNobody("it writes nothing")
        }

        "POST /v1/joblib/rooms/{room_id}/tasks/{*job_name}" => {
            let worker = jobs.worker_with_job().await;
            Case::Wakes {
                write: jobs.submit(),
                wait: claim(&worker),
            }
        }
        "PUT /v1/joblib/rooms/{room_id}/jobs" => {
            jobs.worker_with_job().await;
            accepted(node, jobs.submit()).await;
            let other = accepted(node, post("/v1/joblib/workers", "")).await;
            let other = other["id"].as_str().expect("a worker").to_owned();
            Case::Wakes {
                write: jobs.register(Some(&other)),
                wait: claim(&other),
            }
        }
        "DELETE /v1/joblib/workers/{worker_id}" => {
            let worker = jobs.worker_with_job().await;
            let path = format!("/v1/joblib/workers/{worker}");
            Case::Wakes {
                write: request("DELETE", &path, Bytes::new()),
                wait: claim(&worker),
            }
        }
        "PATCH /v1/joblib/tasks/{task_id}" => {
            let worker = jobs.worker_with_job().await;
            accepted(node, jobs.submit()).await;
            let claimed = accepted(node, claim(&worker)).await;
            let path = format!(
                "/v1/joblib/tasks/{}",
                claimed["task"]["id"].as_str().unwrap()
            );
            let status = |status: &str| {
                request(
                    "PATCH",
                    &path,
                    json!({ "status": status }).to_string().into(),
                )
            };
            accepted(node, status("running")).await;
            Case::Wakes {
                write: status("completed"),
                wait: with_header(get(&path), "prefer", "wait=60"),
            }
        }
        "POST /v1/joblib/providers/{provider_id}/results" => {
            let provider = jobs.provider().await;
            let upload = post(&format!("/v1/joblib/providers/{provider}/results"), "[1]");
            Case::Wakes {
                write: with_header(upload, "x-request-hash", HASH_OF_NO_PARAMETERS),
                wait: jobs.read(),
            }
        }
        "PUT /v1/joblib/rooms/{room_id}/providers"
        | "DELETE /v1/joblib/providers/{provider_id}" => {
            Case::WakesNobody("a held read is woken and goes on waiting, for the next registration")
        }
        "POST /v1/joblib/tasks/claim" => Case::WakesNobody("a waiter for a task waits for its end"),
        "POST /v1/joblib/workers"
        | "PATCH /v1/joblib/workers/{worker_id}"
        | "PATCH /v1/joblib/providers/{provider_id}" => {
            Case::WakesNobody("a worker that is alive changes nothing")
        }
        route if route.contains(" /v1/rooms") => {
            Case::WakesNobody("sockets hear of rooms and frames; no request is held for them")
        }
        route if route.contains(" /v1/auth/") => Case::WakesNobody("nobody waits for a user"),

        "POST /jinaga/save" | "POST /jinaga/write" => {
            let specification = format!(
                r#"let site: {name}.Site = {{ domain: "a" }} (site: {name}.Site) {{ post: {name}.Post [ post->site: {name}.Site = site ] }}"#
            );
            let text = |path: &str, body: String| {
                with_header(post(path, body), "content-type", "text/plain")
            };
            let feeds = accepted(node, text("/jinaga/feeds", specification)).await;
            let feed = feeds["feeds"][0].as_str().expect("a feed");
            let declaration = format!(
                r#"let site: {name}.Site = {{ domain: "a" }} let post: {name}.Post = {{ site, title: "b" }}"#
            );
            let write = if route.ends_with("write") {
                text("/jinaga/write", declaration)
            } else {
                graph(name)
            };
            let wait = get(&format!("/jinaga/feeds/{feed}"));
            Case::Wakes {
                write,
                wait: with_header(wait, "prefer", "wait=60"),
            }
        }
        "POST /jinaga/feeds" => Case::WakesNobody("a stream is opened by the answer"),
        "POST /jinaga/load" | "POST /jinaga/read" => Case::WakesNobody("it writes nothing"),
        unknown => panic!("{unknown}: say here who waits for what it writes"),
    }
}

#[tokio::test]
async fn a_write_whose_caller_has_gone_wakes_a_waiter_at_another_node() {
    let ground = Ground::postgres().await;
    let node = |name: &str| {
        let url = format!("{}?application_name={name}", ground.postgres_url());
        Ground::postgres_at(url)
    };
    let (writing, waiting) = (node(WRITES), node("waits"));
    let start = |node: &Ground| node.serve().flags(&NO_FALLBACK).start();
    let (writes, waits) = tokio::join!(start(&writing), start(&waiting));
    for server in [&writes, &waits] {
        until_mode(server, "postgres", "live").await;
    }
    let (client, connection) = tokio_postgres::connect(ground.postgres_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let document = writes.get("/openapi.json").await.json();
    let (mut cases, mut unheard) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            if method == "get" {
                continue;
            }
            let route = format!("{} {path}", method.to_uppercase());
            let name = format!("case{cases}");
            if let Case::Wakes { write, wait } = case(&route, &name, &writes).await {
                eprintln!("{route}");
                if !hang_up(&writes, &waits, &client, write, wait).await {
                    unheard.push(route);
                }
            }
            cases += 1;
        }
    }
    assert_eq!(unheard, [""; 0]);
}

/// Whether the waiter was answered.
async fn hang_up(
    writes: &Server,
    waits: &Server,
    client: &Client,
    write: Request<Bytes>,
    wait: Request<Bytes>,
) -> bool {
    let mut line = Line::http1(waits.address()).await;
    let waiter = tokio::spawn(line.begin(wait));
    until_held(waits, 1).await;
    until("the waiter's first look to be over", async || {
        let busy = "SELECT 1 FROM pg_stat_activity WHERE state <> 'idle' AND \
                    datname = current_database() AND pid <> pg_backend_pid()";
        client
            .query(busy, &[])
            .await
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
    let lock_all = "DO $$ DECLARE name text; BEGIN \
                    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'wakeline' LOOP \
                    EXECUTE format('LOCK TABLE wakeline.%I IN EXCLUSIVE MODE', name); \
                    END LOOP; END $$";
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute(lock_all).await.unwrap();

    let mut gone = Line::http1(writes.address()).await;
    let writing = tokio::spawn(gone.begin(write));
    // Only this node's, and not its own upkeep: after another statement the write may not have come
    // yet, and its caller would hang up before the server has read it.
    until("the write to stand in the lock's line", async || {
        assert!(!writing.is_finished(), "it was answered without writing");
        let blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND \
                       datname = current_database() AND application_name = $1 AND \
                       query !~ 'sweep|queue_tally|queue_node|queue_parked'";
        // A transaction sees the activity as it was when it first asked.
        let forget = client.batch_execute("SELECT pg_stat_clear_snapshot()");
        forget.await.unwrap();
        let rows = client.query(blocked, &[&WRITES]).await.unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    writing.abort();
    drop(gone);
    until("the server to notice that its client is gone", async || {
        (open_connections(writes.address().port()) == 0).then_some(())
    })
    .await;
    client.batch_execute("COMMIT").await.unwrap();

    let answered = timeout(HEARD_WITHIN, waiter).await;
    drop(line);
    until_held(waits, 0).await;
    answered.is_ok_and(|answered| answered.expect("no panic").is_ok())
}

/// Until exactly so many requests are held. What a node itself waits for does not count.
async fn until_held(server: &Server, count: usize) {
    until(&format!("{count} held"), async || {
        let waits = server.get("/v1/waits").await.json();
        let held = waits["waits"].as_array().expect("rows").iter();
        let held = held.filter(|row| row["topics"][0] != "feed/log").count();
        (held == count).then_some(())
    })
    .await;
}

/// The server's ends of its connections.
fn open_connections(port: u16) -> usize {
    let (port, states) = (format!(":{port:04X}"), ["01", "08"]);
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
    let rows = table
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[1].ends_with(&port) && states.contains(&row[3]))
        .count()
}

fn item(queue: &str) -> Value {
    json!({"queue": queue, "payload": 1})
}

fn message(queue: &str) -> Value {
    json!({"items": [item(queue)]})
}

fn pop(queue: &str) -> Request<Bytes> {
    get(&format!(
        "/api/v1/pop/queue/{queue}?wait=true&timeout=60000&batch=1"
    ))
}

fn pop_of_group(name: &str) -> Request<Bytes> {
    let path = format!("/api/v1/pop/queue/{name}?wait=true&timeout=60000&batch=1");
    get(&format!("{path}&consumerGroup={name}"))
}

async fn accepted(node: &Server, request: Request<Bytes>) -> Value {
    let about = format!("{} {}", request.method(), request.uri());
    let answer = node.call(request).await;
    assert!(
        (200..300).contains(&answer.status),
        "{about}: {} {}",
        answer.status,
        answer.text()
    );
    if answer.body.is_empty() {
        Value::Null
    } else {
        answer.json()
    }
}

/// A message that is leased.
async fn leased(node: &Server, queue: &str) -> Value {
    node.push(queue, json!("first")).await;
    accepted(node, pop(queue)).await["messages"][0].clone()
}

/// The same, with another one behind it in its partition.
async fn leased_with_another_behind(node: &Server, queue: &str) -> Value {
    let taken = leased(node, queue).await;
    node.push(queue, json!("second")).await;
    taken
}

fn acknowledged(message: &Value, status: &str) -> Value {
    json!({
        "transactionId": message["transactionId"], "partitionId": message["partitionId"],
        "leaseId": message["leaseId"], "status": status,
    })
}

fn path_of(message: &Value) -> String {
    let part = |name: &str| message[name].as_str().expect("an id").to_owned();
    format!(
        "/api/v1/messages/{}/{}",
        part("partitionId"),
        part("transactionId")
    )
}

/// A message that the group has consumed: to start over makes it available again.
async fn consumed(node: &Server, name: &str) {
    node.push(name, json!("again")).await;
    let path = format!("/api/v1/pop/queue/{name}?wait=true&timeout=60000&autoAck=true");
    let popped = accepted(node, get(&format!("{path}&consumerGroup={name}"))).await;
    assert_eq!(popped["messages"].as_array().map(Vec::len), Some(1));
}

/// What a reader that gives no parameters asks for.
const HASH_OF_NO_PARAMETERS: &str =
    "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

struct Jobs<'a> {
    node: &'a Server,
    room: &'a str,
}

impl Jobs<'_> {
    fn register(&self, worker: Option<&str>) -> Request<Bytes> {
        let path = format!("/v1/joblib/rooms/{}/jobs", self.room);
        let mut job = json!({"category": "analysis", "name": "Mean"});
        if let Some(worker) = worker {
            job["worker_id"] = worker.into();
        }
        request("PUT", &path, job.to_string().into())
    }

    async fn worker_with_job(&self) -> String {
        let registered = accepted(self.node, self.register(None)).await;
        registered["worker_id"]
            .as_str()
            .expect("a worker")
            .to_owned()
    }

    fn submit(&self) -> Request<Bytes> {
        let room = self.room;
        let path = format!("/v1/joblib/rooms/{room}/tasks/{room}:analysis:Mean");
        post(&path, json!({"payload": {}}).to_string())
    }

    async fn provider(&self) -> String {
        let path = format!("/v1/joblib/rooms/{}/providers", self.room);
        let provider = json!({"category": "data", "name": "sensor"}).to_string();
        let registered = accepted(self.node, request("PUT", &path, provider.into())).await;
        registered["id"].as_str().expect("a provider").to_owned()
    }

    fn read(&self) -> Request<Bytes> {
        let room = self.room;
        let path = format!("/v1/joblib/rooms/{room}/providers/{room}:data:sensor");
        with_header(get(&path), "prefer", "wait=30")
    }
}

fn claim(worker: &str) -> Request<Bytes> {
    let claim = post(
        "/v1/joblib/tasks/claim",
        json!({ "worker_id": worker }).to_string(),
    );
    with_header(claim, "prefer", "wait=60")
}

fn graph(name: &str) -> Request<Bytes> {
    let text = format!(
        "\"{name}.Site\"\n{{}}\n{{\"domain\":\"a\"}}\n\n\
         \"{name}.Post\"\n{{\"site\":0}}\n{{\"title\":\"b\"}}\n\n"
    );
    with_header(
        post("/jinaga/save", text),
        "content-type",
        "application/x-jinaga-graph-v1",
    )
}
