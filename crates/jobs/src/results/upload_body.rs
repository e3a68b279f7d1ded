//! The body of an upload.

use std::{mem, time::Duration};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::{Upload, UploadOutcome};

/// How long the rest of a refused body is still read.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// Its errors are the outcomes with which nothing is stored.
pub(crate) struct UploadBody {
    chunks: BodyDataStream,
    /// Bytes that may still arrive.
    left: u64,
    patience: Duration,
}

impl UploadBody {
    /// Refused at once if its declared length is too long.
    pub(crate) fn new(upload: Upload) -> Result<Self, UploadOutcome> {
        let is_too_large = upload.body.size_hint().lower() > upload.limit;
        let mut body_reader = Self {
            chunks: upload.body.into_data_stream(),
            left: upload.limit,
            patience: upload.patience,
        };
        if is_too_large {
            return Err(body_reader.refuse(UploadOutcome::TooLarge));
        }
        Ok(body_reader)
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, UploadOutcome> {
        let chunk = timeout(self.patience, self.chunks.next())
            .await
            .map_err(|_| UploadOutcome::TooSlow)?;
        let Some(chunk) = chunk.transpose().map_err(|_| UploadOutcome::BrokenOff)? else {
            return Ok(None);
        };
        let Some(left) = self.left.checked_sub(chunk.len() as u64) else {
            return Err(self.refuse(UploadOutcome::TooLarge));
        };
        self.left = left;
        Ok(Some(chunk))
    }

    /// Reads the rest while the refusal goes out. Most clients read the answer only after they have
    /// sent everything: if the connection were closed, they would never see the reason.
    pub(crate) fn refuse(&mut self, why: UploadOutcome) -> UploadOutcome {
        let nothing = Body::empty().into_data_stream();
        let mut rest = mem::replace(&mut self.chunks, nothing);
        tokio::spawn(timeout(DISCARD_TIME, async move {
            while let Some(Ok(_)) = rest.next().await {}
        }));
        why
    }
}
