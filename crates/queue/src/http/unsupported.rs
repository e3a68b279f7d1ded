//! What Queen's clients can ask for and this server does not have. Each is refused with a text that says
//! so and a code of its own, before anything is leased, stored or claimed: a client whose gate, lock or
//! timer is ignored believes that it works.

use std::sync::Arc;

use axum::routing::any;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use wakeline_web::Problem;

use crate::service::Queue;

/// The first bytes of Queen's binary bodies.
const BINARY_BODIES: [&[u8]; 2] = [b"QPB1", b"QTB1"];

/// A feature without a route here: its paths, its code, and what it is called. They are not in
/// `/openapi.json`, which lists what there is.
struct MissingFeature {
    paths: &'static [&'static str],
    kind: &'static str,
    name: &'static str,
}

const MISSING: [MissingFeature; 7] = [
    MissingFeature {
        paths: &["/kv", "/kv/{*rest}", "/resources/kv/{*rest}"],
        kind: "kv-unsupported",
        name: "key-value store",
    },
    MissingFeature {
        paths: &["/timers", "/timers/{*rest}"],
        kind: "timers-unsupported",
        name: "timers; a queue's delayedProcessing delays its messages",
    },
    MissingFeature {
        paths: &["/locks", "/locks/{*rest}"],
        kind: "locks-unsupported",
        name: "locks and semaphores; a partition is leased to one consumer of a group at a time",
    },
    MissingFeature {
        paths: &["/fetch"],
        kind: "fetch-unsupported",
        name: "reads by offset; a consumer group reads a queue from any time (subscriptionFrom, seek)",
    },
    MissingFeature {
        paths: &["/partitions/changed"],
        kind: "changed-partitions-unsupported",
        name: "list of changed partitions; GET /api/v1/resources/partitions lists all",
    },
    // Never Queen's `ephemeral_queue_not_found`, by which its client knows a queue that is missing on a
    // server that has the feature.
    MissingFeature {
        paths: &["/ephemeral/{*rest}"],
        kind: "ephemeral-unsupported",
        name: "ephemeral queues; every message is stored on disk",
    },
    MissingFeature {
        paths: &["/dlq/{id}/replay"],
        kind: "replay-unsupported",
        name: "replay of a dead letter to another queue; POST /api/v1/messages/{partition}/{transaction}/retry \
               redelivers it",
    },
];

/// The routes of these features, for any method and any caller.
pub(super) fn router() -> OpenApiRouter<Arc<Queue>> {
    let mut router = OpenApiRouter::new();
    for MissingFeature { paths, kind, name } in MISSING {
        for path in paths {
            let refused = move || async move {
                let detail = format!("this server has no {name}. Nothing was done");
                Problem::new(StatusCode::NOT_FOUND, kind, detail)
            };
            router = router.route(&format!("/api/v1{path}"), any(refused));
        }
    }
    router
}

/// A part of a transaction.
pub(super) fn in_transaction(field: &'static str, name: &str) -> Problem {
    let kind = match field {
        "kv" => "kv-unsupported",
        "timers" => "timers-unsupported",
        _ => "positions-unsupported",
    };
    let problem = format!(
        "this server has no {name}; the whole transaction was refused and nothing was done. Send it \
         without {field}"
    );
    Problem::invalid(field, problem).with_kind(kind)
}

pub(super) fn conflation() -> Problem {
    Problem::invalid(
        "conflation",
        "this server does not conflate: a pop gets all messages of a partition, not only the newest; \
         nothing was taken. Pop without conflation",
    )
    .with_kind("conflation-unsupported")
}

/// Clients send binary bodies only if they are told to (`binary_push`), and never fall back by
/// themselves.
pub(super) fn refuse_binary(body: &[u8]) -> Result<(), Problem> {
    if !BINARY_BODIES.iter().any(|first| body.starts_with(first)) {
        return Ok(());
    }
    let problem = "this server reads JSON only, not Queen's binary bodies; nothing was stored. Turn \
                   the client's option binary_push off";
    Err(Problem::invalid("body", problem).with_kind("binary-unsupported"))
}
