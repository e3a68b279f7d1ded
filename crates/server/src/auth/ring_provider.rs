//! The signatures, by the same library that does TLS.
//!
//! `jsonwebtoken` takes its cryptography from outside; this gives it checking, and no signing.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{self, ErrorKind},
    signature::{Error, Verifier},
};
use ring::{hmac, signature};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    // For making key sets, not for reading them.
    key_utils: KeyUtils::new_unimplemented(),
};

/// For the whole process; more than once does no harm.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

struct Signed {
    algorithm: Algorithm,
    key: DecodingKey,
}

/// A key checks the one algorithm that it is for: a public key, which everybody has, must never
/// be taken for a shared secret.
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> errors::Result<Box<dyn JwtVerifier>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac)
        | (Algorithm::RS256, AlgorithmFamily::Rsa)
        | (Algorithm::EdDSA, AlgorithmFamily::Ed) => Ok(Box::new(Signed {
            algorithm: *algorithm,
            key: key.clone(),
        })),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl JwtVerifier for Signed {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signed {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), Error> {
        let rsa = &signature::RSA_PKCS1_2048_8192_SHA256;
        match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, message, signed)
            }
            (Algorithm::RS256, DecodingKeyKind::SecretOrDer(der)) => {
                signature::UnparsedPublicKey::new(rsa, der).verify(message, signed)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                signature::RsaPublicKeyComponents { n, e }.verify(rsa, message, signed)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signed)
            }
            _ => Err(ring::error::Unspecified),
        }
        .map_err(|_| Error::new())
    }
}
