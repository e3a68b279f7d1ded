//! Facts in and out.

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderValue, header};

use super::{Door, accept, answer, body};
use crate::{
    error::Error,
    fact::{Envelope, record},
    graph,
    login::Caller,
    service::Loaded,
    store::Stored,
};

const GRAPH: &str = "application/x-jinaga-graph-v1";
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
    let patience = door.limits.body_timeout;
    let envelopes = if body::is_of_type(&parts.headers, GRAPH) {
        let pieces = body::Pieces::new(sent, door.limits.max_graph, "feeds.max_graph", patience)?;
        read_graph(&door, pieces).await?
    } else if body::is_of_type(&parts.headers, JSON) {
        let pieces = body::Pieces::new(sent, door.limits.max_body, "feeds.max_body", patience)?;
        let facts = record::read_facts(&pieces.all().await?, door.feeds.settings().max_facts)?;
        let unsigned = |fact| Envelope {
            fact,
            signatures: Vec::new(),
        };
        facts.into_iter().map(unsigned).collect()
    } else {
        return Err(Error::Invalid(format!(
            "Expected Content-Type application/x-jinaga-graph-v1 or application/json. {}",
            body::described(&parts.headers)
        )));
    };
    door.feeds.save(&caller, envelopes).await?;
    Ok(answer::created())
}

async fn read_graph(door: &Door, mut pieces: body::Pieces) -> Result<Vec<Envelope>, Error> {
    let limits = graph::Limits {
        facts: door.feeds.settings().max_facts,
        ..graph::Limits::DEFAULT
    };
    let mut reader = graph::Reader::new(limits);
    let mut envelopes = Vec::new();
    while let Some(piece) = pieces.next().await? {
        reader.push(&piece, &mut envelopes)?;
    }
    reader.finish(&mut envelopes)?;
    Ok(envelopes)
}

/// Loads facts with all their predecessors.
///
/// What is not known is left out.
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
    let patience = door.limits.body_timeout;
    let pieces = body::Pieces::new(sent, door.limits.max_body, "feeds.max_body", patience)?;
    let max = door.feeds.settings().max_references;
    let references = record::read_references(&pieces.all().await?, max)?;
    let loaded = door.feeds.load(&caller, references).await?;
    if wants_json(&parts.headers) {
        return Ok(answer::json(Body::from_stream(as_json(loaded))));
    }
    let mut response = Response::new(Body::from_stream(as_graph(loaded)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRAPH));
    Ok(response)
}

fn wants_json(headers: &HeaderMap) -> bool {
    accept::preferred(headers, &[GRAPH, JSON]) == Some(JSON) && !accept::takes(headers, GRAPH)
}

fn as_json(loaded: Loaded) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let mut is_first = true;
    let facts = loaded.chunks().map_ok(move |chunk| {
        let mut text = String::new();
        for stored in &chunk {
            text.push_str(if is_first { "" } else { "," });
            is_first = false;
            record::write_loaded(&mut text, &stored.fact, &learned(stored));
        }
        Bytes::from(text)
    });
    let begin = stream::once(async { Ok(Bytes::from_static(b"{\"facts\":[")) });
    let end = stream::once(async { Ok(Bytes::from_static(b"]}")) });
    begin.chain(facts).chain(end)
}

fn as_graph(loaded: Loaded) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let mut writer = graph::Writer::default();
    loaded.chunks().and_then(move |chunk| {
        let mut text = String::new();
        let written = chunk
            .iter()
            .try_for_each(|stored| writer.write(&mut text, &stored.fact, &stored.signatures));
        // Only a purge between two chunks can take a predecessor away.
        let written = written
            .map(|()| Bytes::from(text))
            .map_err(|error| Error::invalid(error.to_string()));
        async move { written }
    })
}

fn learned(stored: &Stored) -> String {
    let learned = jiff::Timestamp::from_microsecond(stored.learned).unwrap_or_default();
    format!("{learned:.3}")
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
