//! Facts in and out.

use axum::{
    extract::{Request, State},
    response::Response,
};
use futures_util::{Stream, TryStreamExt};
use http::HeaderMap;

use super::{
    Door, Limits, accept, answer,
    body::{self, BodyChunks},
};
use crate::{
    error::Error,
    fact::{Envelope, record},
    graph::{self, CONTENT_TYPE as GRAPH},
    login::Caller,
    service::LoadedFacts,
    store::StoredFact,
};

const JSON: &str = "application/json";

/// Saves facts.
///
/// All of them or none; those that are known already are left alone. A fact's predecessors must be
/// stored, or be in the same body.
#[utoipa::path(
    post, path = "/jinaga/save", tag = "feed",
    request_body(
        content((String = "application/x-jinaga-graph-v1"), (Object = "application/json")),
        description = "A graph, or `{\"facts\":[…]}`",
    ),
    responses(
        (status = 201, description = "They are on disk", content_type = "text/plain", body = String),
        (status = 400, description = "They cannot be read, or a predecessor is missing", content_type = "text/plain", body = String),
        (status = 403, description = "A hash or signature is wrong, or a rule rejects one", content_type = "text/plain", body = String),
        (status = 413, description = "Too large", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn save(
    State(door): State<Door>,
    caller: Caller,
    request: Request,
) -> Result<Response, Error> {
    let (parts, sent) = request.into_parts();
    let Limits {
        max_graph,
        body_timeout,
        ..
    } = door.limits;
    let envelopes = if body::is_of_type(&parts.headers, GRAPH) {
        let chunks = BodyChunks::new(sent, max_graph, "feeds.max_graph", body_timeout)?;
        read_graph(&door, chunks).await?
    } else if body::is_of_type(&parts.headers, JSON) {
        let body = door.body(sent)?.all(&parts.extensions).await?;
        let facts = record::read_facts(&body, door.feeds.settings().max_facts)?;
        facts.into_iter().map(Envelope::unsigned).collect()
    } else {
        return Err(Error::Invalid(format!(
            "Expected Content-Type application/x-jinaga-graph-v1 or application/json. {}",
            body::described(&parts.headers)
        )));
    };
    door.feeds.save(&caller, envelopes).await?;
    Ok(answer::created())
}

async fn read_graph(door: &Door, mut chunks: BodyChunks) -> Result<Vec<Envelope>, Error> {
    let limits = graph::Limits {
        facts: door.feeds.settings().max_facts,
        ..graph::Limits::DEFAULT
    };
    let mut reader = graph::Reader::new(limits);
    let mut envelopes = Vec::new();
    while let Some(chunk) = chunks.next().await? {
        reader.push(&chunk, &mut envelopes)?;
    }
    reader.finish(&mut envelopes)?;
    Ok(envelopes)
}

/// Loads facts with all their predecessors.
///
/// Facts that are not stored are left out.
#[utoipa::path(
    post, path = "/jinaga/load", tag = "feed",
    request_body(content = Object, description = "`{\"references\":[{\"type\":…,\"hash\":…}]}`"),
    responses(
        (status = 200, description = "A graph, or JSON where only that is accepted; predecessors first", content((String = "application/x-jinaga-graph-v1"), (Object = "application/json"))),
        (status = 400, description = "The body cannot be read", content_type = "text/plain", body = String),
        (status = 403, description = "One of them is not for the caller", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn load(
    State(door): State<Door>,
    caller: Caller,
    request: Request,
) -> Result<Response, Error> {
    let (parts, sent) = request.into_parts();
    if !body::is_of_type(&parts.headers, JSON) {
        return Err(Error::Invalid(format!(
            "The request body is empty or could not be read: expected Content-Type \
             application/json. {}",
            body::described(&parts.headers)
        )));
    }
    let body = door.body(sent)?.all(&parts.extensions).await?;
    let references = record::read_references(&body, door.feeds.settings().max_references)?;
    let loaded = door.feeds.load(&caller, references).await?;
    Ok(if wants_json(&parts.headers) {
        answer::streamed(answer::JSON, "{\"facts\":[".into(), as_json(loaded), "]}")
    } else {
        answer::streamed(GRAPH, String::new(), as_graph(loaded), "")
    })
}

fn wants_json(headers: &HeaderMap) -> bool {
    accept::preferred(headers, &[GRAPH, JSON]) == Some(JSON) && !accept::takes(headers, GRAPH)
}

fn as_json(loaded: LoadedFacts) -> impl Stream<Item = Result<String, Error>> + Send {
    let mut is_first = true;
    loaded.chunks().map_ok(move |chunk| {
        let mut text = String::new();
        for stored in &chunk {
            text.push_str(if is_first { "" } else { "," });
            is_first = false;
            record::write_loaded(&mut text, &stored.fact, &saved_at(stored));
        }
        text
    })
}

fn as_graph(loaded: LoadedFacts) -> impl Stream<Item = Result<String, Error>> + Send {
    let mut writer = graph::Writer::default();
    loaded.chunks().and_then(move |chunk| {
        let mut text = String::new();
        let written = chunk
            .iter()
            .try_for_each(|stored| writer.write(&mut text, &stored.fact, &stored.signatures));
        // Only a purge between two chunks can remove a predecessor.
        let written = written
            .map(|()| text)
            .map_err(|error| Error::invalid(error.to_string()));
        async move { written }
    })
}

fn saved_at(stored: &StoredFact) -> String {
    let saved_at = jiff::Timestamp::from_microsecond(stored.saved_at).unwrap_or_default();
    format!("{saved_at:.3}")
}

/// Writes the facts that are declared.
#[utoipa::path(
    post, path = "/jinaga/write", tag = "feed",
    request_body(content = String, content_type = "text/plain", description = "`let name: Type = { … }`, one after another"),
    responses(
        (status = 201, description = "They are on disk", content_type = "text/plain", body = String),
        (status = 400, description = "The text cannot be read", content_type = "text/plain", body = String),
        (status = 403, description = "A rule rejects one", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn write(
    State(door): State<Door>,
    caller: Caller,
    request: Request,
) -> Result<Response, Error> {
    let text = super::feeds::text(&door, request).await?;
    door.feeds.write(&caller, &text).await?;
    Ok(answer::created())
}
