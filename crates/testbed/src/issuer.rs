//! An issuer of signed tokens (JWT): keys made on the spot, tokens signed with them, and the key
//! set published over HTTP or HTTPS.
//!
//! Tokens are put together here byte by byte, also wrong ones, and with no part of the library
//! that Wakeline reads them with.

mod key;
mod key_set;

pub use key::{SigningKey, unsigned};
pub use key_set::KeySet;
