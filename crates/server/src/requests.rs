//! Every request before its route: limits, authentication, counting.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use tower::{ServiceExt, util::Oneshot};
use wakeline_web::{ClientAddress, Identity, Limits, Problem};

use crate::{
    auth::{Auth, LoginError},
    browsers::{BrowserRules, Page, preflight, protect},
    callers::{CallerCounts, TrustedProxies, request_shares},
    config::Config,
};

#[derive(Debug)]
pub(crate) struct Gate {
    auth: Auth,
    browsers: BrowserRules,
    proxies: TrustedProxies,
    under_way: Arc<CallerCounts>,
    max_url: usize,
    limits: Limits,
    feeds_have_own_login: bool,
}

impl Gate {
    pub(crate) fn new(auth: Auth, config: &Config) -> Self {
        Self {
            browsers: BrowserRules::new(config, auth.is_off()),
            proxies: TrustedProxies::new(&config.http.trusted_proxies),
            under_way: CallerCounts::new(
                config.limits.requests_per_address,
                config.limits.requests_per_identity,
            ),
            auth,
            feeds_have_own_login: config.feeds.authentication.is_some(),
            max_url: config.http.max_url,
            limits: Limits {
                max_body: config.http.max_body,
                body_timeout: config.http.body_timeout,
                limited_address: None,
            },
        }
    }

    /// Whether the address speaks for many callers.
    pub(crate) fn is_shared(&self, address: IpAddr) -> bool {
        self.proxies.is_shared(address)
    }

    pub(crate) async fn pass(&self, mut request: Request, router: &Router) -> Response {
        let limited_address = self.find_caller(&mut request);
        let method = request.method().clone();
        let (page, mut response) = match self.check(&request) {
            Err(problem) => (Page::Own, problem.into_response()),
            Ok(page) => match preflight(&request, &page).filter(|_| !is_of_feeds(&request)) {
                Some(answer) => (page, answer),
                None => match self.identify(&request) {
                    Ok(identity) => {
                        let shares =
                            request_shares(&self.under_way, limited_address, identity.as_ref());
                        match shares {
                            Ok(_shares) => {
                                let entering =
                                    self.enter(identity, limited_address, request, router);
                                (page, infallible(entering.await))
                            }
                            Err(problem) => (page, problem.into_response()),
                        }
                    }
                    // Boxed, so that no other request keeps room for it while it is held.
                    Err(LoginError::UnknownKey) => (
                        page,
                        Box::pin(self.enter_with_new_keys(limited_address, request, router)).await,
                    ),
                    Err(error) => (page, Problem::from(error).into_response()),
                },
            },
        };
        protect(response.headers_mut(), page);
        metrics::counter!(
            "wakeline_http_requests_total",
            "method" => method_label(&method),
            "status" => response.status().as_str().to_owned(),
        )
        .increment(1);
        response
    }

    /// Puts the caller's own address into the request. Returns it if it has limits: a supervisor's
    /// probe has none, so that a busy machine is not taken for a dead one.
    fn find_caller(&self, request: &mut Request) -> Option<IpAddr> {
        let ClientAddress(peer) = *request.extensions().get()?;
        let address = self.proxies.caller(peer, request.headers());
        if address != peer {
            request.extensions_mut().insert(ClientAddress(address));
        }
        let is_probe = Auth::is_probe(request.uri().path());
        (!is_probe && !self.is_shared(address)).then_some(address)
    }

    fn check(&self, request: &Request) -> Result<Page, Problem> {
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
        if Auth::is_probe(request.uri().path()) {
            return Ok(Page::Own);
        }
        self.browsers.check(request)
    }

    fn identify(&self, request: &Request) -> Result<Option<Identity>, LoginError> {
        let path = request.uri().path();
        let identified = self.auth.identify(path, request.headers());
        match identified {
            // The newer keys may have it, whatever the route.
            Err(LoginError::UnknownKey) => identified,
            Err(_) if self.needs_no_login(request) => Ok(None),
            _ => identified,
        }
    }

    fn needs_no_login(&self, request: &Request) -> bool {
        let path = request.uri().path();
        let is_of_feeds = is_of_feeds(request);
        // A door with a login of its own may know a caller that this login refuses.
        is_of(path, &wakeline_jobs::http::PATHS)
            || (is_of_feeds && self.feeds_have_own_login)
            // What a route takes is no secret, and a browser asks it without a token.
            || (is_of_feeds && request.method() == http::Method::OPTIONS)
    }

    async fn enter_with_new_keys(
        &self,
        limited_address: Option<IpAddr>,
        request: Request,
        router: &Router,
    ) -> Response {
        // Before the fetch: a token that nobody knows must not cost more than one that is known.
        let _of_address = match request_shares(&self.under_way, limited_address, None) {
            Ok(shares) => shares,
            Err(problem) => return problem.into_response(),
        };
        let identified = match self.auth.renew_keys().await {
            Ok(()) => self.identify(&request),
            Err(error) => Err(error),
        };
        let identified = match identified {
            // Nobody is told that a token is wrong while that cannot be known. The feeds' providers
            // have key sets of their own.
            Err(LoginError::NoKeys) if is_of(request.uri().path(), &wakeline_jobs::http::PATHS) => {
                identified
            }
            Err(_) if self.needs_no_login(&request) => Ok(None),
            identified => identified,
        };
        match identified {
            Ok(identity) => {
                let of_subject = request_shares(&self.under_way, None, identity.as_ref());
                let _of_subject = match of_subject {
                    Ok(shares) => shares,
                    Err(problem) => return problem.into_response(),
                };
                let entering = self.enter(identity, limited_address, request, router);
                infallible(entering.await)
            }
            Err(error) => Problem::from(error).into_response(),
        }
    }

    /// The routing's own future and none around it, because it is kept while a request is held.
    fn enter(
        &self,
        identity: Option<Identity>,
        limited_address: Option<IpAddr>,
        mut request: Request,
        router: &Router,
    ) -> Oneshot<Router, Request> {
        let extensions = request.extensions_mut();
        extensions.insert(Limits {
            limited_address,
            ..self.limits
        });
        if let Some(identity) = identity {
            extensions.insert(identity);
        }
        router.clone().oneshot(request)
    }
}

/// Its routes answer preflights themselves, as its clients expect.
fn is_of_feeds(request: &Request) -> bool {
    is_of(request.uri().path(), &[wakeline_feed::http::PREFIX])
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
