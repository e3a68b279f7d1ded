//! Texts that a door broadcasts, in chunks that fit a message.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Texts of which some chunks have come. With more the oldest is dropped.
const MAX_UNFINISHED: usize = 64;
/// Bytes of a chunk around its text.
const ENVELOPE: usize = 96;
/// Bytes that one byte of text may become in JSON.
const MOST_ESCAPED: usize = 6;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    #[serde(rename = "r")]
    door: String,
    /// Names the text within its process.
    #[serde(rename = "i")]
    id: u32,
    /// Chunks before this one.
    #[serde(rename = "k", default, skip_serializing_if = "is_zero")]
    number: u32,
    /// Chunks after this one.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    left: u32,
    #[serde(rename = "x")]
    text: String,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Chunk {
    pub(crate) fn whole(door: &str, text: String, id: u32) -> Self {
        Self {
            door: door.to_owned(),
            id,
            number: 0,
            left: 0,
            text,
        }
    }

    /// Chunks of at most `max` bytes as JSON, each with its size.
    pub(crate) fn split(&self, max: usize) -> Vec<(Self, usize)> {
        let size =
            |chunk: &Self| serde_json::to_string(chunk).map_or(usize::MAX, |text| text.len() + 1);
        let whole = size(self);
        if whole <= max {
            return vec![(self.clone(), whole)];
        }
        let most = (max.saturating_sub(ENVELOPE + self.door.len()) / MOST_ESCAPED).max(4);
        let mut rest = self.text.as_str();
        let mut texts = Vec::new();
        while !rest.is_empty() {
            let (text, after) = rest.split_at(rest.floor_char_boundary(most));
            texts.push(text);
            rest = after;
        }
        let count = texts.len();
        (0..)
            .zip(texts)
            .map(|(number, text)| {
                let chunk = Self {
                    number,
                    left: u32::try_from(count).unwrap_or(u32::MAX) - number - 1,
                    text: text.to_owned(),
                    ..self.clone()
                };
                let size = size(&chunk);
                (chunk, size)
            })
            .collect()
    }
}

/// Texts of which some chunks have come, by sender and text.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    unfinished: VecDeque<(u64, Chunk)>,
}

impl Chunks {
    /// The door and the text, if this was the last chunk. A text that lacks a chunk is dropped.
    pub(crate) fn add(&mut self, from: u64, chunk: Chunk) -> Option<(String, String)> {
        let mut unfinished = self.unfinished.iter();
        let at = unfinished.position(|(sender, text)| *sender == from && text.id == chunk.id);
        let joined = match at.and_then(|at| self.unfinished.remove(at)) {
            None if chunk.number == 0 => chunk,
            Some((_, before)) if before.number + 1 == chunk.number => Chunk {
                text: before.text + &chunk.text,
                ..chunk
            },
            _ => return None,
        };
        if joined.left == 0 {
            return Some((joined.door, joined.text));
        }
        if self.unfinished.len() >= MAX_UNFINISHED {
            self.unfinished.pop_front();
        }
        self.unfinished.push_back((from, joined));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_lacks_a_chunk_is_dropped() {
        let whole = Chunk::whole("jobs", "x".repeat(2_000), 1);
        let chunks = whole.split(1_000);
        for lost in 0..chunks.len() {
            let mut joined = Chunks::default();
            let arriving = (0..)
                .zip(chunks.clone())
                .filter(|(number, _)| *number != lost);
            let texts: Vec<_> = arriving
                .filter_map(|(_, (chunk, _))| joined.add(7, chunk))
                .collect();
            assert_eq!(texts, [], "without chunk {lost}");
        }
    }
}
