//! Providers: what workers answer reads of, and what they answered.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::{name::FullName, results::pieces::Pieced};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    pub id: Uuid,
    pub name: FullName,
    /// JSON.
    pub schema: String,
    pub content_type: String,
    pub user: Uuid,
    /// None for those that the server runs itself.
    pub worker: Option<Uuid>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Counts registrations: what an earlier one answered is not served any more.
    pub version: i64,
    /// How long its answers are kept, if it says.
    pub ttl: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct NewProvider {
    pub name: FullName,
    pub schema: String,
    pub content_type: String,
    pub user: Uuid,
    pub is_superuser: bool,
    /// Without one, one is made.
    pub worker: Option<Uuid>,
    pub ttl: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum ProviderRegistered {
    /// The worker is not known, or another user's.
    NoWorker,
    /// The name is taken by another user.
    Foreign,
    Done {
        provider: Provider,
        is_new: bool,
    },
}

/// Which providers are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderFilter {
    pub rooms: Vec<String>,
    /// Of `@internal`, if that is among the rooms, only these; `None`: all.
    pub internal: Option<Vec<FullName>>,
}

impl From<Vec<String>> for ProviderFilter {
    fn from(rooms: Vec<String>) -> Self {
        Self {
            rooms,
            internal: None,
        }
    }
}

impl ProviderFilter {
    /// Names of `@internal` as both databases compare them.
    pub(crate) fn internal_texts(&self) -> Option<Vec<String>> {
        let names = self.internal.as_ref()?;
        Some(names.iter().map(ToString::to_string).collect())
    }
}

/// Which answer of which registration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub provider: Uuid,
    pub version: i64,
    /// Of the parameters: see the read.
    pub hash: String,
}

/// What a provider is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub key: Key,
    /// One time that it was asked.
    pub token: Uuid,
    /// JSON, as it was hashed.
    pub params: String,
}

/// Bytes of a problem of which the status is looked at.
pub(crate) const MAX_PROBLEM: u64 = 1 << 20;

/// What a provider answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// A problem instead of what was asked for.
    pub is_error: bool,
    pub body: AnswerBody,
    /// Strong, with its quotes: the same for the same bytes.
    pub etag: String,
}

#[derive(Clone, Debug)]
pub enum AnswerBody {
    Bytes(Bytes),
    /// On disk, and no problem but one that is larger than any should be; it stays readable while it is open.
    File(std::sync::Arc<std::fs::File>, u64),
    /// Where it is kept, piece by piece; it stays readable for as long as somebody reads it.
    Pieces(Pieced),
}
