//! Refreshes tokens: `X-Refreshed-Token` of any answer, so that a client that works for longer than
//! a token lasts can go on.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{extract::Request, response::Response, routing::Route};
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, header};
use tower::{Layer, Service};
use utoipa_axum::router::OpenApiRouter;

use super::{Users, bearer, token, token::Claims};

pub const REFRESHED_TOKEN: HeaderName = HeaderName::from_static("x-refreshed-token");

/// On all routes of `router`, a request whose token is past half of its time is answered with
/// another token, if it was accepted there.
#[must_use]
pub fn refreshing<S: Clone + Send + Sync + 'static>(
    router: OpenApiRouter<S>,
    users: Arc<Users>,
) -> OpenApiRouter<S> {
    router.route_layer(RefreshLayer { users })
}

/// Put into a request whose token is due; set when the token's user was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenAccepted(Arc<AtomicBool>);

impl TokenAccepted {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A layer of its own and no `from_fn`: its state is kept for as long as a request is held.
#[derive(Clone, Debug)]
struct RefreshLayer {
    users: Arc<Users>,
}

impl Layer<Route> for RefreshLayer {
    type Service = RefreshService;

    fn layer(&self, route: Route) -> RefreshService {
        RefreshService {
            route,
            users: self.users.clone(),
        }
    }
}

#[derive(Clone, Debug)]
struct RefreshService {
    route: Route,
    users: Arc<Users>,
}

type Answer = Result<Response, Infallible>;

impl Service<Request> for RefreshService {
    type Response = Response;
    type Error = Infallible;
    /// Most requests are only passed on, and keep nothing of this.
    type Future =
        Either<<Route as Service<Request>>::Future, Pin<Box<dyn Future<Output = Answer> + Send>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let Some(claims) = self.claims(&request) else {
            return Either::Left(self.route.call(request));
        };
        // For the extractors: a signature is not checked twice.
        request.extensions_mut().insert(claims);
        if !claims.is_due(self.users.settings.token_lifetime, token::now()) {
            return Either::Left(self.route.call(request));
        }
        let accepted = TokenAccepted::default();
        request.extensions_mut().insert(accepted.clone());
        let answer = self.route.call(request);
        let users = self.users.clone();
        Either::Right(Box::pin(async move {
            let mut response = answer.await?;
            if accepted.is_set() {
                let token = users.token(claims.user, claims.epoch);
                let value = HeaderValue::from_str(&token).expect("a token is plain text");
                response.headers_mut().insert(REFRESHED_TOKEN, value);
            }
            Ok(response)
        }))
    }
}

impl RefreshService {
    fn claims(&self, request: &Request) -> Option<Claims> {
        let given = request.headers().get(header::AUTHORIZATION)?;
        self.users.claims(bearer(given)?)
    }
}
