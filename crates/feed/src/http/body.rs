//! Bodies of requests, within the door's own limits.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::{Extensions, HeaderMap, header};
use http_body_util::BodyExt;
use tokio::time::timeout;
use wakeline_web::BodyMeter;

use crate::error::Error;

const ECHOED: usize = 80;

/// Hands over a body in chunks.
#[derive(Debug)]
pub(super) struct BodyChunks {
    body: Body,
    patience: Duration,
    left: usize,
    max: usize,
    setting: &'static str,
}

impl BodyChunks {
    pub(super) fn new(
        body: Body,
        max: usize,
        setting: &'static str,
        patience: Duration,
    ) -> Result<Self, Error> {
        let chunks = Self {
            body,
            patience,
            left: max,
            max,
            setting,
        };
        if chunks.body.size_hint().lower() > max as u64 {
            return Err(chunks.too_large());
        }
        Ok(chunks)
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = timeout(self.patience, self.body.frame())
                .await
                .map_err(|_| {
                    Error::TooSlow(format!(
                        "body: nothing came for {} ms, the limit of this server \
                         (http.body_timeout); nothing was done, try again",
                        self.patience.as_millis()
                    ))
                })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| Error::invalid(format!("body: it broke off ({error})")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.left = self
                .left
                .checked_sub(data.len())
                .ok_or_else(|| self.too_large())?;
            return Ok(Some(data));
        }
    }

    /// The whole body, in the memory for bodies. `extensions` are the request's.
    pub(super) async fn all(mut self, extensions: &Extensions) -> Result<Bytes, Error> {
        let length = self.body.size_hint();
        let mut meter = BodyMeter::begin(extensions, length, self.max)
            .await
            .map_err(Error::NoBodyMemory)?;
        let mut all = Vec::new();
        while let Some(chunk) = self.next().await? {
            if all.is_empty() && self.body.is_end_stream() {
                return Ok(meter.end(chunk));
            }
            meter
                .received(all.len() + chunk.len())
                .await
                .map_err(Error::NoBodyMemory)?;
            all.extend_from_slice(&chunk);
        }
        Ok(meter.end(all.into()))
    }

    fn too_large(&self) -> Error {
        Error::TooLarge(format!(
            "body: longer than {} bytes, the limit of this server ({})",
            self.max, self.setting
        ))
    }
}

pub(super) fn is_of_type(headers: &HeaderMap, kind: &str) -> bool {
    content_type(headers).is_some_and(|value| {
        let named = value.split(';').next().unwrap_or_default().trim();
        named.eq_ignore_ascii_case(kind)
    })
}

/// For an error's text: the content type that the request has instead.
pub(super) fn described(headers: &HeaderMap) -> String {
    match content_type(headers) {
        None => "No Content-Type header was received.".to_owned(),
        Some(value) => {
            let echoed: String = value.chars().take(ECHOED).collect();
            let more = if echoed.len() < value.len() {
                "…"
            } else {
                ""
            };
            format!("Received Content-Type: {echoed}{more}.")
        }
    }
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok()
}
