//! How long a lease lasts, as it is shown.

use std::time::Duration;

use serde_json::{Value, json};
use wakeline_queue::Limits;

use crate::{calls::push, http_calls::Routes, test_store::TestStore};

/// The routes of a server whose `queue.lease` is so many seconds.
fn server(store: &TestStore, lease: u64) -> Routes {
    let limits = Limits {
        lease: Duration::from_secs(lease),
        ..Limits::default()
    };
    Routes::of(store.queue_with(limits))
}

async fn configured(server: &Routes, queue: &str, options: Value) -> Value {
    let body = json!({"queue": queue, "options": options});
    let answer = server.post("/api/v1/configure", &body).await;
    answer["options"]["leaseTime"].clone()
}

async fn shown(server: &Routes, queue: &str) -> Value {
    let answer = server.get(&format!("/api/v1/status/queues/{queue}")).await;
    answer["queue"]["config"]["leaseTime"].clone()
}

pub(crate) async fn the_shown_lease_time_is_the_effective_one(store: TestStore) {
    let server_7 = server(&store, 7);
    push(&*store, "pushed", "p", &["a"]).await;
    for (queue, options) in [
        ("plain", json!({})),
        ("null", json!({"leaseTime": null})),
        ("zero", json!({"leaseTime": 0, "retryLimit": 5})),
    ] {
        assert_eq!(configured(&server_7, queue, options).await, 7, "{queue}");
    }
    let own = configured(&server_7, "own", json!({"leaseTime": 60})).await;
    assert_eq!(own, 60);
    // The setting changes: its present value is shown, not that of the time when the queue was created.
    for (server, lease) in [(&server_7, 7), (&server(&store, 9), 9)] {
        for queue in ["pushed", "plain", "null", "zero"] {
            assert_eq!(shown(server, queue).await, lease, "{queue}");
        }
        assert_eq!(shown(server, "own").await, 60);
    }
}
