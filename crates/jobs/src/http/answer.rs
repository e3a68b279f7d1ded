//! A provider's answer as a response to the reader.

use axum::{body::Body, response::Response};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use crate::{
    error::{Error, PROBLEM_JSON},
    provider::{Answer, AnswerBody, MAX_PROBLEM},
    service::ProviderAnswer,
};

/// Bytes of a file that are read at once.
const CHUNK: usize = 256 << 10;

#[derive(Deserialize)]
struct Problem {
    status: u16,
}

pub(super) async fn response(
    found: ProviderAnswer,
    wanted: Option<&HeaderValue>,
) -> Result<Response, Error> {
    let ProviderAnswer {
        provider,
        mut answer,
    } = found;
    let etag = HeaderValue::from_str(&answer.etag).ok();
    if !answer.is_error && is_known(wanted, &answer.etag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        revalidated(response.headers_mut(), etag);
        return Ok(response);
    }
    // A problem is read at once, for its status is in it.
    if answer.is_error
        && let AnswerBody::Chunks(chunked) = &answer.body
        && chunked.length() <= MAX_PROBLEM
    {
        answer.body = AnswerBody::Bytes(chunked.clone().whole().await?);
    }
    let (status, content_type) = if answer.is_error {
        (status_of(&answer), HeaderValue::from_static(PROBLEM_JSON))
    } else {
        let content_type = HeaderValue::from_str(&with_charset(&provider.content_type))
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        (StatusCode::OK, content_type)
    };
    let is_error = answer.is_error;
    let (body, length) = match answer.body {
        AnswerBody::Bytes(bytes) => {
            let length = bytes.len() as u64;
            (Body::from(bytes), length)
        }
        AnswerBody::File(file, length) => (streamed(file, length), length),
        AnswerBody::Chunks(chunked) => {
            let length = chunked.length();
            (Body::from_stream(chunked.open().await?), length)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if !is_error {
        revalidated(headers, etag);
    }
    Ok(response)
}

/// A cache has to revalidate it. The same headers on a 304, which updates the cache.
fn revalidated(headers: &mut HeaderMap, etag: Option<HeaderValue>) {
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
        let revalidate = HeaderValue::from_static("private, no-cache");
        headers.insert(header::CACHE_CONTROL, revalidate);
    }
}

/// As Python's web servers do it.
fn with_charset(content_type: &str) -> String {
    if content_type.starts_with("text/") && !content_type.contains("charset=") {
        format!("{content_type}; charset=utf-8")
    } else {
        content_type.to_owned()
    }
}

/// Whether the reader has these bytes already.
fn is_known(wanted: Option<&HeaderValue>, etag: &str) -> bool {
    let Some(Ok(wanted)) = wanted.map(HeaderValue::to_str) else {
        return false;
    };
    wanted
        .split(',')
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|tag| tag == "*" || tag == etag)
}

/// The problem's own, if it is one of a failure.
fn status_of(answer: &Answer) -> StatusCode {
    let known = match &answer.body {
        AnswerBody::Bytes(bytes) if bytes.len() as u64 <= MAX_PROBLEM => {
            serde_json::from_slice::<Problem>(bytes).ok()
        }
        _ => None,
    };
    known
        .and_then(|problem| StatusCode::from_u16(problem.status).ok())
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::BAD_GATEWAY)
}

fn streamed(file: std::sync::Arc<std::fs::File>, length: u64) -> Body {
    use std::os::unix::fs::FileExt;
    let chunks = stream::try_unfold(0u64, move |at| {
        let file = file.clone();
        async move {
            if at >= length {
                return Ok::<_, std::io::Error>(None);
            }
            let size = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
            let read = tokio::task::spawn_blocking(move || {
                let mut chunk = vec![0; size];
                file.read_exact_at(&mut chunk, at)?;
                Ok::<_, std::io::Error>(chunk)
            });
            let chunk = read.await.map_err(std::io::Error::other)??;
            let next = at + chunk.len() as u64;
            Ok(Some((bytes::Bytes::from(chunk), next)))
        }
    });
    Body::from_stream(chunks)
}
