//! Every request before its route: limits, authentication, counting.

use std::convert::Infallible;

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use tower::{ServiceExt, util::Oneshot};
use wakeline_web::{Identity, Limits, Problem};

use crate::{
    auth::{Auth, LoginError},
    config::Config,
};

#[derive(Debug)]
pub(crate) struct Gate {
    auth: Auth,
    max_url: usize,
    limits: Limits,
    feeds_have_own_login: bool,
}

impl Gate {
    pub(crate) fn new(auth: Auth, config: &Config) -> Self {
        Self {
            auth,
            feeds_have_own_login: config.feeds.authentication.is_some(),
            max_url: config.http.max_url,
            limits: Limits {
                max_body: config.http.max_body,
                body_timeout: config.http.body_timeout,
            },
        }
    }

    pub(crate) async fn pass(&self, request: Request, router: &Router) -> Response {
        let method = request.method().clone();
        let response = match self.check(&request) {
            Err(problem) => problem.into_response(),
            Ok(()) => match self.identify(&request) {
                Ok(identity) => infallible(self.enter(identity, request, router).await),
                // Boxed, so that no other request keeps room for it while it is held.
                Err(LoginError::UnknownKey) => {
                    Box::pin(self.enter_with_new_keys(request, router)).await
                }
                Err(error) => Problem::from(error).into_response(),
            },
        };
        metrics::counter!(
            "wakeline_http_requests_total",
            "method" => method_label(&method),
            "status" => response.status().as_str().to_owned(),
        )
        .increment(1);
        response
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let url = request.uri().path_and_query();
        let length = url.map_or(0, |part| part.as_str().len());
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
        Ok(())
    }

    fn identify(&self, request: &Request) -> Result<Option<Identity>, LoginError> {
        let path = request.uri().path();
        let identified = self.auth.identify(path, request.headers());
        // A door with a login of its own may know a caller that this login refuses.
        let has_own_login = is_of(path, &wakeline_jobs::http::PATHS)
            || (self.feeds_have_own_login && is_of(path, &[wakeline_feed::http::PREFIX]));
        // A browser's preflight has no token.
        let is_preflight = request.method() == http::Method::OPTIONS
            && is_of(path, &[wakeline_feed::http::PREFIX]);
        if has_own_login || is_preflight {
            return Ok(identified.unwrap_or(None));
        }
        identified
    }

    async fn enter_with_new_keys(&self, request: Request, router: &Router) -> Response {
        let identified = match self.auth.renew_keys().await {
            Ok(()) => self.identify(&request),
            Err(error) => Err(error),
        };
        match identified {
            Ok(identity) => infallible(self.enter(identity, request, router).await),
            Err(error) => Problem::from(error).into_response(),
        }
    }

    /// The routing's own future and none around it, because it is kept while a request is held.
    fn enter(
        &self,
        identity: Option<Identity>,
        mut request: Request,
        router: &Router,
    ) -> Oneshot<Router, Request> {
        let extensions = request.extensions_mut();
        extensions.insert(self.limits);
        if let Some(identity) = identity {
            extensions.insert(identity);
        }
        router.clone().oneshot(request)
    }
}

/// For `/metrics`.
pub(crate) fn describe_metrics() {
    metrics::describe_counter!(
        "wakeline_http_requests_total",
        "Answers by method and status"
    );
}

fn is_of(path: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| {
        path.strip_prefix(beginning)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn infallible(answer: Result<Response, Infallible>) -> Response {
    match answer {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A label of the metric: only these, because a client can send any method.
fn method_label(method: &http::Method) -> &'static str {
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
