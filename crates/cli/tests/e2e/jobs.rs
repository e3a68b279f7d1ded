//! The settings of the jobs door, and their effect on a caller.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fixture::{Fixture, on_both_stores},
    server::{Server, until},
    wire::{Answer, get, post, request, with_header},
};

const FILESYSTEM: &str = "/v1/joblib/rooms/r/providers/@internal:filesystem:FilesystemRead";

on_both_stores! {
    only_files_below_a_filesystem_root_are_listed,
    each_provider_category_uses_its_configured_result_backend,
}

/// A directory with a file in `shown`, a file beside it, and a link from `shown` to the outside.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("shown");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("a.txt"), "hello").unwrap();
    fs::write(directory.path().join("secret"), "x").unwrap();
    symlink(directory.path(), inside.join("out")).unwrap();
    directory
}

fn root(directory: &TempDir) -> String {
    directory.path().join("shown").display().to_string()
}

/// The listing of the root. The provider is registered soon after the start.
async fn until_listed(server: &Server, token: &str) -> Answer {
    until("the provider to be offered", async || {
        let read = get(&format!("{FILESYSTEM}?path=/"));
        let answer = server.call(with_token(read, token)).await;
        (answer.status != 404).then_some(answer)
    })
    .await
}

fn with_token(request: http::Request<bytes::Bytes>, token: &str) -> http::Request<bytes::Bytes> {
    if token.is_empty() {
        return request;
    }
    with_header(request, "authorization", &format!("Bearer {token}"))
}

async fn guest(server: &Server) -> String {
    let answer = server.call(post("/v1/auth/guest", "")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

async fn only_files_below_a_filesystem_root_are_listed(fixture: Fixture) {
    let directory = directory();
    let serve = || {
        fixture
            .serve()
            .flags(&["--jobs-filesystem-roots", &root(&directory)])
    };
    // On loopback and without a login every caller is a superuser.
    let server = serve().start().await;
    let answer = until_listed(&server, "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let file = json!([{ "name": "a.txt", "path": "/a.txt", "size": 5, "type": "file" }]);
    assert_eq!(answer.json(), file);
    for way_out in ["/..", "/../secret", "/out", "/out/secret", "/..%2Fsecret"] {
        let answer = server.get(&format!("{FILESYSTEM}?path={way_out}")).await;
        assert_eq!(answer.status, 400, "{way_out}: {}", answer.text());
        assert!(!answer.text().contains("secret\",\"path"), "{way_out}");
    }
    drop(server);
    let guarded = || {
        serve()
            .flags(&["--jobs-admin-email", "admin@example.com"])
            .env("WAKELINE_JOBS_GUESTS", "true")
            .env("WAKELINE_JOBS_ADMIN_PASSWORD", "correct horse")
    };
    let server = guarded().start().await;
    assert_eq!(
        until_listed(&server, &guest(&server).await).await.status,
        403
    );
    drop(server);
    let open = "WAKELINE_JOBS_FILESYSTEM_FOR_EVERYBODY";
    let server = guarded().env(open, "true").start().await;
    let answer = until_listed(&server, &guest(&server).await).await;
    assert_eq!((answer.status, answer.json()), (200, file));
}

#[tokio::test]
async fn without_a_login_callers_are_superusers_only_on_loopback() {
    let fixture = Fixture::sqlite();
    let server = fixture.serve().start().await;
    assert_eq!(server.get("/v1/joblib/workers").await.status, 200);
    let own = json!({ "category": "modifiers", "name": "a" }).to_string();
    let global = || request("PUT", "/v1/joblib/rooms/@global/jobs", own.clone().into());
    assert_eq!(server.call(global()).await.status, 201);
    drop(server);
    let flags = ["--listen", "0.0.0.0:0", "--insecure"];
    let server = fixture.serve().flags(&flags).start().await;
    assert_eq!(server.get("/v1/joblib/workers").await.status, 401);
    assert_eq!(server.call(global()).await.status, 401);
    let answer = server.call(post("/v1/auth/guest", "")).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
}

/// The provider's id.
async fn register(server: &Server, category: &str) -> String {
    let body = json!({ "category": category, "name": "a" }).to_string();
    let register = request("PUT", "/v1/joblib/rooms/r/providers", body.into());
    let answer = server.call(register).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

async fn each_provider_category_uses_its_configured_result_backend(fixture: Fixture) {
    // The hash of a read without parameters.
    const HASH: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let flags = ["--jobs-results-by-category", "large=files"];
    let server = fixture.serve().flags(&flags).start().await;
    let files = || {
        let entries = fs::read_dir(fixture.data().join("results")).unwrap();
        entries.map(|entry| fs::read(entry.unwrap().path()).unwrap())
    };
    for (category, expected) in [("small", 0), ("large", 1)] {
        let id = register(&server, category).await;
        let body: Value = json!([category]);
        let upload = post(
            &format!("/v1/joblib/providers/{id}/results"),
            body.to_string(),
        );
        let answer = server
            .call(with_header(upload, "x-request-hash", HASH))
            .await;
        assert_eq!(answer.status, 204, "{}", answer.text());
        let path = format!("/v1/joblib/rooms/r/providers/{category}/a");
        assert_eq!(server.get(&path).await.json(), body);
        let sign = body.to_string();
        let holds = files()
            .filter(|bytes| bytes.starts_with(sign.as_bytes()))
            .count();
        assert_eq!((holds, files().count()), (expected, expected), "{category}");
    }
}
