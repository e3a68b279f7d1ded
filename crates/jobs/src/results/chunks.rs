//! Large answers in chunks, for the backends that keep values: neither an upload nor a read is ever
//! in memory as a whole.
//!
//! An upload's chunks have its id, and no reader finds them before the answer that names the upload
//! is stored. All chunks of an upload expire together, [`CHUNK_GRACE`] after their answer.

mod receive;

use std::{fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use uuid::Uuid;
use wakeline_store::Error;

pub(crate) use self::receive::{AnswerContent, receive};
use crate::store::StoreFuture;

/// Bytes of a chunk, and of the longest answer that is stored whole.
pub const CHUNK_BYTES: usize = 256 << 10;
/// How long chunks are kept after their answer was replaced, forgotten or has expired. Reading a
/// chunk in the second half of this time keeps all of them for the whole time again.
pub const CHUNK_GRACE: Duration = Duration::from_secs(120);
/// Chunks that one step removes.
pub(crate) const CHUNKS_REMOVED_AT_ONCE: i64 = 32;

/// Where the chunks of large answers are stored. Each method is one atomic step that may be repeated.
///
/// None of them is a `Write`, although they write: `add` and `remove` are steps of a
/// [`ResultBackend::put`](super::Results::put), which is one, so its task outlives the caller and the end of
/// the process waits for it; and no request waits for a chunk. A dropped future of `get` loses at most
/// the extension of the upload's time.
pub(crate) trait ChunkStore: Send + Sync + fmt::Debug {
    /// Stores the next chunk of an upload, and keeps the earlier ones with it for `ttl`. `false`:
    /// the earlier ones have expired.
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> StoreFuture<'_, bool>;

    /// `None`: the chunk is gone.
    fn get(&self, upload: Uuid, number: i64) -> StoreFuture<'_, Option<Bytes>>;

    /// Removes a slice of an upload that is neither read nor continued. Returns whether there is
    /// more.
    fn remove(&self, upload: Uuid) -> StoreFuture<'_, bool>;
}

/// The bytes of an answer that is stored in chunks.
#[derive(Clone, Debug)]
pub struct ChunkedAnswer {
    place: Arc<dyn ChunkStore>,
    upload: Uuid,
    length: u64,
}

impl ChunkedAnswer {
    pub(crate) fn new(place: Arc<dyn ChunkStore>, upload: Uuid, length: u64) -> Self {
        Self {
            place,
            upload,
            length,
        }
    }

    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The chunks as a stream: the first is read now, each other one when the stream is polled for
    /// it. The stream ends with an error, never short.
    pub async fn open(self) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send, Error> {
        let first = self.chunk(0, 0).await?;
        let next = (self, 1, first.len() as u64);
        let rest = stream::try_unfold(next, |(chunked, number, at)| async move {
            if at == chunked.length {
                return Ok(None);
            }
            let bytes = chunked.chunk(number, at).await?;
            let at = at + bytes.len() as u64;
            Ok(Some((bytes, (chunked, number + 1, at))))
        });
        Ok(stream::once(async { Ok(first) }).chain(rest))
    }

    /// All bytes at once, for callers that have checked the length.
    pub async fn whole(self) -> Result<Bytes, Error> {
        let mut whole = BytesMut::with_capacity(usize::try_from(self.length).unwrap_or_default());
        let mut chunks = std::pin::pin!(self.open().await?);
        while let Some(chunk) = chunks.try_next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// The chunk that begins at this byte.
    async fn chunk(&self, number: i64, at: u64) -> Result<Bytes, Error> {
        let bytes = self.place.get(self.upload, number).await?;
        bytes
            .filter(|bytes| !bytes.is_empty() && bytes.len() as u64 <= self.length - at)
            .ok_or_else(|| Error::Unavailable("the rest of an answer is not kept any more".into()))
    }
}
