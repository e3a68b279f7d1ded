//! `Prefer` (RFC 7240), a header per line.

use std::time::Duration;

use axum::extract::FromRequestParts;
use futures_util::FutureExt;
use http::{HeaderValue, Request};
use wakeline_web::Prefer;

pub fn run(input: &[u8]) {
    let mut request = Request::new(());
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            request.headers_mut().append("prefer", value);
        }
    }
    let (mut parts, ()) = request.into_parts();
    let read = Prefer::from_request_parts(&mut parts, &()).now_or_never();
    let read = read.expect("nothing is awaited");
    let prefer = read.unwrap_or_else(|never| match never {});
    let most = Duration::from_secs(u32::MAX.into());
    assert!(prefer.wait.is_none_or(|wait| wait <= most));
    let applied = prefer.applied(Duration::from_millis(1_500));
    assert_eq!(applied.is_some(), prefer.wait.is_some());
}
