//! An upload on its way into pieces, or into one value if it is short.

use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use wakeline_store::Error;

use super::{PIECE, Pieces};
use crate::results::{Etag, Incoming, Kept, Upload, memory::Lent};

/// How long pieces wait for the next one, besides what an upload may pause.
const COMING: Duration = Duration::from_secs(600);
/// What a long upload has in memory: a piece that gathers, or one on its way and what has come
/// behind it.
const IN_HAND: u64 = 2 * PIECE as u64;

/// An answer that has come to its end.
pub(crate) struct Came {
    pub(crate) content: Content,
    pub(crate) etag: Etag,
    /// As long as the bytes are.
    _lent: Lent,
}

pub(crate) enum Content {
    Whole(Vec<u8>),
    Pieces {
        upload: Uuid,
        length: i64,
        count: i64,
    },
}

/// Takes an upload in. One that ends within a piece is all there, behind `start`; of a longer one the
/// pieces are kept, and nothing of one that is refused or breaks off.
pub(crate) async fn receive(
    place: &dyn Pieces,
    upload: Upload,
    start: Vec<u8>,
) -> Result<Result<Came, Kept>, Error> {
    match Coming::begin(upload).await {
        Ok(coming) => coming.end(place, start).await,
        Err(kept) => Ok(Err(kept)),
    }
}

struct Coming {
    incoming: Incoming,
    /// What has come behind the last piece.
    rest: Bytes,
    hasher: Sha256,
    length: i64,
    ttl: Duration,
    lent: Lent,
}

impl Coming {
    async fn begin(upload: Upload) -> Result<Self, Kept> {
        let (memory, patience) = (upload.memory.clone(), upload.patience);
        // One that does not say how long it is may be as long as any.
        let size = upload.body.size_hint().upper();
        let size = size.map_or(upload.limit, |size| size.min(upload.limit));
        let is_short = size <= PIECE as u64;
        let mut incoming = Incoming::new(upload)?;
        let in_hand = if is_short { size } else { IN_HAND };
        let Some(lent) = memory.lend(in_hand, patience).await else {
            return Err(incoming.refuse(Kept::NoMemory));
        };
        Ok(Self {
            incoming,
            rest: Bytes::new(),
            hasher: Sha256::new(),
            length: 0,
            ttl: COMING.saturating_add(patience),
            lent,
        })
    }

    async fn end(
        mut self,
        place: &dyn Pieces,
        start: Vec<u8>,
    ) -> Result<Result<Came, Kept>, Error> {
        let from = start.len();
        let (first, is_end) = match self.piece(start).await {
            Ok(piece) => piece,
            Err(kept) => return Ok(Err(kept)),
        };
        if is_end {
            return Ok(Ok(self.came(Content::Whole(first))));
        }
        let (upload, first) = (Uuid::now_v7(), Bytes::from(first).slice(from..));
        let count = match self.store(place, upload, first).await {
            Ok(Ok(count)) => count,
            incomplete => {
                remove(place, upload).await;
                return Ok(Err(incomplete?.err().unwrap_or(Kept::TooSlow)));
            }
        };
        let length = self.length;
        Ok(Ok(self.came(Content::Pieces {
            upload,
            length,
            count,
        })))
    }

    /// Stores the pieces of a long upload as they come. How many they are.
    async fn store(
        &mut self,
        place: &dyn Pieces,
        upload: Uuid,
        mut bytes: Bytes,
    ) -> Result<Result<i64, Kept>, Error> {
        let (mut count, mut is_end) = (0, false);
        loop {
            let added = place.add(upload, count, bytes, self.ttl).await;
            if !matches!(added, Ok(true)) {
                let kept = self.incoming.refuse(Kept::TooSlow);
                return added.map(|_| Err(kept));
            }
            count += 1;
            if is_end {
                return Ok(Ok(count));
            }
            let next;
            (next, is_end) = match self.piece(Vec::with_capacity(PIECE)).await {
                Ok(piece) => piece,
                Err(kept) => return Ok(Err(kept)),
            };
            bytes = next.into();
        }
    }

    /// The next piece, behind `start`, and whether it is the last: never an empty one but the first.
    async fn piece(&mut self, start: Vec<u8>) -> Result<(Vec<u8>, bool), Kept> {
        let (mut piece, mut space) = (start, PIECE);
        loop {
            let taken = self.rest.split_to(self.rest.len().min(space));
            // Chunk by chunk, so that no large answer keeps the thread from others.
            self.hasher.update(&taken);
            piece.extend_from_slice(&taken);
            space -= taken.len();
            self.length += i64::try_from(taken.len()).unwrap_or(i64::MAX);
            if !self.rest.is_empty() {
                return Ok((piece, false));
            }
            // A full piece too is the last only when nothing follows.
            match self.incoming.next().await? {
                Some(chunk) => self.rest = chunk,
                None => return Ok((piece, true)),
            }
        }
    }

    fn came(self, content: Content) -> Came {
        Came {
            content,
            etag: Etag::of(self.hasher),
            _lent: self.lent,
        }
    }
}

/// Removes the pieces of an upload that did not come to its end. What this misses, because the process
/// ends or the place is away, is swept when its time is over.
async fn remove(place: &dyn Pieces, upload: Uuid) {
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
