//! Bad requests made from the API document, so that a new route or field is covered, or the test
//! fails until it is, on the day it appears.

use bytes::Bytes;
use http::Request;
use serde_json::Value;

use super::bodies;
use crate::{
    access::has_own_error_shapes,
    wire::{get, request},
};

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

/// The routes whose parameters are each made wrong; the other routes have their own tests of these.
/// In bodies every field is made wrong on every route.
const SPOILT: [&str; 4] = [
    "/api/v1/pop/queue/{queue}",
    "/api/v1/pop/queue/{queue}/partition/{partition}",
    "/readyz",
    "/v1/waits",
];

pub(crate) fn all(document: &Value) -> Vec<Case> {
    let mut cases = Vec::new();
    let paths_of_document = document["paths"].as_object().expect("paths").iter();
    for (path, operations) in paths_of_document.filter(|(path, _)| !has_own_error_shapes(path)) {
        let operations = operations.as_object().expect("operations");
        for (method, operation) in operations {
            if !operation["requestBody"].is_null() {
                assert_eq!(method, "post");
                bodies::all(&mut cases, path, operation, document);
            }
            if SPOILT.contains(&path.as_str()) {
                queries(&mut cases, path, operation);
                paths(&mut cases, path, operation);
            }
        }
        let known: Vec<String> = operations.keys().map(|name| name.to_uppercase()).collect();
        methods(&mut cases, &filled(path), &known);
    }
    methods(&mut cases, "/openapi.json", &["GET".to_owned()]);
    strangers(&mut cases);
    cases
}

/// With something good for each parameter.
pub(super) fn filled(path: &str) -> String {
    path.split('/')
        .map(|part| match part {
            "{partitionId}" => "2dfa3891-d7e1-4c8a-8630-4e74ab943073",
            part if part.starts_with('{') => "x",
            part => part,
        })
        .collect::<Vec<_>>()
        .join("/")
}

pub(super) fn parameters<'a>(
    operation: &'a Value,
    place: &'a str,
) -> impl Iterator<Item = &'a Value> {
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
            // Any text counts as true.
            ("verbose", _) => &[],
            // Without a word it is not given, as clients send it.
            ("subscriptionMode", _) => &["weird", "ALL", "%00", "a%00b", &long],
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

pub(super) fn invalid(request: Request<Bytes>, field: &str, what: &str) -> Case {
    let what: String = what.chars().take(120).collect();
    Case {
        what: format!("{} {what}", request.method()),
        request,
        status: 400,
        field: Some(field.to_owned()),
    }
}
