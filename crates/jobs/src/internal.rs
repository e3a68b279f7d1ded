//! `@internal`: jobs and providers that the server runs itself.

pub mod filesystem;

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::name::{FullName, INTERNAL};

/// Why a provider of the server could not answer. The text is for the reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    pub fn new(detail: impl Into<String>) -> Self {
        Self(detail.into())
    }
}

pub trait InternalProvider: Send + Sync + fmt::Debug {
    fn category(&self) -> &str;

    fn name(&self) -> &str;

    /// Of its parameters, as JSON Schema.
    fn schema(&self) -> Value;

    fn content_type(&self) -> &str;

    /// Whether only superusers may see or read it.
    fn superusers_only(&self) -> bool;

    /// Answers within a time of its own; the future may be dropped.
    fn read(&self, params: BTreeMap<String, String>) -> BoxFuture<'_, Result<Bytes, Failure>>;
}

pub trait InternalJob: Send + Sync + fmt::Debug {
    fn category(&self) -> &str;

    fn name(&self) -> &str;

    /// Of its payload, as JSON Schema.
    fn schema(&self) -> Value;

    /// The error is the one with which the task fails.
    fn run(&self, payload: Value) -> BoxFuture<'_, Result<(), String>>;
}

/// The jobs and providers that this server runs.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    providers: BTreeMap<FullName, Arc<dyn InternalProvider>>,
    jobs: BTreeMap<FullName, Arc<dyn InternalJob>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is registered twice")]
pub struct AlreadyRegistered(pub FullName);

impl Registry {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_provider(
        mut self,
        provider: Arc<dyn InternalProvider>,
    ) -> Result<Self, AlreadyRegistered> {
        let name = FullName::new(INTERNAL, provider.category(), provider.name());
        match self.providers.insert(name.clone(), provider) {
            None => Ok(self),
            Some(_) => Err(AlreadyRegistered(name)),
        }
    }

    pub fn with_job(mut self, job: Arc<dyn InternalJob>) -> Result<Self, AlreadyRegistered> {
        let name = FullName::new(INTERNAL, job.category(), job.name());
        match self.jobs.insert(name.clone(), job) {
            None => Ok(self),
            Some(_) => Err(AlreadyRegistered(name)),
        }
    }

    #[must_use]
    pub fn provider(&self, name: &FullName) -> Option<&Arc<dyn InternalProvider>> {
        self.providers.get(name)
    }

    #[must_use]
    pub fn job(&self, name: &FullName) -> Option<&Arc<dyn InternalJob>> {
        self.jobs.get(name)
    }

    /// In the order of their names.
    pub fn providers(&self) -> impl Iterator<Item = (&FullName, &Arc<dyn InternalProvider>)> {
        self.providers.iter()
    }

    /// Providers that are not only for superusers.
    #[must_use]
    pub fn for_everybody(&self) -> Vec<FullName> {
        let open = self
            .providers
            .iter()
            .filter(|(_, provider)| !provider.superusers_only());
        open.map(|(name, _)| name.clone()).collect()
    }

    /// In the order of their names.
    pub fn jobs(&self) -> impl Iterator<Item = (&FullName, &Arc<dyn InternalJob>)> {
        self.jobs.iter()
    }
}
