//! What every request passes before its route: limits, authentication, counting.

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use tower::ServiceExt;
use wakeline_web::{Limits, Problem};

use crate::config::{Config, Secret};

/// Open to everybody: a supervisor asks them.
const PUBLIC: [&str; 2] = ["/livez", "/readyz"];

#[derive(Debug)]
pub(crate) struct Gate {
    tokens: Vec<Secret>,
    max_url: usize,
    limits: Limits,
}

impl Gate {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            tokens: config.auth.tokens.clone(),
            max_url: config.http.max_url,
            limits: Limits {
                max_body: config.http.max_body,
                body_timeout: config.http.body_timeout,
            },
        }
    }

    pub(crate) async fn pass(&self, mut request: Request, router: &Router) -> Response {
        let method = request.method().clone();
        let response = match self.check(&request) {
            Ok(()) => {
                request.extensions_mut().insert(self.limits);
                match router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            }
            Err(problem) => problem.into_response(),
        };
        metrics::counter!(
            "wakeline_http_requests_total",
            "method" => known(&method),
            "status" => response.status().as_str().to_owned(),
        )
        .increment(1);
        response
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let url = request.uri();
        let length = url.path_and_query().map_or(0, |part| part.as_str().len());
        if length > self.max_url {
            return Err(Problem::new(
                StatusCode::URI_TOO_LONG,
                "url-too-long",
                format!(
                    "URL: longer than {} bytes, the limit of this server (http.max_url)",
                    self.max_url
                ),
            ));
        }
        if self.tokens.is_empty() || PUBLIC.contains(&url.path()) || self.is_known(request) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "Authorization: a known bearer token is needed",
        ))
    }

    fn is_known(&self, request: &Request) -> bool {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        let Some(given) = given else { return false };
        // Queen's clients may send the bare token.
        let token = given.strip_prefix(b"Bearer ").unwrap_or(given);
        self.tokens
            .iter()
            .any(|known| is_same(known.expose().as_bytes(), token))
    }
}

/// Takes the same time wherever the difference is, so that a token cannot be guessed byte by byte.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A label must not be whatever a stranger sends.
fn known(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
