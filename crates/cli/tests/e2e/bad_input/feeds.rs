//! Bad input at the feed door, whose errors are plain text, as Jinaga's clients read them.

use http::HeaderValue;

use crate::{server::Server, wire::request};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const GRAPH: &str = "application/x-jinaga-graph-v1";
const HASH: &str =
    "fSS1hK7OGAeSX4ocN3acuFF87jvzCdPN3vLFUtcej0lOAsVV859UIYZLRcHUoMbyd/J31TdVn5QuE7094oqUPg==";

/// Path, type of the body, body, status, and what the answer must speak of.
type BadBody = (&'static str, &'static str, String, u16, &'static str);

/// What is wrong with the answers, if anything is.
pub(super) async fn wrong(server: &Server) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, kind, body, status, named) in all() {
        let mut request = request("POST", path, body.clone().into());
        let kind = HeaderValue::from_static(kind);
        request.headers_mut().insert("content-type", kind);
        let answer = server.call(request).await;
        let text = answer.text();
        if answer.status != status || !text.contains(named) {
            let shown: String = body.chars().take(80).collect();
            wrong.push(format!(
                "expected {status} and {named:?}; POST {path} {shown}: {} {text}",
                answer.status
            ));
        }
    }
    for (path, status, named) in [
        ("/jinaga/feeds/abc", 404, "feed_not_found"),
        ("/jinaga/feeds/%00", 404, "feed_not_found"),
        ("/jinaga/feeds/abc?b=zzz", 400, "b: "),
        ("/jinaga/login", 401, "Unauthorized"),
    ] {
        let answer = server.get(path).await;
        if answer.status != status || !answer.text().contains(named) {
            wrong.push(format!("GET {path}: {} {}", answer.status, answer.text()));
        }
    }
    wrong
}

fn all() -> Vec<BadBody> {
    let nested = format!("[{}]", "[".repeat(200));
    let inner = (1..200).map(|n| format!("{{ x{n}: A [x{n}->a: A = x{} E ", n - 1));
    let deep = format!("let x0: A = {{}} (x0: A) {}", inner.collect::<String>());
    let fact = |rest: &str| format!(r#"{{"facts":[{{"type":"A","hash":"{HASH}",{rest}}}]}}"#);
    let graph = |body: &str| body.to_owned();
    vec![
        ("/jinaga/save", JSON, String::new(), 400, "byte 0"),
        ("/jinaga/save", JSON, "{".into(), 400, "byte"),
        ("/jinaga/save", JSON, "{}".into(), 400, "facts"),
        (
            "/jinaga/save",
            JSON,
            r#"{"facts":[7]}"#.into(),
            400,
            "facts[0]",
        ),
        (
            "/jinaga/save",
            JSON,
            r#"{"facts":[{}]}"#.into(),
            400,
            "type",
        ),
        (
            "/jinaga/save",
            JSON,
            fact(r#""predecessors":[],"fields":{}"#),
            400,
            "predecessors",
        ),
        (
            "/jinaga/save",
            JSON,
            fact(r#""predecessors":{},"fields":7"#),
            400,
            "fields",
        ),
        (
            "/jinaga/save",
            JSON,
            fact(r#""predecessors":{},"fields":{"a":1}"#),
            403,
            "hash",
        ),
        (
            "/jinaga/save",
            JSON,
            fact(&format!(r#""predecessors":{{}},"fields":{{"a":{nested}}}"#)),
            400,
            "deep",
        ),
        ("/jinaga/save", TEXT, "x".into(), 400, "Content-Type"),
        ("/jinaga/save", GRAPH, graph("nothing\n"), 400, "line 1"),
        (
            "/jinaga/save",
            GRAPH,
            graph("\"A\"\n{\"b\":0}\n{}\n\n"),
            400,
            "line 2",
        ),
        (
            "/jinaga/save",
            GRAPH,
            graph("\"A\"\n{}\n{}\nPK0\n\"x\"\n\n"),
            400,
            "line 4",
        ),
        ("/jinaga/load", JSON, String::new(), 400, "byte 0"),
        ("/jinaga/load", JSON, "{}".into(), 400, "references"),
        (
            "/jinaga/load",
            JSON,
            r#"{"references":[7]}"#.into(),
            400,
            "references[0]",
        ),
        ("/jinaga/load", TEXT, "{}".into(), 400, "Content-Type"),
        ("/jinaga/feeds", TEXT, String::new(), 400, "empty"),
        ("/jinaga/feeds", JSON, "{}".into(), 400, "text/plain"),
        (
            "/jinaga/feeds",
            TEXT,
            "garbage".into(),
            400,
            "line 1, column 1",
        ),
        (
            "/jinaga/feeds",
            TEXT,
            "(a: A) { }".into(),
            400,
            "No fact named a",
        ),
        ("/jinaga/feeds", TEXT, deep, 400, "braces are open"),
        (
            "/jinaga/read",
            TEXT,
            "let a: A = {} (a: A) { } x".into(),
            400,
            "column",
        ),
        (
            "/jinaga/read",
            TEXT,
            "let a: A = {} (a: A) { b: B [ b->a: C = a ] }".into(),
            400,
            "line 1",
        ),
        ("/jinaga/write", TEXT, "let a: A = { b }".into(), 400, "b"),
        (
            "/jinaga/write",
            TEXT,
            format!("let a: A = #{HASH}"),
            400,
            "References are not allowed",
        ),
        (
            "/jinaga/write",
            TEXT,
            format!("let b: B = #{HASH} let a: A = {{ b }}"),
            400,
            "References are not allowed",
        ),
    ]
}
