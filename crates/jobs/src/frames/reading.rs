//! Reads of frames. Frames that are not stored are requested first, so that an answer that has
//! begun is complete; stored frames are read while they are sent.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use wakeline_web::Timing;

use super::{Frames, no_frame, no_room, unprocessable};
use crate::{
    caller::Caller,
    error::Error,
    frame::{Frame, msgpack::put_array},
    room::{Room, Runs},
    store::frames::Frames as Store,
};

/// Frames and bytes that are read from the store at once; a single frame may be longer.
const CHUNK_FRAMES: usize = 64;
const CHUNK_BYTES: i64 = 1 << 20;

/// Which frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSelection {
    /// As far as there are any.
    Range { start: i64, stop: Option<i64> },
    /// In this order; all must be there.
    Numbers(Vec<i64>),
}

/// An array of frames, as a stream of chunks.
#[derive(Debug)]
pub struct FrameStream {
    store: Arc<dyn Store>,
    room: Room,
    runs: Runs,
    asked: HashMap<i64, Frame>,
    keys: Option<HashSet<Vec<u8>>>,
    numbers: Numbers,
    /// Numbers that were taken and not sent yet.
    next: VecDeque<i64>,
    /// How long the read waited for a provider; `None`: all frames were there.
    pub timing: Option<Timing>,
}

#[derive(Debug)]
enum Numbers {
    Range(Range<i64>),
    List(std::vec::IntoIter<i64>),
}

impl Iterator for Numbers {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        match self {
            Self::Range(range) => range.next(),
            Self::List(list) => list.next(),
        }
    }
}

impl Frames {
    /// How long a read waits for a provider.
    #[must_use]
    pub fn wait(&self, asked: Option<Duration>) -> Duration {
        asked.unwrap_or(self.limits.wait).min(self.limits.max_wait)
    }

    /// One frame, and how long the read waited for a provider, if it did.
    pub async fn frame(
        &self,
        caller: Caller,
        room: String,
        number: i64,
        wait: Duration,
    ) -> Result<(Frame, Option<Timing>), Error> {
        let found = self.store.frame(room.clone(), number).await?;
        let (room, stored) = found.ok_or_else(|| no_room(&room))?;
        if let Some(stored) = stored {
            return Ok((stored.frame, None));
        }
        let total = room.frame_count();
        if !(0..total).contains(&number) {
            return Err(no_frame(&[number], total));
        }
        let mut asked = self.ask_all(caller, &room, vec![number], wait).await?;
        let frame = asked.frames.remove(&number);
        let frame = frame.ok_or_else(|| no_frame(&[number], total))?;
        Ok((frame, asked.timing))
    }

    pub async fn frames(
        &self,
        caller: Caller,
        room: String,
        wanted: FrameSelection,
        keys: Option<HashSet<Vec<u8>>>,
        wait: Duration,
    ) -> Result<FrameStream, Error> {
        let (from, to) = match &wanted {
            FrameSelection::Range { start, stop } => (*start, stop.unwrap_or(i64::MAX)),
            FrameSelection::Numbers(numbers) if numbers.len() > self.limits.request => {
                return Err(unprocessable(format!(
                    "query.indices: more than {} numbers, the limit of this server \
                     (jobs.request_frames)",
                    self.limits.request
                )));
            }
            FrameSelection::Numbers(numbers) => {
                let last = numbers.iter().max().copied().unwrap_or(0);
                let first = numbers.iter().min().copied().unwrap_or(0);
                (first, last.saturating_add(1))
            }
        };
        let found = self.store.locate(room.clone(), from, to).await?;
        let (room, runs) = found.ok_or_else(|| no_room(&room))?;
        let numbers = choose(wanted, room.frame_count())?;
        let missing = numbers.missing(room.stored, self.limits.asked);
        let asked = self.ask_all(caller, &room, missing, wait).await?;
        Ok(FrameStream {
            store: self.store.clone(),
            room,
            runs,
            asked: asked.frames,
            keys,
            numbers,
            next: VecDeque::new(),
            timing: asked.timing,
        })
    }
}

/// The numbers that are wanted of a room with so many frames.
fn choose(wanted: FrameSelection, total: i64) -> Result<Numbers, Error> {
    match wanted {
        FrameSelection::Range { start, stop } => {
            let stop = stop.unwrap_or(total).min(total);
            Ok(Numbers::Range(start.min(stop)..stop))
        }
        FrameSelection::Numbers(numbers) => {
            let outside = |number: &&i64| !(0..total).contains(*number);
            let outside: Vec<_> = numbers.iter().filter(outside).copied().collect();
            if !outside.is_empty() {
                return Err(no_frame(&outside, total));
            }
            Ok(Numbers::List(numbers.into_iter()))
        }
    }
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::Range(range) => usize::try_from(range.end - range.start).unwrap_or(0),
            Self::List(list) => list.len(),
        }
    }

    /// The numbers that are not stored, each once, and at most one more than `limit`.
    fn missing(&self, stored: i64, limit: usize) -> Vec<i64> {
        match self {
            Self::Range(range) => (range.start.max(stored)..range.end)
                .take(limit.saturating_add(1))
                .collect(),
            Self::List(list) => {
                let missing = list.as_slice().iter().copied();
                let missing: HashSet<_> = missing.filter(|number| *number >= stored).collect();
                missing.into_iter().collect()
            }
        }
    }
}

impl FrameStream {
    /// How many frames it has still to give.
    #[must_use]
    pub fn left(&self) -> usize {
        self.next.len() + self.numbers.len()
    }

    /// The head of the array and its first frames.
    pub async fn begin(&mut self) -> Result<Bytes, Error> {
        let mut out = Vec::new();
        put_array(&mut out, u32::try_from(self.left()).unwrap_or(u32::MAX));
        if let Some(chunk) = self.chunk().await? {
            out.extend(chunk);
        }
        Ok(out.into())
    }

    /// All that is left. If it fails half way, the answer breaks off.
    pub fn rest(self) -> impl Stream<Item = Result<Bytes, Error>> {
        stream::try_unfold(self, async |mut reading| {
            let chunk = reading.chunk().await?;
            Ok(chunk.map(|chunk| (Bytes::from(chunk), reading)))
        })
    }

    /// The next frames; `None` when all have been given.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        while self.next.len() < CHUNK_FRAMES {
            let Some(number) = self.numbers.next() else {
                break;
            };
            self.next.push_back(number);
        }
        let Some(first) = self.next.front() else {
            return Ok(None);
        };
        let mut out = Vec::new();
        if let Some(frame) = self.asked.get(first) {
            self.put(&mut out, frame.clone());
            self.next.pop_front();
            return Ok(Some(out));
        }
        let numbers = self.next.iter().copied();
        let stored = numbers.take_while(|number| !self.asked.contains_key(number));
        let seqs: Vec<i64> = stored.map_while(|number| self.runs.seq(number)).collect();
        let wanted = seqs.clone();
        let bodies = self.store.bodies(self.room.id, seqs, CHUNK_BYTES).await?;
        let mut given = 0;
        for ((seq, body), wanted) in bodies.into_iter().zip(wanted) {
            if seq != wanted {
                break;
            }
            self.put(&mut out, Frame::kept(body));
            given += 1;
        }
        if given == 0 {
            // Deleted since the read began.
            return Err(no_frame(&[*first], self.room.frame_count()));
        }
        self.next.drain(..given);
        Ok(Some(out))
    }

    fn put(&self, out: &mut Vec<u8>, frame: Frame) {
        let frame = match &self.keys {
            Some(keys) => frame.only(keys),
            None => frame,
        };
        out.extend_from_slice(frame.bytes());
    }
}
