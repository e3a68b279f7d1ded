//! Frames: maps of MessagePack with a binary for every key, kept and sent as they are.
//!
//! A value is itself MessagePack (an array as `msgpack-numpy` writes it); nothing here decodes one.

pub mod msgpack;
mod property;

use std::collections::HashSet;

use bytes::Bytes;

use self::msgpack::{Head, Malformed, Walk, put_binary, put_map};
pub use self::property::Property;

/// The keys of every uploaded frame: nothing can be drawn without them.
pub const REQUIRED: [&str; 2] = ["arrays.colors", "arrays.radii"];

/// The limits of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    pub bytes: u32,
    pub keys: u32,
    /// Bytes of one.
    pub key: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            keys: 1_000,
            key: 1_000,
        }
    }
}

/// Why bytes are not a frame that this server accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("not a frame as MessagePack: {0}")]
    Malformed(#[from] Malformed),
    #[error("more than {0} keys, the limit of this server (jobs.frame_keys)")]
    TooManyKeys(u32),
    #[error("a key of more than {0} bytes, the limit of this server")]
    LongKey(usize),
    #[error("the key {0} is there twice")]
    Twice(String),
    #[error("longer than {0} bytes, the limit of this server (jobs.frame_bytes)")]
    TooLarge(u32),
    #[error("missing required keys: {}", .0.join(", "))]
    Missing(Vec<&'static str>),
}

/// A frame as it is kept: see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// Reads any map of MessagePack whose keys are texts or binaries. A value that is a binary is
    /// taken to be written already; any other is kept as it is written here.
    pub fn read(bytes: &[u8], limits: FrameLimits) -> Result<Self, Refusal> {
        let mut walk = Walk::new(bytes);
        let frame = Self::walk(&mut walk, limits)?;
        walk.end()?;
        Ok(frame)
    }

    /// The same where it lies among others.
    pub fn walk(walk: &mut Walk<'_>, limits: FrameLimits) -> Result<Self, Refusal> {
        let pairs = walk.map()?;
        let mut draft = Draft::new(limits);
        for _ in 0..pairs {
            let key = walk.bytes()?;
            let mut inside = *walk;
            let written = walk.value()?;
            let value = match inside.head()? {
                Head::Binary(_) => Walk::new(written).bytes()?,
                _ => written,
            };
            draft.put(key, value)?;
        }
        Ok(draft.finish())
    }

    /// A frame as it was stored.
    #[must_use]
    pub fn kept(bytes: Bytes) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Its keys and values, in their order. Bytes of another form have none.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut walk = Walk::new(&self.0);
        let pairs = walk.map().unwrap_or_default();
        (0..pairs).map_while(move |_| Some((walk.bytes().ok()?, walk.bytes().ok()?)))
    }

    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.pairs().map(|(key, _)| text(key)).collect()
    }

    pub fn check_required(&self) -> Result<(), Refusal> {
        let there: HashSet<&[u8]> = self.pairs().map(|(key, _)| key).collect();
        let missing = REQUIRED.into_iter();
        let missing: Vec<_> = missing
            .filter(|key| !there.contains(key.as_bytes()))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Refusal::Missing(missing))
    }

    /// The frame with only these keys.
    #[must_use]
    pub fn only(&self, keys: &HashSet<Vec<u8>>) -> Self {
        let chosen = self.pairs().filter(|(key, _)| keys.contains(*key));
        Self::of(chosen.collect())
    }

    /// The frame with the keys of another, which replace its own of the same names.
    pub fn merged(&self, other: &Self, limits: FrameLimits) -> Result<Self, Refusal> {
        let replaced: HashSet<&[u8]> = other.pairs().map(|(key, _)| key).collect();
        let kept = self.pairs().filter(|(key, _)| !replaced.contains(key));
        let mut draft = Draft::new(limits);
        for (key, value) in kept.chain(other.pairs()) {
            draft.put(key, value)?;
        }
        Ok(draft.finish())
    }

    fn of(pairs: Vec<(&[u8], &[u8])>) -> Self {
        let mut out = Vec::new();
        put_map(&mut out, u32::try_from(pairs.len()).unwrap_or(u32::MAX));
        for (key, value) in pairs {
            put_binary(&mut out, key);
            put_binary(&mut out, value);
        }
        Self(out.into())
    }

    /// The property of each key, in their order.
    #[must_use]
    pub fn properties(&self) -> Vec<(String, Property)> {
        self.pairs()
            .map(|(key, value)| (text(key), Property::read(value)))
            .collect()
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// A frame that is being written.
#[derive(Debug)]
pub struct Draft {
    limits: FrameLimits,
    pairs: Vec<u8>,
    keys: HashSet<Vec<u8>>,
}

impl Draft {
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            pairs: Vec::new(),
            keys: HashSet::new(),
        }
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if key.len() > self.limits.key {
            return Err(Refusal::LongKey(self.limits.key));
        }
        if self.keys.len() >= self.limits.keys as usize {
            return Err(Refusal::TooManyKeys(self.limits.keys));
        }
        if self.pairs.len() + key.len() + value.len() > self.limits.bytes as usize {
            return Err(Refusal::TooLarge(self.limits.bytes));
        }
        if !self.keys.insert(key.to_owned()) {
            return Err(Refusal::Twice(text(key)));
        }
        put_binary(&mut self.pairs, key);
        put_binary(&mut self.pairs, value);
        Ok(())
    }

    #[must_use]
    pub fn finish(self) -> Frame {
        let mut out = Vec::with_capacity(5 + self.pairs.len());
        put_map(&mut out, u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        out.extend(self.pairs);
        Frame(out.into())
    }
}

#[cfg(test)]
mod tests;
