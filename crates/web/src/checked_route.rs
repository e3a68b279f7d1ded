//! A check before a route.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
    routing::Route,
};
use futures_util::future::Either;
use tower::{Layer, Service};

use crate::problem::Problem;

/// Refuses a request by its head.
pub trait RequestCheck: Clone {
    fn check(&self, request: &Request) -> Result<(), Problem>;
}

/// The layer that checks requests before they reach their routes. No `from_fn`, because its memory is
/// kept while a request is held.
#[derive(Clone, Copy, Debug)]
pub struct RouteCheck<C>(pub C);

impl<C: RequestCheck> Layer<Route> for RouteCheck<C> {
    type Service = CheckedRoute<C>;

    fn layer(&self, route: Route) -> CheckedRoute<C> {
        let check = self.0.clone();
        CheckedRoute { route, check }
    }
}

#[derive(Clone, Debug)]
pub struct CheckedRoute<C> {
    route: Route,
    check: C,
}

impl<C: RequestCheck> Service<Request> for CheckedRoute<C> {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, <Route as Service<Request>>::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.check.check(&request) {
            Ok(()) => Either::Right(self.route.call(request)),
            Err(problem) => Either::Left(ready(Ok(problem.into_response()))),
        }
    }
}
