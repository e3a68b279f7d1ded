//! An answer as it comes in.

use std::{mem, time::Duration};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::{Kept, Upload};

/// How long the rest of a refused body is still taken.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// Its errors are those of [`Kept`] with which nothing is kept.
pub(crate) struct Incoming {
    chunks: BodyDataStream,
    /// Bytes that may still come.
    left: u64,
    patience: Duration,
}

impl Incoming {
    /// Refused at once where it says itself that it is too long.
    pub(crate) fn new(upload: Upload) -> Result<Self, Kept> {
        let is_too_large = upload.body.size_hint().lower() > upload.limit;
        let mut incoming = Self {
            chunks: upload.body.into_data_stream(),
            left: upload.limit,
            patience: upload.patience,
        };
        if is_too_large {
            return Err(incoming.refuse(Kept::TooLarge));
        }
        Ok(incoming)
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Kept> {
        let chunk = timeout(self.patience, self.chunks.next())
            .await
            .map_err(|_| Kept::TooSlow)?;
        let Some(chunk) = chunk.transpose().map_err(|_| Kept::BrokenOff)? else {
            return Ok(None);
        };
        let Some(left) = self.left.checked_sub(chunk.len() as u64) else {
            return Err(self.refuse(Kept::TooLarge));
        };
        self.left = left;
        Ok(Some(chunk))
    }

    /// The rest is taken while the refusal goes out. Most clients look for an answer only when they
    /// have sent everything: with the connection closed on them they would never see the reason.
    pub(crate) fn refuse(&mut self, why: Kept) -> Kept {
        let nothing = Body::empty().into_data_stream();
        let mut rest = mem::replace(&mut self.chunks, nothing);
        tokio::spawn(timeout(DISCARD_TIME, async move {
            while let Some(Ok(_)) = rest.next().await {}
        }));
        why
    }
}
