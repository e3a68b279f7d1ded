//! Bad requests made from the API's document, so that a new route or field is covered, or asked
//! for here, on the day it appears.

use bytes::Bytes;
use http::{HeaderValue, Request};
use serde_json::{Value, json};

use crate::wire::{get, post, request};

pub(crate) struct Case {
    pub(crate) what: String,
    pub(crate) request: Request<Bytes>,
    pub(crate) status: u16,
    /// What the problem must name; `None` if there is nothing to be named.
    pub(crate) field: Option<String>,
}

const METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
];
const TOO_LONG: usize = 256;

/// Where every parameter and every field is spoilt. The other routes have their own tests of what
/// they refuse; here they get what cannot be read at all.
const SPOILT: [&str; 6] = [
    "/api/v1/push",
    "/api/v1/ack",
    "/api/v1/pop/queue/{queue}",
    "/api/v1/pop/queue/{queue}/partition/{partition}",
    "/readyz",
    "/v1/waits",
];

pub(crate) fn all(document: &Value) -> Vec<Case> {
    let mut cases = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let operations = operations.as_object().expect("operations");
        for (method, operation) in operations {
            let has_body = !operation["requestBody"].is_null();
            if !SPOILT.contains(&path.as_str()) {
                if has_body && !path.contains("/messages/") {
                    unreadable(&mut cases, &filled(path));
                }
                continue;
            }
            queries(&mut cases, path, operation);
            paths(&mut cases, path, operation);
            if has_body {
                assert_eq!(method, "post");
                bodies(&mut cases, path, operation, document);
            }
        }
        let known: Vec<String> = operations.keys().map(|name| name.to_uppercase()).collect();
        methods(&mut cases, &filled(path), &known);
    }
    methods(&mut cases, "/openapi.json", &["GET".to_owned()]);
    preferences(&mut cases);
    strangers(&mut cases);
    cases
}

/// With something good for each parameter.
fn filled(path: &str) -> String {
    path.split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

fn parameters<'a>(operation: &'a Value, place: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = operation["parameters"].as_array().into_iter().flatten();
    all.filter(move |parameter| parameter["in"] == place)
}

fn queries(cases: &mut Vec<Case>, path: &str, operation: &Value) {
    let long = "x".repeat(TOO_LONG);
    for parameter in parameters(operation, "query") {
        let name = parameter["name"].as_str().expect("a name");
        let kind = &parameter["schema"]["type"];
        let kind = kind.as_str().or_else(|| kind[0].as_str());
        let bad: &[&str] = match (name, kind) {
            (_, Some("integer")) => &[
                "",
                "-1",
                "1.5",
                "abc",
                "1e3",
                "0x10",
                "+-1",
                "NaN",
                "%20",
                "%EF%BC%91",
                "%00",
                "99999999999999999999999999",
                "18446744073709551615",
                "-9223372036854775809",
            ],
            (_, Some("boolean")) => &["maybe", "", "2", "%00", "-1", "null"],
            // Any text is a yes.
            ("verbose", _) => &[],
            (_, Some("string")) => &["", "%00", "a%00b", &long],
            (_, other) => panic!("no bad values are known for {name}, {other:?}"),
        };
        for value in bad.iter().chain(&["%ff", "a%c3"]) {
            let url = format!("{}?{name}={value}", filled(path));
            cases.push(invalid(get(&url), name, &url));
        }
    }
    if parameters(operation, "query").next().is_some() {
        let url = format!("{}?%ff=1", filled(path));
        cases.push(invalid(get(&url), "query", &url));
    }
}

fn paths(cases: &mut Vec<Case>, path: &str, operation: &Value) {
    let long = "x".repeat(TOO_LONG);
    let long_umlauts = "%C3%BC".repeat(TOO_LONG);
    for parameter in parameters(operation, "path") {
        let name = parameter["name"].as_str().expect("a name");
        let with = |value: &str| filled(&path.replace(&format!("{{{name}}}"), value));
        for value in ["%00", "a%00b", &long, &long_umlauts] {
            let url = with(value);
            cases.push(invalid(get(&url), name, &url));
        }
        for value in ["%ff", "%C3", "a%ed%a0%80"] {
            let url = with(value);
            cases.push(invalid(get(&url), "path", &url));
        }
        let url = with("");
        let nameless = invalid(get(&url), name, &url);
        // At the end of a path there is no such route; inside it the name is what is missing.
        cases.push(if url.ends_with('/') {
            Case {
                status: 404,
                field: None,
                ..nameless
            }
        } else {
            nameless
        });
    }
}

fn methods(cases: &mut Vec<Case>, path: &str, known: &[String]) {
    for method in METHODS
        .iter()
        .filter(|method| !known.iter().any(|k| k == *method))
    {
        cases.push(Case {
            what: format!("{method} {path}"),
            request: request(method, path, Bytes::new()),
            status: 405,
            field: None,
        });
    }
}

fn unreadable(cases: &mut Vec<Case>, path: &str) {
    let nested = "[".repeat(100_000);
    let bodies: [&[u8]; 7] = [
        b"{",
        b"}",
        b"nul",
        b"{\"items\"",
        b"{\"\xff\":1}",
        b"\0",
        nested.as_bytes(),
    ];
    for body in bodies {
        let shown: String = String::from_utf8_lossy(body).chars().take(30).collect();
        let what = format!("{path} {shown:?}");
        cases.push(invalid(post(path, body.to_vec()), "body", &what));
    }
}

/// A good body, to be spoilt.
fn good(path: &str) -> Value {
    match path {
        "/api/v1/push" => json!({"items": [{
            "queue": "q", "partition": "p", "payload": 1, "transactionId": "t",
            "traceId": "2dfa3891-d7e1-4c8a-8630-4e74ab943073",
        }]}),
        "/api/v1/ack" => json!({
            "transactionId": "t", "partitionId": "2dfa3891-d7e1-4c8a-8630-4e74ab943073",
            "leaseId": "2dfa3891-d7e1-4c8a-8630-4e74ab943073", "status": "completed",
            "consumerGroup": "g", "error": "none",
        }),
        other => panic!("a good body for {other} is missing here"),
    }
}

fn bodies(cases: &mut Vec<Case>, path: &str, operation: &Value, document: &Value) {
    let nested = "[".repeat(100_000);
    let malformed: [&[u8]; 20] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"nul",
        b"null",
        b"5",
        b"\"text\"",
        b"true",
        b"[]",
        b"{}",
        b"{\"items\"",
        b"{\"items\":[,]}",
        b"{\"a\":1,}",
        b"{\"\xff\":1}",
        b"\xef\xbb\xbf{}",
        b"\0",
        b"{} {}",
        b"{'a':1}",
        nested.as_bytes(),
    ];
    for body in malformed {
        let shown: String = String::from_utf8_lossy(body).chars().take(30).collect();
        cases.push(invalid(
            post(path, body.to_vec()),
            "body",
            &format!("{path} {shown:?}"),
        ));
    }
    let good = good(path);
    // A struct could be read from a list of its values, in an order nobody has promised.
    let listed = json!([good["items"], "p", 1, "t", null, null]);
    cases.push(invalid(
        post(path, listed.to_string()),
        "body",
        &format!("{path} {listed}"),
    ));
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    spoil(cases, path, &good, &good, schema, "", document);
}

/// Puts each wrong value in the place of each field below `part`.
fn spoil(
    cases: &mut Vec<Case>,
    path: &str,
    good: &Value,
    part: &Value,
    schema: &Value,
    pointer: &str,
    document: &Value,
) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a schema"),
        None => schema,
    };
    if let Some(items) = part.as_array() {
        let inner = format!("{pointer}/0");
        for value in [
            json!(5),
            json!("x"),
            json!(null),
            json!([]),
            json!(["q", "p", 1, "t", null]),
        ] {
            put(cases, path, good, &inner, value);
        }
        spoil(
            cases,
            path,
            good,
            &items[0],
            &schema["items"],
            &inner,
            document,
        );
        return;
    }
    let Some(members) = part.as_object() else {
        return;
    };
    for (name, schema) in schema["properties"].as_object().expect("properties") {
        let value = members
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the good body"));
        let inner = format!("{pointer}/{name}");
        if value.is_array() {
            for wrong in [json!(5), json!("x"), json!(null), json!({}), json!(true)] {
                put(cases, path, good, &inner, wrong);
            }
            spoil(cases, path, good, value, schema, &inner, document);
        } else if value.is_string() {
            let huge = Value::Number(serde_json::Number::from_f64(1e308).expect("finite"));
            for wrong in [
                json!(5),
                json!(-1),
                json!(u64::MAX),
                huge,
                json!(true),
                json!([]),
                json!({}),
            ] {
                put(cases, path, good, &inner, wrong);
            }
            texts(cases, path, good, &inner, name);
        }
    }
}

/// Texts that are none for the field of this name.
fn texts(cases: &mut Vec<Case>, path: &str, good: &Value, pointer: &str, name: &str) {
    let long = "x".repeat(TOO_LONG);
    let bad: &[&str] = match name {
        "queue" | "partition" | "transactionId" | "consumerGroup" => &["", "\0", "a\0b", &long],
        "traceId" | "partitionId" => &["", "zzz", "\0", "2dfa3891-d7e1-4c8a-8630", &long],
        "status" => &["", "weird", "COMPLETED", "\0", &long],
        // A lease that is none is a lost one, and an error is any text.
        "leaseId" | "error" => &[],
        other => panic!("no bad texts are known for {other}"),
    };
    for text in bad {
        put(cases, path, good, pointer, json!(text));
    }
    // Not UTF-8, which no JSON value can be made of.
    let mut body = good.clone();
    *body.pointer_mut(pointer).expect("the field") = json!("spoilt");
    let text = body.to_string();
    let at = text.find("spoilt").expect("the value");
    let mut bytes = text.into_bytes();
    bytes[at] = 0xff;
    cases.push(Case {
        field: None,
        ..invalid(
            post(path, bytes),
            "",
            &format!("{path} {pointer} is not UTF-8"),
        )
    });
}

fn put(cases: &mut Vec<Case>, path: &str, good: &Value, pointer: &str, wrong: Value) {
    let mut body = good.clone();
    let what = format!("{path} {pointer} = {wrong}");
    *body.pointer_mut(pointer).expect("the field") = wrong;
    cases.push(invalid(
        post(path, body.to_string()),
        &field(pointer),
        &what,
    ));
}

/// `/items/0/queue` as a problem names it: `items[0].queue`.
fn field(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    parts.fold(String::new(), |field, part| match part {
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{field}[{number}]"),
        name if field.is_empty() => name.to_owned(),
        name => format!("{field}.{name}"),
    })
}

fn preferences(cases: &mut Vec<Case>) {
    let bad: [&[u8]; 6] = [
        b"wait=-1",
        b"wait=soon",
        b"wait",
        b"wait=1.5",
        b"wait=99999999999",
        b"wait=\xff",
    ];
    for prefer in bad {
        let mut request = get("/api/v1/pop/queue/q");
        let value = HeaderValue::from_bytes(prefer).expect("a header's value");
        request.headers_mut().insert("prefer", value);
        cases.push(invalid(request, "Prefer", &String::from_utf8_lossy(prefer)));
    }
}

fn strangers(cases: &mut Vec<Case>) {
    for path in [
        "/",
        "/api",
        "/api/v1/push/",
        "/api/v1/pop/queue",
        "/api/v1/pop//q",
        "/api/v1/nope",
        "//livez",
        "/livez/../metrics",
        "/%6civez/x",
        "/API/V1/PUSH",
        "/api/v1/pop/queue/q/partition",
        "/api/v1/pop/queue/q/partition/p/x",
        "/%ff",
        "/%00",
        "/v1/waits/1",
    ] {
        for method in ["GET", "POST", "BREW"] {
            cases.push(Case {
                what: format!("{method} {path}"),
                request: request(method, path, Bytes::new()),
                status: 404,
                field: None,
            });
        }
    }
    let long = format!("/api/v1/pop/queue/q?{}", "x".repeat(9_000));
    cases.push(Case {
        what: "an overlong URL".to_owned(),
        request: get(&long),
        status: 414,
        field: None,
    });
}

fn invalid(request: Request<Bytes>, field: &str, what: &str) -> Case {
    let what: String = what.chars().take(120).collect();
    Case {
        what: format!("{} {what}", request.method()),
        request,
        status: 400,
        field: Some(field.to_owned()),
    }
}
