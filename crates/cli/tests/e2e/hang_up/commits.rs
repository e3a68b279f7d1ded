//! A committed write has woken its waiters, whatever happened to its caller: over every writing
//! route, a client hangs up while its commit is blocked, and a waiter at another node is answered.
//!
//! The routes are those of the server's own description. What comes over Socket.IO is not in it;
//! `crates/jobs/tests/socket` has its cases.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, NoTls};

use crate::{
    fixture::Fixture,
    nodes::until_mode,
    server::{Server, until},
    wire::{Answer, Line, get, post, request, with_header},
};

/// The fallback is so rare that only the wake of the write can have answered the waiter. The bus
/// makes the door recheck its waiters when a canary comes back late, so canaries are rare too.
const NO_FALLBACK: [&str; 8] = [
    "--wake-fallback",
    "1h",
    "--wake-fallback-degraded",
    "1h",
    "--bus-canary",
    "1m",
    // The node's own upkeep waits for the blocked tables as well, and reads must not wait for that.
    "--postgres-connections",
    "16",
];

/// What the nodes call themselves in the database.
const WRITES: &str = "writes";
const WAITS: &str = "waits";

/// A wake takes milliseconds, the fallback an hour.
const WOKEN_WITHIN: Duration = Duration::from_secs(1);

/// A read that waits for a write is not answered at all.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// What is done with one route.
enum Case {
    /// `write` hangs up while its commit is blocked; `wait`, held at the other node, is answered.
    Wakes {
        write: Request<Bytes>,
        wait: Request<Bytes>,
    },
    /// `claim` hangs up while its commit is blocked, and gives back what it claimed; `wait`, which
    /// came to the other node after it and found nothing left, is answered.
    Releases {
        claim: Request<Bytes>,
        wait: Request<Bytes>,
    },
    /// Nobody can be waiting for what it writes, for this reason.
    WakesNobody(#[expect(dead_code, reason = "for the reader")] &'static str),
}

/// Every route that is not a `GET`, and each `GET` that writes, must be here: a new one has to say
/// who waits for what it writes. `name` is of this case alone.
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
            let message = leased_with_another_behind(node, &source).await;
            let query = json!({"name": name, "source_queue": source, "config_hash": "c"});
            let query = node.post("/streams/v1/queries", &query).await.json();
            let cycle = json!({
                "query_id": query["query_id"], "partition_id": message["partitionId"],
                "state_ops": [], "push_items": [item(name)],
            });
            Case::Wakes {
                write: post("/streams/v1/cycle", cycle.to_string()),
                wait: pop(name),
            }
        }
        // The partition is free again, for its next message.
        "POST /api/v1/ack" => {
            let message = leased_with_another_behind(node, name).await;
            Case::Wakes {
                write: post(
                    "/api/v1/ack",
                    acknowledged(&message, "completed").to_string(),
                ),
                wait: pop(name),
            }
        }
        "POST /api/v1/ack/batch" => {
            let message = leased_with_another_behind(node, name).await;
            let acks = json!({"acknowledgments": [acknowledged(&message, "completed")]});
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
        "GET /api/v1/pop/queue/{queue}" => {
            node.push(name, json!("claimed")).await;
            Case::Releases {
                claim: pop(name),
                wait: pop(name),
            }
        }
        "GET /api/v1/pop/queue/{queue}/partition/{partition}" => {
            node.push(name, json!("claimed")).await;
            let path = format!("/api/v1/pop/queue/{name}/partition/Default");
            let pop = || get(&format!("{path}?wait=true&timeout=60000&batch=1"));
            Case::Releases {
                claim: pop(),
                wait: pop(),
            }
        }
        "GET /api/v1/pop" => {
            node.push(&format!("{name}.tasks"), json!("claimed")).await;
            let path = format!("/api/v1/pop?namespace={name}&wait=true&timeout=60000&batch=1");
            Case::Releases {
                claim: get(&path),
                wait: get(&path),
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
        "POST /api/v1/traces" => Case::WakesNobody("a trace is listed, not waited for"),
        "POST /api/v1/stats/refresh" => Case::WakesNobody("numbers are listed, not waited for"),
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
        "GET /v1/joblib/rooms/{room_id}/providers/{*provider_name}" => {
            Case::WakesNobody("other reads wait for the provider's answer, not for the request")
        }
        "POST /v1/joblib/tasks/claim" => {
            jobs.worker_with_job().await;
            let mut workers = Vec::new();
            for _ in 0..2 {
                let worker = accepted(node, post("/v1/joblib/workers", "")).await;
                let worker = worker["id"].as_str().expect("a worker").to_owned();
                accepted(node, jobs.register(Some(&worker))).await;
                workers.push(worker);
            }
            accepted(node, jobs.submit()).await;
            Case::Releases {
                claim: claim(&workers[0]),
                wait: claim(&workers[1]),
            }
        }
        "POST /v1/joblib/workers"
        | "PATCH /v1/joblib/workers/{worker_id}"
        | "PATCH /v1/joblib/providers/{provider_id}" => {
            Case::WakesNobody("a worker that is alive changes nothing")
        }
        "POST /v1/rooms"
        | "PATCH /v1/rooms/{room}"
        | "POST /v1/rooms/{room}/chat/messages"
        | "POST /v1/rooms/{room}/progress"
        | "PATCH /v1/rooms/{room}/progress/{progress}"
        | "DELETE /v1/rooms/{room}/progress/{progress}"
        | "POST /v1/rooms/{room}/frames"
        | "PUT /v1/rooms/{room}/frames/{index}"
        | "PATCH /v1/rooms/{room}/frames/{index}"
        | "DELETE /v1/rooms/{room}/frames/{index}" => {
            Case::WakesNobody("sockets hear of rooms and frames; no request is held for them")
        }
        "POST /v1/auth/guest"
        | "POST /v1/auth/register"
        | "POST /v1/auth/jwt/login"
        | "POST /v1/auth/jwt/logout"
        | "PATCH /v1/auth/users/me"
        | "PATCH /v1/auth/users/{id}" => Case::WakesNobody("no request is held for a user"),
        "DELETE /v1/auth/users/{id}" => Case::WakesNobody(
            "here every caller owns all workers; crates/jobs/tests/users has one whose workers go",
        ),

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
        "POST /jinaga/load" | "POST /jinaga/read" => {
            Case::WakesNobody("nobody can log in here, so they store no user")
        }
        "GET /jinaga/login" => Case::WakesNobody(
            "nobody can log in here; crates/feed/tests has first logins that hang up",
        ),
        unknown => panic!("{unknown}: say here who waits for what it writes"),
    }
}

/// A `GET` that has a case above because it writes.
fn is_writing_get(route: &str) -> bool {
    ["/api/v1/pop", "/jinaga/login", "/providers/"]
        .iter()
        .any(|part| route.contains(part))
}

#[tokio::test]
async fn a_write_whose_caller_hung_up_wakes_a_waiter_at_another_node() {
    let nodes = Nodes::start().await;
    let mut not_woken = Vec::new();
    for (number, route) in nodes.routes().await.iter().enumerate() {
        if route.starts_with("GET ") && !is_writing_get(route) {
            continue;
        }
        let name = format!("case{number}");
        let is_woken = match case(route, &name, &nodes.writes).await {
            Case::Wakes { write, wait } => nodes.hang_up_on_write(write, wait).await,
            Case::Releases { claim, wait } => nodes.hang_up_on_claim(claim, wait).await,
            Case::WakesNobody(_) => continue,
        };
        if let Err(problem) = is_woken {
            not_woken.push(format!("{route}: {problem}"));
        }
    }
    assert_eq!(not_woken, [""; 0]);
}

/// A `GET` needs no case above if it is answered while no table can be written to.
#[tokio::test]
async fn a_get_without_a_case_writes_nothing() {
    let nodes = Nodes::start().await;
    let routes = nodes.routes().await;
    let gets = routes.iter().filter_map(|route| route.strip_prefix("GET "));
    // The first call without a token creates the user of all such calls.
    accepted(&nodes.writes, get("/v1/auth/users/me")).await;
    nodes.block_writes().await;
    let mut unanswered = Vec::new();
    for route in gets.filter(|route| !is_writing_get(route)) {
        let path: Vec<_> = route
            .split('/')
            .map(|part| match part {
                "{room}" | "{queue}" | "{group}" | "{name}" | "{problem}" | "{hash}" => "unknown",
                "{index}" => "0",
                "{*job_name}" => "unknown:a:b",
                part if part.starts_with('{') => "018f0000-0000-7000-8000-000000000000",
                part => part,
            })
            .collect();
        let mut line = Line::http1(nodes.writes.address()).await;
        let answer = timeout(ANSWERED_WITHIN, line.call(get(&path.join("/")))).await;
        if !answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status < 500)) {
            unanswered.push(route.to_owned());
        }
    }
    nodes.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(unanswered, [""; 0]);
}

/// The blocked write needs longer than a stopping server gives to its connections and wakes.
#[tokio::test]
async fn a_stopping_node_commits_and_announces_a_write_whose_caller_hung_up() {
    const BLOCKED_FOR: Duration = Duration::from_secs(6);
    let mut nodes = Nodes::start().await;
    let waiter = nodes.hold(pop("stopping")).await;
    nodes.block_writes().await;
    nodes
        .hang_up(post("/api/v1/push", message("stopping").to_string()))
        .await;
    nodes.writes.signal("TERM");
    until("the node to stop", async || {
        nodes.writes.log().contains("stopping").then_some(())
    })
    .await;
    tokio::time::sleep(BLOCKED_FOR).await;
    nodes.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(nodes.woken(waiter).await, Ok(()));
    assert_eq!(nodes.writes.exit().await.code(), Some(0));
}

/// Two nodes on one database, and a connection that blocks their writes.
struct Nodes {
    writes: Server,
    waits: Server,
    client: Client,
    _fixtures: [Fixture; 3],
}

impl Nodes {
    async fn start() -> Self {
        let fixture = Fixture::postgres().await;
        let node = |name: &str| {
            let url = format!("{}?application_name={name}", fixture.postgres_url());
            Fixture::postgres_at(url)
        };
        let (writing, waiting) = (node(WRITES), node(WAITS));
        let start = |node: &Fixture| node.serve().flags(&NO_FALLBACK).start();
        let (writes, waits) = tokio::join!(start(&writing), start(&waiting));
        for server in [&writes, &waits] {
            until_mode(server, "postgres", "live").await;
        }
        let (client, connection) = tokio_postgres::connect(fixture.postgres_url(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        Self {
            writes,
            waits,
            client,
            _fixtures: [fixture, writing, waiting],
        }
    }

    /// Each as its method and its path.
    async fn routes(&self) -> Vec<String> {
        let document = self.writes.get("/openapi.json").await.json();
        let paths = document["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, operations)| {
                let methods = operations.as_object().unwrap().keys();
                methods.map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect()
    }

    async fn hang_up_on_write(
        &self,
        write: Request<Bytes>,
        wait: Request<Bytes>,
    ) -> Result<(), String> {
        let waiter = self.hold(wait).await;
        self.block_writes().await;
        self.hang_up(write).await;
        self.client.batch_execute("COMMIT").await.unwrap();
        self.woken(waiter).await
    }

    /// A request that is parked at the other node.
    async fn hold(&self, wait: Request<Bytes>) -> JoinHandle<hyper::Result<Answer>> {
        let mut line = Line::http1(self.waits.address()).await;
        let waiter = tokio::spawn(async move { line.call(wait).await });
        until_held(&self.waits, 1).await;
        until("the waiter's first check to be over", async || {
            let busy = "SELECT 1 FROM pg_stat_activity WHERE state <> 'idle' AND \
                        datname = current_database() AND pid <> pg_backend_pid()";
            let rows = self.client.query(busy, &[]).await.unwrap();
            rows.is_empty().then_some(())
        })
        .await;
        waiter
    }

    async fn hang_up_on_claim(
        &self,
        claim: Request<Bytes>,
        wait: Request<Bytes>,
    ) -> Result<(), String> {
        self.block_writes().await;
        let mut line = Line::http1(self.waits.address()).await;
        let gone = self.begin_write(claim).await;
        // This claim waits for the lock after the other claim, so that it finds nothing left.
        let waiter = tokio::spawn(async move { line.call(wait).await });
        self.until_blocked(WAITS).await;
        self.leave(gone).await;
        self.client.batch_execute("COMMIT").await.unwrap();
        self.woken(waiter).await
    }

    /// Opens a transaction in which no table can be written to. The locks are taken one by one, so
    /// the nodes' own upkeep can be in the way: then PostgreSQL refuses one of the two.
    async fn block_writes(&self) {
        let lock_all = "DO $$ DECLARE name text; BEGIN \
                        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'wakeline' \
                        LOOP EXECUTE format('LOCK TABLE wakeline.%I IN EXCLUSIVE MODE', name); \
                        END LOOP; END $$";
        until("all tables to be locked", async || {
            self.client.batch_execute("BEGIN").await.unwrap();
            let locked = self.client.batch_execute(lock_all).await;
            if locked.is_err() {
                self.client.batch_execute("ROLLBACK").await.unwrap();
            }
            locked.ok()
        })
        .await;
    }

    async fn hang_up(&self, write: Request<Bytes>) {
        let writing = self.begin_write(write).await;
        self.leave(writing).await;
    }

    /// Begins the write and waits until its commit is blocked.
    async fn begin_write(
        &self,
        write: Request<Bytes>,
    ) -> (Line, JoinHandle<hyper::Result<Answer>>) {
        let mut line = Line::http1(self.writes.address()).await;
        let writing = tokio::spawn(line.begin(write));
        self.until_blocked(WRITES).await;
        assert!(!writing.is_finished(), "it was answered without writing");
        (line, writing)
    }

    async fn leave(&self, (line, writing): (Line, JoinHandle<hyper::Result<Answer>>)) {
        writing.abort();
        drop(line);
        until("the server to notice that its client is gone", async || {
            (open_connections(self.writes.address().port()) == 0).then_some(())
        })
        .await;
    }

    /// Until a write of the node is blocked. Its own upkeep does not count: after another statement
    /// the write may not have come yet, and its caller would hang up before the server has read it.
    async fn until_blocked(&self, name: &str) {
        until("a request to stand in the lock's line", async || {
            let blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND \
                           datname = current_database() AND application_name = $1 AND \
                           query !~ 'sweep|queue_counters|queue_node_stats|queue_held_pops'";
            // A transaction sees the activity of the moment of its first query.
            let forget = self.client.batch_execute("SELECT pg_stat_clear_snapshot()");
            forget.await.unwrap();
            let rows = self.client.query(blocked, &[&name]).await.unwrap();
            (!rows.is_empty()).then_some(())
        })
        .await;
    }

    /// Succeeds if the waiter is answered with success in time.
    async fn woken(&self, waiter: JoinHandle<hyper::Result<Answer>>) -> Result<(), String> {
        // A waiter that was not woken hangs up, so that the next case does not count it.
        let hang_up = waiter.abort_handle();
        let answered = timeout(WOKEN_WITHIN, waiter).await;
        hang_up.abort();
        let woken = match answered {
            Err(_) => Err("the waiter was not woken".to_owned()),
            Ok(answer) => match answer.expect("no panic") {
                // 404 where the write removed the worker that waits.
                Ok(answer) if matches!(answer.status, 200 | 404) => Ok(()),
                Ok(answer) => Err(format!("{} {}", answer.status, answer.text())),
                Err(error) => Err(error.to_string()),
            },
        };
        until_held(&self.waits, 0).await;
        woken
    }
}

/// Until exactly `count` requests are held. The node's own wait for the feed log does not count.
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

/// A leased message with another one after it in its partition.
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

/// The parameters and the hash of a read without parameters.
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
