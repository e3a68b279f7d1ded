//! What signatures are checked with: a secret, a public key, or one of a key set.

use anyhow::{Result, anyhow, bail, ensure};
use jsonwebtoken::{
    Algorithm, DecodingKey, Header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};

use crate::config;

/// Below it a signature is no proof any more, and `ring` refuses to look.
const MIN_RSA_BYTES: usize = 2048 / 8;
const ED25519_BYTES: usize = 32;

/// A key and the one algorithm that it is for. The token's header never decides how a key is
/// used; it is only compared.
#[derive(Clone, Debug)]
pub(super) struct Key {
    id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
}

impl Key {
    pub(super) fn secret(secret: &config::Secret) -> Self {
        Self {
            id: None,
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.expose().as_bytes()),
        }
    }

    pub(super) fn pem(text: &str) -> Result<Self> {
        let has = |label: &str| text.contains(&format!("-----BEGIN {label}-----"));
        if text.contains("PRIVATE KEY") {
            bail!("this is a private key, which only the issuer should have; give the public one");
        }
        if !has("PUBLIC KEY") && !has("RSA PUBLIC KEY") {
            bail!("not a public key in PEM: expected -----BEGIN PUBLIC KEY-----");
        }
        let bytes = |key: &DecodingKey| key.try_get_as_bytes().map_or(0, <[u8]>::len);
        if let Ok(decoding) = DecodingKey::from_ed_pem(text.as_bytes()) {
            ensure!(
                bytes(&decoding) == ED25519_BYTES,
                "not an Ed25519 key, the only kind for EdDSA"
            );
            return Ok(Self {
                id: None,
                algorithm: Algorithm::EdDSA,
                decoding,
            });
        }
        let decoding = DecodingKey::from_rsa_pem(text.as_bytes())
            .map_err(|_| anyhow!("neither an RSA nor an Ed25519 public key"))?;
        ensure!(
            bytes(&decoding) >= MIN_RSA_BYTES,
            "the RSA key is shorter than 2048 bits"
        );
        Ok(Self {
            id: None,
            algorithm: Algorithm::RS256,
            decoding,
        })
    }

    /// Sets hold keys for other purposes too; the error says why this one is left out.
    pub(super) fn jwk(jwk: &Jwk) -> Result<Self> {
        if !matches!(
            jwk.common.public_key_use,
            None | Some(PublicKeyUse::Signature)
        ) {
            bail!("not for signatures");
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            // A secret that is published is none.
            AlgorithmParameters::OctetKey(_) => bail!("a symmetric key"),
            _ => bail!("neither RSA nor Ed25519"),
        };
        let decoding = DecodingKey::from_jwk(jwk)?;
        match (jwk.common.key_algorithm, algorithm) {
            (None, _)
            | (Some(KeyAlgorithm::RS256), Algorithm::RS256)
            | (Some(KeyAlgorithm::EdDSA), Algorithm::EdDSA) => {}
            _ => bail!("for another algorithm than RS256 or EdDSA"),
        }
        if let jsonwebtoken::DecodingKeyKind::RsaModulusExponent { n, .. } = decoding.kind() {
            ensure!(n.len() >= MIN_RSA_BYTES, "shorter than 2048 bits");
        }
        Ok(Self {
            id: jwk.common.key_id.clone(),
            algorithm,
            decoding,
        })
    }

    /// Modulus and exponent, if it is an RSA key of this name.
    pub(super) fn rsa(&self, id: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        if self.id.as_deref() != Some(id) {
            return None;
        }
        match self.decoding.kind() {
            jsonwebtoken::DecodingKeyKind::RsaModulusExponent { n, e } => {
                Some((n.clone(), e.clone()))
            }
            _ => None,
        }
    }

    /// Where either has no id, the signature alone tells.
    pub(super) fn may_have_signed(&self, header: &Header) -> bool {
        let is_named = match (&self.id, &header.kid) {
            (Some(id), Some(named)) => id == named,
            _ => true,
        };
        is_named && self.algorithm == header.alg
    }

    /// The very key that the token names.
    pub(super) fn is_named_by(&self, header: &Header) -> bool {
        self.id.is_some() && self.id == header.kid && self.algorithm == header.alg
    }
}
