//! Keys and what they sign.

use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use rsa::{
    RsaPrivateKey,
    pkcs1::EncodeRsaPrivateKey,
    pkcs8::{EncodePublicKey, LineEnding},
    rand_core::OsRng,
    traits::PublicKeyParts,
};
use serde_json::{Value, json};

const RSA_BITS: usize = 2048;
/// The bytes before the 32 bytes of an Ed25519 key in its `SubjectPublicKeyInfo` (RFC 8410).
const ED25519_INFO: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A key of an issuer, with the id that its tokens name.
#[derive(Debug)]
pub struct SigningKey {
    id: String,
    kind: Kind,
}

enum Kind {
    Hs256(Vec<u8>),
    Rs256 {
        public: rsa::RsaPublicKey,
        pair: Box<RsaKeyPair>,
    },
    EdDsa(Ed25519KeyPair),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.algorithm())
    }
}

impl Kind {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Hs256(_) => "HS256",
            Self::Rs256 { .. } => "RS256",
            Self::EdDsa(_) => "EdDSA",
        }
    }
}

impl SigningKey {
    /// Any bytes: also a public key, for a test that uses one as a secret.
    #[must_use]
    pub fn hs256(id: &str, secret: &[u8]) -> Self {
        Self {
            id: id.to_owned(),
            kind: Kind::Hs256(secret.to_vec()),
        }
    }

    /// Takes its time: looking for primes.
    #[must_use]
    pub fn rs256(id: &str) -> Self {
        let private = RsaPrivateKey::new(&mut OsRng, RSA_BITS).expect("an RSA key");
        let der = private.to_pkcs1_der().expect("a private key");
        let pair = RsaKeyPair::from_der(der.as_bytes()).expect("an RSA key pair");
        Self {
            id: id.to_owned(),
            kind: Kind::Rs256 {
                public: private.to_public_key(),
                pair: Box::new(pair),
            },
        }
    }

    #[must_use]
    pub fn eddsa(id: &str) -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("an Ed25519 key");
        let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).expect("an Ed25519 key pair");
        Self {
            id: id.to_owned(),
            kind: Kind::EdDsa(pair),
        }
    }

    /// The public key in PEM.
    #[must_use]
    pub fn public_pem(&self) -> String {
        match &self.kind {
            Kind::Hs256(_) => panic!("a secret has no public part"),
            Kind::Rs256 { public, .. } => public
                .to_public_key_pem(LineEnding::LF)
                .expect("a public key"),
            Kind::EdDsa(pair) => {
                let info = [&ED25519_INFO[..], pair.public_key().as_ref()].concat();
                let text = STANDARD.encode(info);
                format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
            }
        }
    }

    /// The public key in every form in which a server may have it at hand: what a forger would try
    /// as the secret.
    #[must_use]
    pub fn public_forms(&self) -> Vec<Vec<u8>> {
        let pem = self.public_pem();
        let lines: Vec<&str> = pem.lines().collect();
        let text = lines[1..lines.len() - 1].concat();
        let der = STANDARD.decode(&text).expect("base64");
        let itself = match &self.kind {
            Kind::Hs256(secret) => secret.clone(),
            Kind::Rs256 { pair, .. } => pair.public().as_ref().to_vec(),
            Kind::EdDsa(pair) => pair.public_key().as_ref().to_vec(),
        };
        let trimmed = pem.trim_end().as_bytes().to_vec();
        vec![pem.into_bytes(), trimmed, text.into_bytes(), der, itself]
    }

    /// The key as a JWK; a secret too, for a test that publishes one by mistake.
    #[must_use]
    pub fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &self.kind {
            Kind::Hs256(secret) => json!({"kty": "oct", "k": encode(secret)}),
            Kind::Rs256 { public, .. } => json!({
                "kty": "RSA",
                "n": encode(&public.n().to_bytes_be()),
                "e": encode(&public.e().to_bytes_be()),
            }),
            Kind::EdDsa(pair) => json!({
                "kty": "OKP",
                "crv": "Ed25519",
                "x": encode(pair.public_key().as_ref()),
            }),
        };
        jwk["kid"] = json!(self.id);
        jwk["alg"] = json!(self.kind.algorithm());
        jwk["use"] = json!("sig");
        jwk
    }

    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({"typ": "JWT", "alg": self.kind.algorithm(), "kid": self.id});
        self.sign_with(&header, claims)
    }

    /// With this key's algorithm, whatever the header says.
    #[must_use]
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let bytes = message.as_bytes();
        let signature = match &self.kind {
            Kind::Hs256(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, bytes).as_ref().to_vec()
            }
            Kind::Rs256 { pair, .. } => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    bytes,
                    &mut signature,
                )
                .expect("a signature");
                signature
            }
            Kind::EdDsa(pair) => pair.sign(bytes).as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A token with `header` and an empty signature.
#[must_use]
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.", message(header, claims))
}

fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}
