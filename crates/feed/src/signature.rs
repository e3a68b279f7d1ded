//! Keys and signatures: RSA PKCS#1 v1.5 over the SHA-512 of a fact's canonical JSON.

mod key;
mod pem;
mod verifier;

pub use key::{Signer, generate};
pub use pem::BadKey;
pub use verifier::{InvalidSignature, SignatureFlaw, Verifier};

#[cfg(test)]
mod tests;
