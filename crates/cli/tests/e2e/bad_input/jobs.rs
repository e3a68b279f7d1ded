//! Bad input at the routes of jobs and providers. They answer in zndraw-joblib's shapes, which
//! differ from route to route, so less is expected of all of them: no answer is the server's fault
//! (5xx), and the wrong field is named.

use bytes::Bytes;
use http::{HeaderValue, Request};
use serde_json::{Value, json};

use super::cases::parameters;
use crate::{
    access::has_own_users,
    server::Server,
    wire::{Answer, request},
};

const UUID: &str = "2dfa3891-d7e1-4c8a-8630-4e74ab943073";
const JSON: &str = "application/json";
/// With fewer routes the test would not have understood the API document.
const AT_LEAST: usize = 250;

struct BadRequest {
    what: String,
    request: Request<Bytes>,
    named: String,
}

/// What is wrong with the answers, if anything is.
pub(super) async fn wrong(server: &Server, document: &Value) -> Vec<String> {
    let cases = all(document);
    assert!(cases.len() > AT_LEAST, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for bad in cases {
        let answer = server.call(bad.request).await;
        wrong.extend(judge(&bad.what, &bad.named, &answer));
    }
    wrong
}

fn judge(what: &str, named: &str, answer: &Answer) -> Option<String> {
    let text = answer.text();
    let is_refused = (400..500).contains(&answer.status);
    let body = serde_json::from_str::<Value>(&text).unwrap_or_default();
    // The wrong field: in FastAPI's list of locations, or in the text of a problem.
    let is_named = body["detail"].to_string().contains(named);
    let short: String = text.chars().take(300).collect();
    let about = format!("{what}: {} {short}", answer.status);
    (!is_refused || !is_named).then(|| format!("expected {named:?} to be named; {about}"))
}

fn all(document: &Value) -> Vec<BadRequest> {
    let mut cases = Vec::new();
    let paths = document["paths"].as_object().expect("paths").iter();
    for (path, operations) in paths.filter(|(path, _)| has_own_users(path)) {
        for (method, operation) in operations.as_object().expect("operations") {
            let route = Route {
                method: method.to_uppercase(),
                path,
                operation,
            };
            route.queries(&mut cases);
            route.ids(&mut cases);
            route.names(&mut cases);
            route.bodies(&mut cases, document);
        }
    }
    cases
}

struct Route<'a> {
    method: String,
    path: &'a str,
    operation: &'a Value,
}

impl Route<'_> {
    /// With something good for each part.
    fn url(&self) -> String {
        let parts = self.path.split('/').map(|part| match part {
            "{*job_name}" => "x:modifiers:x",
            "{*provider_name}" => "x:filesystem:x",
            "{index}" => "0",
            part if part.ends_with("id}") && part != "{room_id}" => UUID,
            part if part.starts_with('{') => "x",
            part => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }

    fn bad(&self, url: &str, body: Vec<u8>, named: &str) -> BadRequest {
        let shown: String = String::from_utf8_lossy(&body).chars().take(80).collect();
        let mut request = request(&self.method, url, body.into());
        let json = HeaderValue::from_static(JSON);
        request.headers_mut().insert("content-type", json);
        BadRequest {
            what: format!("{} {url} {shown}", self.method),
            request,
            named: named.to_owned(),
        }
    }

    fn queries(&self, cases: &mut Vec<BadRequest>) {
        for parameter in parameters(self.operation, "query") {
            let name = parameter["name"].as_str().expect("a name");
            let bad: &[&str] = match (name, parameter["schema"]["type"].as_str()) {
                (_, Some("integer")) => &["abc", "1.5", "1e3", "0x10", "99999999999999999999"],
                ("status", _) => &["abc", "COMPLETED", "%00"],
                ("indices", _) => &["abc", "1,b", "1.5"],
                // Any text may be a key.
                ("keys", _) => &[],
                other => panic!("no bad values are known for {other:?}"),
            };
            for value in bad {
                let url = format!("{}?{name}={value}", self.url());
                cases.push(self.bad(&url, Vec::new(), name));
            }
        }
    }

    fn ids(&self, cases: &mut Vec<BadRequest>) {
        let url = self.url();
        // An invalid user id is an unknown user: fastapi-users answers 404 and no more.
        if !url.contains(UUID) || self.path.starts_with("/v1/auth/users/") {
            return;
        }
        let names = parameters(self.operation, "path").map(|one| one["name"].as_str());
        let name = names.last().flatten().expect("a name");
        for bad in ["zzz", "2dfa3891", "%00"] {
            cases.push(self.bad(&url.replace(UUID, bad), b"{}".to_vec(), name));
        }
    }

    /// A NUL, which is no text for PostgreSQL.
    fn names(&self, cases: &mut Vec<BadRequest>) {
        for (part, good, named) in [
            ("{*job_name}", "x:modifiers:x", "job name"),
            ("{*provider_name}", "x:filesystem:x", "provider name"),
        ] {
            if !self.path.contains(part) {
                continue;
            }
            let short = good.split_once(':').map(|(_, rest)| rest.replace(':', "/"));
            let short = short.expect("a room");
            for bad in [format!("{good}%00"), format!("{short}%00")] {
                for behind in ["", "/info", "/tasks"] {
                    let url = self.url().replace(good, &format!("{bad}{behind}"));
                    cases.push(self.bad(&url, b"{}".to_vec(), named));
                }
            }
        }
    }

    fn bodies(&self, cases: &mut Vec<BadRequest>, document: &Value) {
        let content = &self.operation["requestBody"]["content"];
        let Some(schema) = content[JSON]["schema"]["$ref"].as_str() else {
            return;
        };
        let schema = document.pointer(&schema[1..]).expect("a schema");
        let url = self.url();
        let nested = "[".repeat(100_000);
        let unreadable: [&[u8]; 8] = [
            b"{",
            b"nul",
            b"5",
            b"[]",
            b"\"text\"",
            b"{\"a\":1,}",
            b"{\"\xff\":1}",
            nested.as_bytes(),
        ];
        for body in unreadable {
            cases.push(self.bad(&url, body.to_vec(), "body"));
        }
        let properties = schema["properties"].as_object().expect("properties");
        let good = |name: &str| match name {
            "worker_id" => json!(UUID),
            "status" => json!("running"),
            "category" => json!("modifiers"),
            "email" => json!("ada@example.com"),
            "password" => json!("correct horse"),
            _ => json!("x"),
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Value::as_str).collect();
        for (name, property) in properties {
            let kind = &property["type"];
            let kind = kind.as_str().or_else(|| kind[0].as_str());
            let mut wrong = match kind {
                Some("string") => vec![json!(5), json!(true), json!([]), json!({})],
                Some("integer") => vec![json!("x"), json!(1.5), json!([]), json!(-1)],
                Some("number") => vec![json!("x"), json!(true), json!([]), json!(-1)],
                Some("boolean") => vec![json!("x"), json!([]), json!({})],
                Some("object") => vec![json!("x"), json!(5), json!([])],
                other => panic!("no wrong values are known for {name}, {other:?}"),
            };
            if property["format"] == "uuid" {
                wrong.extend([json!("zzz"), json!(""), json!("\0")]);
            }
            let mut wrong: Vec<_> = wrong
                .into_iter()
                .map(|wrong| (wrong, name.as_str()))
                .collect();
            match (kind, name.as_str()) {
                // A chat message may be any text.
                (_, "content") => {}
                (_, "room_id" | "copy_from") => wrong.push((json!("\0"), "Room ID")),
                (Some("string"), name) => wrong.push((json!("\0"), name)),
                _ => {}
            }
            for (wrong, named) in wrong {
                let mut body: Value = required.iter().map(|name| (*name, good(name))).collect();
                body[name] = wrong;
                cases.push(self.bad(&url, body.to_string().into_bytes(), named));
            }
        }
        for left_out in &required {
            let others = required.iter().filter(|name| *name != left_out);
            let body: Value = others.map(|name| (*name, good(name))).collect();
            cases.push(self.bad(&url, body.to_string().into_bytes(), left_out));
        }
    }
}
