//! What `crates/fuzz` drives: the server without a socket, its login, and the keys of an issuer.

use std::fmt;

use anyhow::Result;
use axum::{body::Body, extract::Request, response::Response};
use http::HeaderMap;

use crate::{
    Assembly,
    auth::{Auth, jwks},
    config::Config,
    listen::in_memory::InMemoryListener,
    metering,
    requests::Gate,
    stopping::StopSignal,
};

/// The routes, the doors and the store of a server, in the runtime in which it was opened.
pub struct InMemoryServer(InMemoryListener);

impl fmt::Debug for InMemoryServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InMemoryServer").finish_non_exhaustive()
    }
}

impl InMemoryServer {
    pub async fn open(config: &Config) -> Result<Self> {
        let auth = Auth::new(config)?;
        let stopping = StopSignal::never();
        let assembly = Assembly::open(config, metering::detached(), &auth, &stopping).await?;
        let gate = Gate::new(auth, config);
        let listener = InMemoryListener::new(assembly.router, gate, config, stopping);
        Ok(Self(listener))
    }

    /// The answer to a request of this machine, as a connection would have read it.
    pub async fn answer(&self, request: Request<Body>) -> Response {
        self.0.answer(request).await
    }

    /// What a connection is answered that sends these bytes and then ends; at most `most` bytes.
    pub async fn connection(&self, sent: &[u8], most: usize) -> Vec<u8> {
        self.0.connection(sent, most).await
    }
}

/// The login of a server.
#[derive(Debug)]
pub struct Login(Auth);

impl Login {
    pub fn new(config: &Config) -> Result<Self> {
        Auth::new(config).map(Self)
    }

    /// The error is the text of the refusal.
    pub fn identify(&self, headers: &HeaderMap) -> Result<(), String> {
        let identified = self.0.identify("/api/v1/push", headers);
        identified.map(drop).map_err(|error| error.to_string())
    }
}

/// How many keys of an issuer's set can be used.
pub fn count_keys(set: &[u8]) -> Result<usize> {
    jwks::count_keys(set)
}
