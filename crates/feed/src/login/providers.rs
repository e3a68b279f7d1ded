//! The issuers of tokens: `*.provider` files, and the marker `allow-anonymous`.

use std::path::Path;

use serde::Deserialize;
use wakeline_web::token::Key;

use crate::policy::files::{self, DirectoryFiles};

const ENDING: &str = "provider";
const ANONYMOUS: &str = "allow-anonymous";

/// An issuer of tokens.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) issuer: String,
    pub(super) audience: String,
    pub(super) keys: Keys,
}

#[derive(Debug)]
pub(super) enum Keys {
    Fixed {
        id: String,
        key: Key,
    },
    /// A key set, at a URL.
    Set(String),
}

#[derive(Debug)]
pub(super) struct Providers {
    pub(super) providers: Vec<Provider>,
    pub(super) anonymous: bool,
}

#[derive(Deserialize)]
struct ProviderFile {
    provider: String,
    issuer: String,
    audience: String,
    key_id: Option<String>,
    key: Option<String>,
    jwks_uri: Option<String>,
}

impl Providers {
    pub(super) fn read(directory: &Path) -> Result<Self, files::Error> {
        let DirectoryFiles { files, marker } = files::find(directory, ENDING, ANONYMOUS)?;
        if files.is_empty() && !marker {
            return Err(files::Error::neither(directory, ENDING, ANONYMOUS));
        }
        let providers = files.iter().map(|file| Provider::read(file));
        Ok(Self {
            providers: providers.collect::<Result<_, _>>()?,
            anonymous: marker,
        })
    }
}

impl Provider {
    fn read(file: &Path) -> Result<Self, files::Error> {
        let at = |reason: &str| files::Error::new(file, reason);
        let text = files::text(file)?;
        let written: ProviderFile =
            serde_json::from_str(&text).map_err(|error| files::Error::new(file, error))?;
        let keys = match written {
            ProviderFile {
                jwks_uri: Some(uri),
                key: None,
                ..
            } => {
                if !uri.starts_with("https://") && !uri.starts_with("http://") {
                    return Err(at("jwks_uri is not a URL"));
                }
                Keys::Set(uri)
            }
            ProviderFile {
                key_id: Some(id),
                key: Some(key),
                jwks_uri: None,
                ..
            } => Keys::Fixed {
                id,
                key: verifying_key(key.trim()).map_err(|reason| at(&reason))?,
            },
            _ => {
                return Err(at("give either key_id and key, or jwks_uri"));
            }
        };
        Ok(Self {
            name: written.provider,
            issuer: written.issuer,
            audience: written.audience,
            keys,
        })
    }
}

/// From PEM of a public key; any other text is a shared secret.
fn verifying_key(text: &str) -> Result<Key, String> {
    if text.is_empty() {
        Err("the key is empty".to_owned())
    } else if text.starts_with("-----BEGIN") {
        Key::from_pem(text).map_err(|error| error.to_string())
    } else {
        Ok(Key::Secret(text.as_bytes().to_vec()))
    }
}
