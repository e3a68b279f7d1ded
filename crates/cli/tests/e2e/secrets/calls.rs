//! A run: what clients send, right and wrong, at every door.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use wakeline_testbed::issuer::{SigningKey, unsigned};

use super::{
    bodies,
    planted::{BASIC, SearchedTexts, values::*},
};
use crate::{
    server::{PATIENCE, Server, until},
    wire::{Answer, get, post, raw, request, with_header},
};

const GRAPH: &str = "application/x-jinaga-graph-v1";
/// Of a read without parameters.
const HASH: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

struct Run<'a> {
    server: &'a Server,
    texts: &'a mut SearchedTexts,
}

pub(super) async fn all(server: &Server, texts: &mut SearchedTexts) {
    let mut run = Run { server, texts };
    run.spoilt_bodies().await;
    run.headers_and_queries().await;
    run.queues().await;
    run.users().await;
    run.tasks().await;
    run.providers().await;
    run.rooms().await;
    run.sockets().await;
    run.facts().await;
}

/// As the owner of a token of the settings, who has the role admin.
pub(super) async fn with_token(server: &Server, path: &str) -> Answer {
    server.call(bearing(get(path), TOKEN)).await
}

/// Nothing of a request is shown where the database is away.
pub(super) async fn without_a_database(server: &Server, texts: &mut SearchedTexts) {
    let mut run = Run { server, texts };
    let pushed = json!({"items": [{"queue": "q", "payload": PAYLOAD}]});
    until("a refused push", async || {
        let push = bearing(post("/api/v1/push", pushed.to_string()), TOKEN);
        (server.call(push).await.status == 503).then_some(())
    })
    .await;
    run.call(post("/api/v1/push", pushed.to_string())).await;
    run.login(USER_PASSWORD).await;
    run.login(WRONG_PASSWORD).await;
    run.call(get("/api/v1/pop/queue/q")).await;
    run.call(graph(&card(FACT))).await;
    let chat = json!({ "content": CHAT }).to_string();
    run.call(post("/v1/rooms/r/chat/messages", chat)).await;
    let task = json!({"payload": {"card": PAYLOAD}}).to_string();
    run.call(post("/v1/joblib/rooms/r/tasks/r:analysis:Sum", task))
        .await;
}

fn bearing(request: Request<Bytes>, token: &str) -> Request<Bytes> {
    with_header(request, "authorization", &format!("Bearer {token}"))
}

fn card(number: &str) -> String {
    format!("\"Bank.Card\"\n{{}}\n{{\"number\":\"{number}\"}}\n\n")
}

fn graph(body: &str) -> Request<Bytes> {
    with_header(post("/jinaga/save", body.to_owned()), "content-type", GRAPH)
}

impl Run<'_> {
    /// With the token of the settings, unless the request has another. A refusal is a place that must
    /// not have a secret.
    async fn call(&mut self, request: Request<Bytes>) -> Answer {
        let what = format!(
            "the refusal of {} {}",
            request.method(),
            request.uri().path()
        );
        let request = match request.headers().contains_key("authorization") {
            true => request,
            false => bearing(request, TOKEN),
        };
        let sent = String::from_utf8_lossy(request.body()).into_owned();
        let answer = self.server.call(request).await;
        if answer.status >= 400 {
            let sent: String = sent.chars().take(80).collect();
            let place = format!("{what} (sent {sent:?}, {})", answer.status);
            self.texts
                .add(&place, format!("{:?}\n{}", answer.headers, answer.text()));
        }
        answer
    }

    async fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.call(post(path, body.to_string())).await
    }

    /// One that must succeed: without it, what follows would test nothing.
    async fn done(&mut self, request: Request<Bytes>) -> Answer {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.call(request).await;
        assert!(
            (200..300).contains(&answer.status),
            "{what}: {} {}",
            answer.status,
            answer.text()
        );
        answer
    }

    async fn spoilt_bodies(&mut self) {
        let document = with_token(self.server, "/openapi.json").await.json();
        let spoilt = bodies::all(&document);
        assert!(spoilt.len() > 500, "only {} bodies", spoilt.len());
        for one in spoilt {
            let filled = one.path.split('/').map(|part| match part {
                "{*job_name}" | "{*provider_name}" => "r:analysis:Sum",
                part if part.ends_with("id}") && part != "{room_id}" => {
                    "2dfa3891-d7e1-4c8a-8630-4e74ab943073"
                }
                "{partitionId}" | "{transactionId}" | "{leaseId}" => {
                    "2dfa3891-d7e1-4c8a-8630-4e74ab943073"
                }
                part if part.starts_with('{') => "1",
                part => part,
            });
            let path = filled.collect::<Vec<_>>().join("/");
            self.call(request(&one.method, &path, one.body.clone().into()))
                .await;
            let typed = request(&one.method, &path, one.body.into());
            self.call(with_header(typed, "content-type", "application/json"))
                .await;
        }
    }

    async fn headers_and_queries(&mut self) {
        let key = SigningKey::hs256("s", JWT_SECRET.as_bytes());
        let other = SigningKey::hs256("s", WRONG_TOKEN.as_bytes());
        let claims = json!({"sub": "someone", "role": "admin", "exp": 1});
        let expired = key.sign(&claims);
        let foreign =
            other.sign(&json!({"sub": "someone", "role": "admin", "exp": 9_999_999_999_u64}));
        let roleless = key.sign(&json!({"sub": "someone", "exp": 9_999_999_999_u64}));
        self.texts.add_token("an expired token", &expired);
        self.texts.add_token("a token of another issuer", &foreign);
        self.texts.add_token("a token without a role", &roleless);
        let plain = unsigned(&json!({"alg": "none"}), &claims);
        for path in [
            "/v1/waits",
            "/api/v1/pop/queue/q",
            "/v1/joblib/workers",
            "/v1/auth/users/me",
            "/jinaga/login",
        ] {
            for token in [
                WRONG_TOKEN,
                &expired,
                &foreign,
                &roleless,
                &plain,
                &format!("{expired}.{TEXT}"),
            ] {
                self.call(bearing(get(path), token)).await;
            }
            for value in [
                format!("Basic {BASIC}"),
                TOKEN.to_owned(),
                format!("Token {TOKEN}"),
                format!("Bearer {TOKEN} {TOKEN}"),
            ] {
                self.call(with_header(get(path), "authorization", &value))
                    .await;
            }
            for (name, value) in [
                ("cookie", TOKEN),
                ("x-api-key", TOKEN),
                ("x-request-hash", TEXT),
                ("origin", "http://a.example"),
            ] {
                self.call(with_header(get(path), name, value)).await;
            }
            for name in ["token", "access_token", "password", "apiKey"] {
                self.call(get(&format!("{path}?{name}={TOKEN}"))).await;
            }
            let long = "x".repeat(9_000);
            self.call(get(&format!("{path}?token={TOKEN}&x={long}")))
                .await;
        }
        let broken =
            format!("GET /v1/waits HTTP/1.1\r\nhost: x\r\nauthorization Bearer {TOKEN}\r\n\r\n");
        let answer = raw(self.server.address(), broken.as_bytes()).await;
        self.texts
            .add("the refusal of a broken head", answer.text());
    }

    async fn queues(&mut self) {
        let sealed = json!({"queue": "sealed", "options": {"encryptionEnabled": true}});
        self.done(post("/api/v1/configure", sealed.to_string()))
            .await;
        let strict = json!({"queue": "q", "options": {"retryLimit": 1, "deadLetterQueue": true}});
        self.done(post("/api/v1/configure", strict.to_string()))
            .await;
        for queue in ["q", "q", "sealed"] {
            let items =
                json!({"items": [{"queue": queue, "payload": {"card": PAYLOAD, "n": NUMBER}}]});
            self.done(post("/api/v1/push", items.to_string())).await;
        }
        for status in ["failed", "retry", "dlq", "completed", PAYLOAD] {
            let popped = self.done(get("/api/v1/pop/queue/q?batch=1")).await;
            let message = match popped.status {
                204 => continue,
                _ => popped.json()["messages"][0].clone(),
            };
            let ack = json!({
                "transactionId": message["transactionId"], "partitionId": message["partitionId"],
                "leaseId": message["leaseId"], "status": status, "error": PAYLOAD,
            });
            self.post("/api/v1/ack", &ack).await;
            // The lease has ended.
            self.post("/api/v1/ack", &ack).await;
        }
        let item = json!({"queue": "q", "payload": PAYLOAD, "transactionId": "same"});
        let acked = json!({"type": "ack", "transactionId": "t", "partitionId": PAYLOAD, "status": "completed"});
        self.post(
            "/api/v1/transaction",
            &json!({"operations": [{"type": "push", "items": [item, item]}, acked]}),
        )
        .await;
        self.post(
            "/api/v1/transaction",
            &json!({"operations": [{"type": "push", "items": [item]}], "kv": [PAYLOAD]}),
        )
        .await;
        let deep = format!("{}\"{PAYLOAD}\"{}", "[".repeat(500), "]".repeat(500));
        let long = format!("\"{PAYLOAD}{}\"", "x".repeat(70_000));
        let nul = format!("\"\\u0000{PAYLOAD}\"");
        for payload in [
            deep,
            long,
            nul,
            format!("\"{PAYLOAD}\\ud800\""),
            PAYLOAD.to_owned(),
        ] {
            let body = format!(r#"{{"items":[{{"queue":"q","payload":{payload}}}]}}"#);
            self.call(post("/api/v1/push", body)).await;
        }
        let mut not_utf8 = format!(r#"{{"items":[{{"queue":"q","payload":"{PAYLOAD}"#).into_bytes();
        not_utf8.extend(b"\xff\"}]}");
        self.call(post("/api/v1/push", not_utf8)).await;
    }

    async fn login(&mut self, password: &str) -> Answer {
        let form = format!("username=ada%40example.com&password={password}");
        self.call(post("/v1/auth/jwt/login", form)).await
    }

    async fn users(&mut self) {
        let register = |password: Value| json!({"email": "ada@example.com", "password": password});
        for wrong in [
            json!(SHORT_PASSWORD),
            json!(NUMBER),
            json!([USER_PASSWORD]),
            json!(USER_PASSWORD.repeat(100)),
        ] {
            self.post("/v1/auth/register", &register(wrong)).await;
        }
        self.post("/v1/auth/register", &json!({"password": USER_PASSWORD}))
            .await;
        self.post(
            "/v1/auth/register",
            &json!({"email": "no address", "password": USER_PASSWORD}),
        )
        .await;
        self.done(post(
            "/v1/auth/register",
            register(json!(USER_PASSWORD)).to_string(),
        ))
        .await;
        self.post("/v1/auth/register", &register(json!(USER_PASSWORD)))
            .await;
        let token = self.login(USER_PASSWORD).await.json()["access_token"]
            .as_str()
            .expect("a token")
            .to_owned();
        self.texts.add_token("a user's token", &token);
        for _ in 0..7 {
            self.login(WRONG_PASSWORD).await;
        }
        for form in [
            format!("username=ada%40example.com&password={USER_PASSWORD}%ff"),
            format!("password={USER_PASSWORD}"),
            format!("username=ada%40example.com&pasword={USER_PASSWORD}"),
            register(json!(USER_PASSWORD)).to_string(),
        ] {
            self.call(post("/v1/auth/jwt/login", form)).await;
        }
        let me = |change: Value| request("PATCH", "/v1/auth/users/me", change.to_string().into());
        for change in [
            json!({"password": NUMBER}),
            json!({"password": SHORT_PASSWORD}),
            json!({"email": 5, "password": NEW_PASSWORD}),
        ] {
            self.call(bearing(me(change), &token)).await;
        }
        self.done(bearing(me(json!({"password": NEW_PASSWORD})), &token))
            .await;
        // It has ended with the old password.
        let refused = self.call(bearing(get("/v1/auth/users/me"), &token)).await;
        assert_eq!(refused.status, 401);
        self.call(bearing(get("/v1/waits"), &token)).await;
    }

    async fn tasks(&mut self) {
        let job = json!({"category": "analysis", "name": "Sum", "schema": {}});
        let registered = self
            .done(request(
                "PUT",
                "/v1/joblib/rooms/r/jobs",
                job.to_string().into(),
            ))
            .await;
        let worker = registered.json()["worker_id"].clone();
        let tasks = "/v1/joblib/rooms/r/tasks/r:analysis:Sum";
        for payload in [json!(PAYLOAD), json!([PAYLOAD]), json!(NUMBER)] {
            let refused = self.post(tasks, &json!({ "payload": payload })).await;
            assert_eq!(refused.status, 422);
        }
        for _ in 0..2 {
            self.done(post(
                tasks,
                json!({"payload": {"card": PAYLOAD}}).to_string(),
            ))
            .await;
        }
        for end in ["completed", "failed"] {
            let claimed = self
                .done(post(
                    "/v1/joblib/tasks/claim",
                    json!({"worker_id": worker}).to_string(),
                ))
                .await;
            let path = format!(
                "/v1/joblib/tasks/{}",
                claimed.json()["task"]["id"].as_str().expect("a task")
            );
            let patch = |body: Value| request("PATCH", &path, body.to_string().into());
            for wrong in [
                json!({"error": RESULT}),
                json!({"status": RESULT}),
                json!({"status": "failed", "error": [RESULT]}),
                json!({"status": "completed", "result": RESULT}),
            ] {
                self.call(patch(wrong)).await;
            }
            self.done(patch(json!({"status": "running"}))).await;
            self.done(patch(json!({"status": end, "error": RESULT})))
                .await;
            self.call(patch(json!({"status": end, "error": RESULT})))
                .await;
        }
    }

    async fn providers(&mut self) {
        let provider = json!({"category": "files", "name": "a", "schema": {}});
        let register = request(
            "PUT",
            "/v1/joblib/rooms/r/providers",
            provider.to_string().into(),
        );
        let id = self.done(register).await.json()["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let read = format!("/v1/joblib/rooms/r/providers/files/a?path={PARAMETER}");
        // Among the waits while they are looked at.
        let (server, held) = (self.server, with_header(get(&read), "prefer", "wait=2"));
        let waits = until("the read to be held", async || {
            let waits = with_token(server, "/v1/waits").await;
            (waits.json()["total"] == 1).then_some(waits)
        });
        let held = server.call(bearing(held, TOKEN));
        let (refused, waits) = tokio::join!(tokio::time::timeout(PATIENCE, held), waits);
        let refused = refused.expect("an answer");
        assert_eq!(refused.status, 504, "{}", refused.text());
        self.texts.add("the refusal of a read", refused.text());
        self.texts.add("/v1/waits with a held read", waits.text());
        let results = format!("/v1/joblib/providers/{id}/results");
        self.call(post(&results, RESULT)).await;
        self.call(with_header(
            post(&results, RESULT),
            "x-request-hash",
            "no hash",
        ))
        .await;
        let long = RESULT.repeat(400_000);
        self.call(with_header(post(&results, long), "x-request-hash", HASH))
            .await;
        self.done(with_header(post(&results, RESULT), "x-request-hash", HASH))
            .await;
    }

    async fn rooms(&mut self) {
        self.done(post("/v1/rooms", json!({"room_id": "r"}).to_string()))
            .await;
        let frames = "/v1/rooms/r/frames";
        for body in [
            json!({"frames": FRAME}),
            json!({"frames": [FRAME]}),
            json!({"frames": [{"cell": FRAME}]}),
            json!({"frames": [{"cell": [FRAME]}]}),
            json!({"frames": [{"b64:Y2VsbA==": FRAME}]}),
            json!({"frames": [{"cell": "enFmcmFtZTEy"}]}),
        ] {
            let refused = self.post(frames, &body).await;
            assert!((400..500).contains(&refused.status), "{}", refused.text());
        }
        for body in [
            FRAME.to_owned(),
            format!("\u{1}{FRAME}"),
            "\u{a1}zqframe12".to_owned(),
        ] {
            for method in ["POST", "PUT", "PATCH"] {
                let path = if method == "POST" {
                    frames.to_owned()
                } else {
                    format!("{frames}/0")
                };
                let sent = request(method, &path, body.clone().into());
                self.call(with_header(sent, "content-type", "application/x-msgpack"))
                    .await;
            }
        }
        let chat = "/v1/rooms/r/chat/messages";
        for body in [
            json!({"content": [CHAT]}),
            json!({"contents": CHAT}),
            json!(CHAT),
        ] {
            self.post(chat, &body).await;
        }
        self.call(post(chat, format!(r#"{{"content":"{CHAT}"#)))
            .await;
        self.done(post(chat, json!({ "content": CHAT }).to_string()))
            .await;
    }

    async fn sockets(&mut self) {
        let base = format!("/socket.io/?EIO=4&transport=polling&token={TOKEN}");
        for connect in [
            format!(r#"40{{"token":"{WRONG_TOKEN}"}}"#),
            format!(r#"40{{"token":{NUMBER}}}"#),
            format!(r#"40{{"token":"{WRONG_TOKEN}""#),
            format!(r#"42["room_join",{{"room":"{CHAT}"#),
            format!("4{CHAT}"),
            CHAT.to_owned(),
        ] {
            let opened = self.done(get(&base)).await.text();
            let opened: Value = serde_json::from_str(&opened[1..]).expect("a handshake");
            let session = format!("{base}&sid={}", opened["sid"].as_str().expect("a session"));
            self.call(post(&session, connect)).await;
            let read = self.call(get(&session)).await;
            self.texts.add("what a socket is told", read.text());
        }
        self.call(get(&format!("/socket.io/?EIO=9&token={TOKEN}")))
            .await;
    }

    async fn facts(&mut self) {
        self.done(graph(&card(FACT))).await;
        for body in [
            format!("\"Bank.Card\"\n{{}}\n{{\"number\":\"{FACT}\"\n\n"),
            format!("\"Bank.Card\"\n{{}}\n\"{FACT}\"\n\n"),
            format!("\"Bank.Card\"\n\"{FACT}\"\n{{}}\n\n"),
            format!("{FACT}\n{{}}\n{{}}\n\n"),
            format!("\"Bank.Card\"\n{{\"of\":7}}\n{{\"number\":\"{FACT}\"}}\n\n"),
        ] {
            let refused = self.call(graph(&body)).await;
            assert!(
                (400..500).contains(&refused.status),
                "{body}: {}",
                refused.text()
            );
        }
        let fact = |fields: Value| json!({"facts": [{"type": "Bank.Card", "hash": "x", "predecessors": {}, "fields": fields}]});
        for body in [
            json!({"facts": FACT}),
            json!({"facts": [FACT]}),
            fact(json!(FACT)),
            fact(json!({"number": FACT})),
            fact(json!({"number": [FACT]})),
        ] {
            let save = with_header(
                post("/jinaga/save", body.to_string()),
                "content-type",
                "application/json",
            );
            self.call(save).await;
        }
        let load = json!({"references": [{"type": "Bank.Card", "hash": FACT}, FACT]});
        self.call(with_header(
            post("/jinaga/load", load.to_string()),
            "content-type",
            "application/json",
        ))
        .await;
        for text in [
            format!(r#"let card: Bank.Card = {{ number: "{FACT}"#),
            format!(r#"let card: Bank.Card = {{ number: "{FACT}" "{FACT}" }}"#),
            format!(r#"let card: Bank.Card = "{FACT}""#),
            format!(r#"let card: Bank.Card = {{ "{FACT}" }}"#),
            format!(r#"let card: Bank.Card = {{ number: "{FACT}" }} (card: Bank.Card) {{ x: "#),
            format!(r#"let card: Bank.Card = {{ number: "{FACT}" }} "{FACT}""#),
        ] {
            for path in ["/jinaga/write", "/jinaga/read", "/jinaga/feeds"] {
                self.call(with_header(
                    post(path, text.clone()),
                    "content-type",
                    "text/plain",
                ))
                .await;
            }
        }
    }
}
