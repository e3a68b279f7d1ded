//! A session as the body of an answer.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{Stream, stream::unfold};
use http::{HeaderValue, header};
use http_body::Frame;

use crate::{frame::Form, session::Session};

/// The head goes out at once; the body ends when the session does, and with it its chunks.
pub(super) fn respond(session: Session, form: Form) -> Response {
    let frames = unfold(session, move |mut session| async move {
        let event = session.next().await?;
        Some((form.encode(&event), session))
    });
    let mut response = Response::new(Body::new(Frames(Box::pin(frames))));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(form.content_type()),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies must not wait for more.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Frames<S>(Pin<Box<S>>);

impl<S: Stream<Item = Bytes> + Send> http_body::Body for Frames<S> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0
            .as_mut()
            .poll_next(context)
            .map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }
}
