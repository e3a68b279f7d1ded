//! Reads the text form of keys. A key's text is its identity, so it is never written anew.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadKey {
    #[error("not a PEM: expected '-----BEGIN {0}-----', base64 and '-----END {0}-----'")]
    Pem(&'static str),
    #[error("the base64 of the PEM is broken")]
    Base64,
    #[error("not an RSA key, or one of a size that is not supported")]
    Rsa,
    #[error("an RSA key must have 2048 to 4096 bits, this one has {0}")]
    Size(usize),
}

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of the block with one of these labels, and which it was. Line ends and widths do not
/// matter.
pub(super) fn read(text: &str, labels: [&'static str; 2]) -> Result<(usize, Vec<u8>), BadKey> {
    for (index, label) in labels.into_iter().enumerate() {
        let begin = format!("-----BEGIN {label}-----");
        let Some(body) = text.trim_ascii().strip_prefix(begin.as_str()) else {
            continue;
        };
        let body = body.strip_suffix(&format!("-----END {label}-----"));
        let body = body.ok_or(BadKey::Pem(labels[0]))?;
        let base64: String = body.split_ascii_whitespace().collect();
        let bytes = LENIENT.decode(base64).map_err(|_| BadKey::Base64)?;
        return Ok((index, bytes));
    }
    Err(BadKey::Pem(labels[0]))
}
