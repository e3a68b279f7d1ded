//! As much of MessagePack as frames need: to walk over values without decoding them.
//!
//! Skipped values are never copied, and a length is believed only as far as there are bytes
//! for it.

/// Why bytes are not MessagePack, or not the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it breaks off")]
    BreaksOff,
    #[error("the byte 0xc1 begins no value")]
    NoValue,
    #[error("{0} is expected")]
    Expected(&'static str),
    #[error("there is more after its end")]
    GoesOn,
}

/// The beginning of a value. Lengths are those of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    Nil,
    Bool,
    Integer,
    Float,
    /// Bytes.
    Text(u32),
    Binary(u32),
    Extension(u32),
    /// Values.
    Array(u32),
    /// Pairs.
    Map(u32),
}

/// A place in a text of MessagePack.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Goes past the beginning of a value; of a number, past all of it.
    pub fn head(&mut self) -> Result<Head, Malformed> {
        Ok(match self.number(1)? {
            first @ 0x80..=0x8f => Head::Map(first & 0x0f),
            first @ 0x90..=0x9f => Head::Array(first & 0x0f),
            first @ 0xa0..=0xbf => Head::Text(first & 0x1f),
            0xc0 => Head::Nil,
            0xc1 => return Err(Malformed::NoValue),
            0xc2 | 0xc3 => Head::Bool,
            first @ 0xc4..=0xc6 => Head::Binary(self.number(1 << (first - 0xc4))?),
            first @ 0xc7..=0xc9 => {
                let length = self.number(1 << (first - 0xc7))?;
                self.number(1)?;
                Head::Extension(length)
            }
            first @ (0xca | 0xcb) => {
                self.take(4 << (first - 0xca))?;
                Head::Float
            }
            // Unsigned, then signed: both of one, two, four and eight bytes.
            first @ 0xcc..=0xd3 => {
                self.take(1 << (first & 0x03))?;
                Head::Integer
            }
            first @ 0xd4..=0xd8 => {
                self.number(1)?;
                Head::Extension(1 << (first - 0xd4))
            }
            first @ 0xd9..=0xdb => Head::Text(self.number(1 << (first - 0xd9))?),
            first @ (0xdc | 0xdd) => Head::Array(self.number(2 << (first - 0xdc))?),
            first @ (0xde | 0xdf) => Head::Map(self.number(2 << (first - 0xde))?),
            _ => Head::Integer,
        })
    }

    /// A map: how many pairs follow.
    pub fn map(&mut self) -> Result<u32, Malformed> {
        match self.head()? {
            Head::Map(pairs) => Ok(pairs),
            _ => Err(Malformed::Expected("a map")),
        }
    }

    /// An array: how many values follow.
    pub fn array(&mut self) -> Result<u32, Malformed> {
        match self.head()? {
            Head::Array(values) => Ok(values),
            _ => Err(Malformed::Expected("an array")),
        }
    }

    /// A text or a binary.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        match self.head()? {
            Head::Text(length) | Head::Binary(length) => self.take(length),
            _ => Err(Malformed::Expected("a text or a binary")),
        }
    }

    /// A value with all that is in it, as it is written. It does not recurse: a value may lie as
    /// deep in others as its sender liked.
    pub fn value(&mut self) -> Result<&'a [u8], Malformed> {
        let from = self.rest;
        let mut left = 1_u64;
        while left > 0 {
            left -= 1;
            match self.head()? {
                Head::Nil | Head::Bool | Head::Integer | Head::Float => {}
                Head::Text(length) | Head::Binary(length) | Head::Extension(length) => {
                    self.take(length)?;
                }
                Head::Array(values) => left += u64::from(values),
                Head::Map(pairs) => left += 2 * u64::from(pairs),
            }
        }
        Ok(&from[..from.len() - self.rest.len()])
    }

    /// Nothing may follow.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Malformed::GoesOn)
    }

    fn take(&mut self, length: u32) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::BreaksOff)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed::BreaksOff)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of at most four bytes, the highest first.
    fn number(&mut self, length: u32) -> Result<u32, Malformed> {
        let bytes = self.take(length)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }
}

/// A whole number that is not negative, as shapes have them.
pub fn whole(value: &[u8]) -> Option<u64> {
    let (first, digits) = value.split_first()?;
    match first {
        0x00..=0x7f if digits.is_empty() => Some((*first).into()),
        // A signed number that is not negative is written the same way.
        0xcc..=0xcf => number(digits),
        0xd0..=0xd3 if digits.first()? & 0x80 == 0 => number(digits),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut eight = [0; 8];
    eight
        .get_mut(8_usize.checked_sub(digits.len())?..)?
        .copy_from_slice(digits);
    Some(u64::from_be_bytes(eight))
}

/// The head of an array of so many values.
pub fn put_array(out: &mut Vec<u8>, values: u32) {
    put_count(out, values, [0x90, 0xdc, 0xdd]);
}

/// The head of a map of so many pairs.
pub fn put_map(out: &mut Vec<u8>, pairs: u32) {
    put_count(out, pairs, [0x80, 0xde, 0xdf]);
}

fn put_count(out: &mut Vec<u8>, count: u32, [short, two, four]: [u8; 3]) {
    match (u8::try_from(count), u16::try_from(count)) {
        (Ok(count @ 0..=15), _) => out.push(short | count),
        (_, Ok(count)) => {
            out.push(two);
            out.extend(count.to_be_bytes());
        }
        _ => {
            out.push(four);
            out.extend(count.to_be_bytes());
        }
    }
}

/// A binary. The limits of frames are far below what four bytes can say.
pub fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a frame's value is within its limit");
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length), _) => out.extend([0xc4, length]),
        (_, Ok(length)) => {
            out.push(0xc5);
            out.extend(length.to_be_bytes());
        }
        _ => {
            out.push(0xc6);
            out.extend(length.to_be_bytes());
        }
    }
    out.extend(bytes);
}

#[cfg(test)]
mod tests;
