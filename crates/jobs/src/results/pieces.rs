//! Large answers in pieces, for the places that keep what they have as values: neither an upload nor
//! a read of one is ever in memory as a whole.
//!
//! An upload's pieces lie under an id of its own, and nobody finds them before the answer that names
//! it is put. They have one end for all of them, and outlive their answer by [`GRACE`].

mod coming;

use std::{fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use uuid::Uuid;
use wakeline_store::Error;

pub(crate) use self::coming::{Content, receive};
use crate::store::Step;

/// Bytes of a piece, and of the longest answer that is kept whole.
pub const PIECE: usize = 256 << 10;
/// How long pieces are kept after their answer was replaced, was forgotten or is over. Whoever reads
/// one of them in the second half of this time keeps them for all of it again.
pub const GRACE: Duration = Duration::from_secs(120);
/// Pieces that one step removes.
pub(crate) const REMOVED_AT_ONCE: i64 = 32;

/// Where the chunks of large answers are stored. Each method is one atomic step that may be repeated.
///
/// None of them is a `Write`, although they write: `add` and `remove` are steps of a
/// [`Results::put`](super::Results::put), which is one, so its task outlives the caller and the end of
/// the process waits for it; and no request waits for a chunk. A dropped future of `get` loses at most
/// the extension of the upload's time.
pub(crate) trait Pieces: Send + Sync + fmt::Debug {
    /// Keeps the next piece of an upload, and with it those before, for `ttl`. `false`: those before
    /// are gone.
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> Step<'_, bool>;

    /// `None`: it is gone.
    fn get(&self, upload: Uuid, number: i64) -> Step<'_, Option<Bytes>>;

    /// Removes a slice of an upload, which nobody reads or goes on with. Whether there is more.
    fn remove(&self, upload: Uuid) -> Step<'_, bool>;
}

/// The bytes of an answer that is kept in pieces.
#[derive(Clone, Debug)]
pub struct Pieced {
    place: Arc<dyn Pieces>,
    upload: Uuid,
    length: u64,
}

impl Pieced {
    pub(crate) fn new(place: Arc<dyn Pieces>, upload: Uuid, length: u64) -> Self {
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

    /// Piece by piece, each fetched when it is asked for, the first of them now. It ends with an
    /// error, never short.
    pub async fn open(self) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send, Error> {
        let first = self.piece(0, 0).await?;
        let next = (self, 1, first.len() as u64);
        let rest = stream::try_unfold(next, |(pieced, number, at)| async move {
            if at == pieced.length {
                return Ok(None);
            }
            let bytes = pieced.piece(number, at).await?;
            let at = at + bytes.len() as u64;
            Ok(Some((bytes, (pieced, number + 1, at))))
        });
        Ok(stream::once(async { Ok(first) }).chain(rest))
    }

    /// All of it, for those who have judged its length.
    pub async fn whole(self) -> Result<Bytes, Error> {
        let mut whole = BytesMut::with_capacity(usize::try_from(self.length).unwrap_or_default());
        let mut pieces = std::pin::pin!(self.open().await?);
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The piece that begins at a byte.
    async fn piece(&self, number: i64, at: u64) -> Result<Bytes, Error> {
        let bytes = self.place.get(self.upload, number).await?;
        bytes
            .filter(|bytes| !bytes.is_empty() && bytes.len() as u64 <= self.length - at)
            .ok_or_else(|| Error::Unavailable("the rest of an answer is not kept any more".into()))
    }
}
