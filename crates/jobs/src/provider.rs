//! Providers: what workers answer reads of, and their answers.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::{name::FullName, results::chunks::ChunkedAnswer};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    pub id: Uuid,
    pub name: FullName,
    /// JSON.
    pub schema: String,
    pub content_type: String,
    pub user: Uuid,
    /// `None` for the server's own.
    pub worker: Option<Uuid>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Counts registrations: the answers of an earlier one are not served any more.
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
pub enum ProviderRegistration {
    /// The worker does not exist, or is another user's.
    NoWorker,
    /// The name is taken by another user.
    NotOwner,
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

/// The key of an answer: the request's hash, within a registration of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnswerKey {
    pub provider: Uuid,
    pub version: i64,
    /// The hash of the parameters: see [`crate::params`].
    pub hash: String,
}

/// A request to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRequest {
    pub key: AnswerKey,
    /// Identifies one time that the request was sent.
    pub token: Uuid,
    /// JSON, as it was hashed.
    pub params: String,
}

/// The longest problem whose status is read.
pub(crate) const MAX_PROBLEM: u64 = 1 << 20;

/// A provider's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer is a problem document.
    pub is_error: bool,
    pub body: AnswerBody,
    /// Strong, with its quotes: the same for the same bytes.
    pub etag: String,
}

#[derive(Clone, Debug)]
pub enum AnswerBody {
    Bytes(Bytes),
    /// On disk; it stays readable while it is open. A problem is here only if it is too long to be
    /// read for its status.
    File(std::sync::Arc<std::fs::File>, u64),
    /// In chunks; it stays readable for as long as a reader takes them.
    Chunks(ChunkedAnswer),
}
