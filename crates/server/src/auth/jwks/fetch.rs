//! Fetches the key set over HTTP or HTTPS.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::body::Body;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Deserialize;
use serde_json::Value;

use super::super::key::IssuerKey;

/// A longer answer is refused.
const MAX_BYTES: usize = 256 * 1024;
/// A token that names no key is verified with each of them.
const MAX_KEYS: usize = 32;

#[derive(Debug)]
pub(super) struct Fetcher {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    uri: Uri,
    timeout: Duration,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Fetcher {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self> {
        let uri: Uri = url.parse().context("not a URL")?;
        let authority = uri.authority().context("a URL without a host")?;
        ensure!(
            !authority.as_str().contains('@'),
            "a login in the URL is not sent; the key set must be public"
        );
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&uri)?)
            .https_or_http()
            .enable_http1()
            .build();
        // Fetches are an hour apart: a connection that is kept would be dead by then.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Ok(Self {
            client,
            uri,
            timeout,
        })
    }

    pub(super) async fn keys(&self) -> Result<Vec<IssuerKey>> {
        tokio::time::timeout(self.timeout, self.request())
            .await
            .context("no answer in time (auth.jwt.jwks_timeout)")?
    }

    async fn request(&self) -> Result<Vec<IssuerKey>> {
        let request = Request::get(self.uri.clone())
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())?;
        let response = self.client.request(request).await?;
        let status = response.status();
        ensure!(status == StatusCode::OK, "the answer is {status}");
        let body = Limited::new(response.into_body(), MAX_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        parse(&body)
    }
}

fn tls(uri: &Uri) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    if uri.scheme_str() == Some("https") {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ensure!(
            !roots.is_empty(),
            "this machine has no root certificates to check the issuer's with \
             (SSL_CERT_FILE names others)"
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// The keys that can be used here. Others are left out: a set may hold some for other purposes.
pub(super) fn parse(body: &[u8]) -> Result<Vec<IssuerKey>> {
    let set: KeySet = serde_json::from_slice(body).context("the answer is no key set")?;
    let mut keys = Vec::new();
    for value in set.keys {
        let id = value["kid"].as_str().unwrap_or("without id").to_owned();
        match IssuerKey::from_jwk(value) {
            Ok(_) if keys.len() == MAX_KEYS => {
                tracing::warn!("auth.jwt.jwks_url: only the first {MAX_KEYS} keys are used");
                break;
            }
            Ok(key) => keys.push(key),
            Err(error) => tracing::debug!(id, "a key of the issuer's set is left out: {error:#}"),
        }
    }
    Ok(keys)
}
