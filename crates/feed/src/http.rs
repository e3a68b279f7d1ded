//! The routes, in the replicator's shapes.

mod accept;
mod answer;
mod body;
mod csv;
mod facts;
mod feeds;
mod login;
mod options;
mod read;
mod stream;

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::request::Parts,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{Identity, Right, require};

use body::BodyChunks;

use crate::{
    error::Error,
    login::{Caller, Login},
    service::Feeds,
    store::Principal,
};

/// Where the routes are, as the replicator has them.
pub const PREFIX: &str = "/jinaga";

/// The provider of users whom the server's own login has identified.
const OWN_PROVIDER: &str = "wakeline";

/// What the routes need.
#[derive(Clone, Debug)]
pub struct Door {
    pub feeds: Arc<Feeds>,
    /// Providers of the door's own; without them the server's login decides.
    pub login: Option<Arc<Login>>,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_body: usize,
    pub max_graph: usize,
    pub body_timeout: Duration,
}

impl Door {
    fn body(&self, body: Body) -> Result<BodyChunks, Error> {
        let limits = &self.limits;
        BodyChunks::new(body, limits.max_body, "feeds.max_body", limits.body_timeout)
    }
}

/// All routes of this door.
pub fn router(door: Door) -> OpenApiRouter {
    let own_login = door.login.is_some();
    let reading = OpenApiRouter::new()
        .routes(routes!(login::login))
        .routes(routes!(facts::load))
        .routes(routes!(read::read))
        .routes(routes!(feeds::declare))
        .routes(routes!(feeds::follow));
    let writing = OpenApiRouter::new()
        .routes(routes!(facts::save))
        .routes(routes!(facts::write));
    let routes = if own_login {
        reading.merge(writing)
    } else {
        require(reading, Right::Read).merge(require(writing, Right::Write))
    };
    let mut routes = routes.route_layer(from_fn_with_state(door.clone(), identify));
    // Outside of the login: the methods of a route may be asked for without a token.
    for path in options::PATHS {
        let path = format!("{PREFIX}{path}");
        routes = routes.route(&path, axum::routing::options(options::options));
    }
    routes.with_state(door)
}

/// Finds the caller once, before the handler.
async fn identify(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let caller = match &door.login {
        Some(login) => match login.identify(request.headers()).await {
            Ok(caller) => caller,
            Err(refused) => return Error::from(refused).into_response(),
        },
        None => own(request.extensions().get::<Identity>()),
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
}

fn own(identity: Option<&Identity>) -> Caller {
    let subject = identity.and_then(|identity| identity.subject.clone());
    match subject {
        None => Caller::anonymous(),
        Some(id) => Caller {
            display_name: id.clone(),
            principal: Some(Principal {
                provider: OWN_PROVIDER.to_owned(),
                id,
            }),
        },
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let caller = parts.extensions.get().cloned();
        Ok(caller.unwrap_or_else(Self::anonymous))
    }
}
