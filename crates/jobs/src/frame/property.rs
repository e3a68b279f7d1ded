//! The type and shape of a frame's value, read from its beginning.

use super::msgpack::{Head, Walk, whole};

/// Sizes of an array's shape that are read at most; NumPy has no more than 64.
const MAX_DIMENSIONS: u32 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// As `msgpack-numpy` writes arrays and NumPy's own scalars.
    Array {
        dtype: String,
        shape: Vec<u64>,
    },
    Scalar {
        dtype: &'static str,
    },
}

impl Property {
    #[must_use]
    pub fn read(value: &[u8]) -> Self {
        const UNKNOWN: &str = "unknown";
        let mut walk = Walk::new(value);
        let dtype = match walk.head() {
            Ok(Head::Map(pairs)) => match array(walk, pairs) {
                Some((dtype, shape)) => {
                    let dtype = dtype.unwrap_or_else(|| UNKNOWN.to_owned());
                    return Self::Array { dtype, shape };
                }
                None => UNKNOWN,
            },
            Ok(Head::Bool) => "bool",
            Ok(Head::Integer) => "int64",
            Ok(Head::Float) => "float64",
            Ok(Head::Text(_) | Head::Binary(_)) => "str",
            Ok(Head::Nil | Head::Extension(_) | Head::Array(_)) | Err(_) => UNKNOWN,
        };
        Self::Scalar { dtype }
    }
}

/// The type and shape of a map that says `nd`. Its data is stepped over.
fn array(mut walk: Walk<'_>, pairs: u32) -> Option<(Option<String>, Vec<u64>)> {
    let (mut is_array, mut dtype, mut shape) = (false, None, Vec::new());
    for _ in 0..pairs {
        let mut key = Walk::new(walk.value().ok()?);
        let value = walk.value().ok()?;
        match key.bytes() {
            Ok(b"nd") => is_array = true,
            Ok(b"type") => dtype = Walk::new(value).bytes().ok(),
            Ok(b"shape") => shape = sizes(value).unwrap_or_default(),
            _ => {}
        }
    }
    let dtype = dtype.map(|dtype| String::from_utf8_lossy(dtype).into_owned());
    is_array.then_some((dtype, shape))
}

fn sizes(value: &[u8]) -> Option<Vec<u64>> {
    let mut walk = Walk::new(value);
    let count = walk.array().ok()?;
    if count > MAX_DIMENSIONS {
        return None;
    }
    (0..count).map(|_| whole(walk.value().ok()?)).collect()
}
