//! Receives an upload into chunks, or into one value if it is short.

use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use wakeline_store::Error;

use super::{CHUNK_BYTES, ChunkStore};
use crate::results::{Etag, Upload, UploadBody, UploadOutcome, memory::MemoryPermit};

/// How long chunks wait for the next one, in addition to the pause that an upload may make.
const COMING: Duration = Duration::from_secs(600);
/// The memory of a long upload: a chunk that fills, or a chunk that is being stored and what has
/// arrived behind it.
const IN_HAND: u64 = 2 * CHUNK_BYTES as u64;

/// An answer that has arrived completely.
pub(crate) struct ReceivedUpload {
    pub(crate) content: AnswerContent,
    pub(crate) etag: Etag,
    /// Held for as long as the bytes.
    _lent: MemoryPermit,
}

pub(crate) enum AnswerContent {
    Whole(Vec<u8>),
    Chunks {
        upload: Uuid,
        length: i64,
        count: i64,
    },
}

/// Receives an upload. An upload that ends within a chunk is returned whole, behind `start`; the
/// chunks of a longer one are stored, and removed if it is refused or breaks off.
pub(crate) async fn receive(
    place: &dyn ChunkStore,
    upload: Upload,
    start: Vec<u8>,
) -> Result<Result<ReceivedUpload, UploadOutcome>, Error> {
    match UploadReader::begin(upload).await {
        Ok(reader) => reader.end(place, start).await,
        Err(kept) => Ok(Err(kept)),
    }
}

struct UploadReader {
    body_reader: UploadBody,
    /// The bytes that have arrived after the last chunk.
    rest: Bytes,
    hasher: Sha256,
    length: i64,
    ttl: Duration,
    permit: MemoryPermit,
}

impl UploadReader {
    async fn begin(upload: Upload) -> Result<Self, UploadOutcome> {
        let (memory, patience) = (upload.memory.clone(), upload.patience);
        // An upload that does not say its length may be as long as any.
        let size = upload.body.size_hint().upper();
        let size = size.map_or(upload.limit, |size| size.min(upload.limit));
        let is_short = size <= CHUNK_BYTES as u64;
        let mut body_reader = UploadBody::new(upload)?;
        let in_hand = if is_short { size } else { IN_HAND };
        let Some(permit) = memory.acquire(in_hand, patience).await else {
            return Err(body_reader.refuse(UploadOutcome::NoMemory));
        };
        Ok(Self {
            body_reader,
            rest: Bytes::new(),
            hasher: Sha256::new(),
            length: 0,
            ttl: COMING.saturating_add(patience),
            permit,
        })
    }

    async fn end(
        mut self,
        place: &dyn ChunkStore,
        start: Vec<u8>,
    ) -> Result<Result<ReceivedUpload, UploadOutcome>, Error> {
        let from = start.len();
        let (first, is_end) = match self.chunk(start).await {
            Ok(chunk) => chunk,
            Err(kept) => return Ok(Err(kept)),
        };
        if is_end {
            return Ok(Ok(self.received(AnswerContent::Whole(first))));
        }
        let (upload, first) = (Uuid::now_v7(), Bytes::from(first).slice(from..));
        let count = match self.store(place, upload, first).await {
            Ok(Ok(count)) => count,
            incomplete => {
                remove(place, upload).await;
                return Ok(Err(incomplete?.err().unwrap_or(UploadOutcome::TooSlow)));
            }
        };
        let length = self.length;
        Ok(Ok(self.received(AnswerContent::Chunks {
            upload,
            length,
            count,
        })))
    }

    /// Stores the chunks of a long upload as they arrive. Returns how many there are.
    async fn store(
        &mut self,
        place: &dyn ChunkStore,
        upload: Uuid,
        mut bytes: Bytes,
    ) -> Result<Result<i64, UploadOutcome>, Error> {
        let (mut count, mut is_end) = (0, false);
        loop {
            let added = place.add(upload, count, bytes, self.ttl).await;
            if !matches!(added, Ok(true)) {
                let kept = self.body_reader.refuse(UploadOutcome::TooSlow);
                return added.map(|_| Err(kept));
            }
            count += 1;
            if is_end {
                return Ok(Ok(count));
            }
            let next;
            (next, is_end) = match self.chunk(Vec::with_capacity(CHUNK_BYTES)).await {
                Ok(chunk) => chunk,
                Err(kept) => return Ok(Err(kept)),
            };
            bytes = next.into();
        }
    }

    /// The next chunk, behind `start`, and whether it is the last. Only the first can be empty.
    async fn chunk(&mut self, start: Vec<u8>) -> Result<(Vec<u8>, bool), UploadOutcome> {
        let (mut chunk, mut space) = (start, CHUNK_BYTES);
        loop {
            let taken = self.rest.split_to(self.rest.len().min(space));
            // In parts, so that no large answer keeps the thread from other tasks.
            self.hasher.update(&taken);
            chunk.extend_from_slice(&taken);
            space -= taken.len();
            self.length += i64::try_from(taken.len()).unwrap_or(i64::MAX);
            if !self.rest.is_empty() {
                return Ok((chunk, false));
            }
            // A full chunk is the last only if nothing follows.
            match self.body_reader.next().await? {
                Some(chunk) => self.rest = chunk,
                None => return Ok((chunk, true)),
            }
        }
    }

    fn received(self, content: AnswerContent) -> ReceivedUpload {
        ReceivedUpload {
            content,
            etag: Etag::of(self.hasher),
            _lent: self.permit,
        }
    }
}

/// Removes the chunks of an incomplete upload. What this misses, because the process ends or the
/// backend is away, is swept when it has expired.
async fn remove(place: &dyn ChunkStore, upload: Uuid) {
    loop {
        match place.remove(upload).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::debug!(%error, "a broken upload stays until it is swept");
                return;
            }
        }
    }
}
