//! The caller's identity, and the rights of its role.
//!
//! The server identifies the caller and puts an [`Identity`] into the request; a door says which
//! right each of its routes [`require`]s. Neither knows the other.

use std::{convert::Infallible, net::IpAddr};

use axum::{
    extract::{FromRequestParts, Request},
    http::request::Parts,
};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    checked_route::{RequestCheck, RouteCheck},
    problem::Problem,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Admin,
    ReadWrite,
    ReadOnly,
    /// For producers, which must not read what others produce.
    WriteOnly,
}

/// What a route lets its caller do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// List and view; it changes nothing.
    Read,
    /// Push; it shows nothing that is stored.
    Write,
    /// Pop and acknowledge.
    Consume,
    /// Delete what belongs to others, or change how the server runs.
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [
        Self::Admin,
        Self::ReadWrite,
        Self::ReadOnly,
        Self::WriteOnly,
    ];

    #[must_use]
    pub const fn allows(self, right: Right) -> bool {
        match self {
            Self::Admin => true,
            Self::ReadWrite => !matches!(right, Right::Admin),
            Self::ReadOnly => matches!(right, Right::Read),
            Self::WriteOnly => matches!(right, Right::Write),
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::WriteOnly => "write-only",
        }
    }
}

impl Right {
    const fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Consume => "consume",
            Self::Admin => "administer",
        }
    }
}

/// Where the caller is, put into each request by the server: the other end of the connection, or what
/// a trusted proxy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The `sub` of a signed token; stored with each message that the caller pushes.
    pub subject: Option<String>,
    pub role: Role,
}

impl Identity {
    /// Every caller, where no login is needed.
    pub const ANONYMOUS: Self = Self {
        subject: None,
        role: Role::Admin,
    };

    fn check(&self, right: Right) -> Result<(), Problem> {
        if self.role.allows(right) {
            return Ok(());
        }
        let allowed = Role::ALL.into_iter().filter(|role| role.allows(right));
        let allowed: Vec<_> = allowed.map(Role::name).collect();
        Err(forbidden(format!(
            "the role {} may not {} here; it takes {}",
            self.role.name(),
            right.verb(),
            allowed.join(" or ")
        )))
    }
}

/// 403: the caller is identified, but may not do this.
#[must_use]
pub fn forbidden(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).with_error("Insufficient permissions")
}

impl<S: Send + Sync> FromRequestParts<S> for Identity {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let identity = parts.extensions.get().cloned();
        Ok(identity.unwrap_or(Self::ANONYMOUS))
    }
}

/// All routes of `router` need this right; a caller without it gets 403.
///
/// Panics if `router` has no routes.
#[must_use]
pub fn require<S: Clone + Send + Sync + 'static>(
    router: OpenApiRouter<S>,
    right: Right,
) -> OpenApiRouter<S> {
    router.route_layer(RouteCheck(Guard { right: Some(right) }))
}

/// The same where a `GET` reads, and every other method consumes.
///
/// Panics if `router` has no routes.
#[must_use]
pub fn require_by_method<S: Clone + Send + Sync + 'static>(
    router: OpenApiRouter<S>,
) -> OpenApiRouter<S> {
    router.route_layer(RouteCheck(Guard { right: None }))
}

/// Lets callers in whose role has the right.
#[derive(Clone, Copy, Debug)]
struct Guard {
    /// `None`: by the method.
    right: Option<Right>,
}

impl RequestCheck for Guard {
    fn check(&self, request: &Request) -> Result<(), Problem> {
        let identity = request.extensions().get();
        let right = self.right.unwrap_or(if request.method().is_safe() {
            Right::Read
        } else {
            Right::Consume
        });
        identity.unwrap_or(&Identity::ANONYMOUS).check(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use axum::{body::Body, routing::get};
    use tower::ServiceExt;

    #[test]
    fn the_rights_of_each_role() {
        let rights = [Right::Read, Right::Write, Right::Consume, Right::Admin];
        let may = |role: Role| {
            let allowed = rights.into_iter().filter(|right| role.allows(*right));
            let verbs: Vec<_> = allowed.map(Right::verb).collect();
            format!("{}: {}", role.name(), verbs.join(", "))
        };
        insta::assert_snapshot!(Role::ALL.map(may).join("\n"), @"
        admin: read, write, consume, administer
        read-write: read, write, consume
        read-only: read
        write-only: write
        ");
    }

    async fn ask(path: &str, identity: Option<Identity>) -> (StatusCode, String) {
        let subject =
            |identity: Identity| async move { identity.subject.unwrap_or("nobody".to_owned()) };
        let reading = OpenApiRouter::<()>::new().route("/thing", get(subject));
        let deleting = OpenApiRouter::<()>::new().route("/thing", axum::routing::delete(subject));
        let (router, _) = require(reading, Right::Read)
            .merge(require(deleting, Right::Admin))
            .split_for_parts();
        // As the server does it; axum's own fallback would be guarded too.
        let router =
            router.method_not_allowed_fallback(|| async { StatusCode::METHOD_NOT_ALLOWED });
        let (method, path) = path.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        if let Some(identity) = identity {
            request.extensions_mut().unwrap().insert(identity);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_route_refuses_a_caller_without_its_right() {
        let reader = Identity {
            subject: Some("reader".to_owned()),
            role: Role::ReadOnly,
        };
        let (status, body) = ask("GET /thing", Some(reader.clone())).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "reader"));
        let (status, body) = ask("DELETE /thing", Some(reader.clone())).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        insta::assert_snapshot!(body, @r#"{"type":"urn:wakeline:forbidden","title":"Forbidden","status":403,"detail":"the role read-only may not administer here; it takes admin","error":"Insufficient permissions","code":"forbidden"}"#);
        // A method that does not exist is not forbidden.
        let (status, _) = ask("PUT /thing", Some(reader)).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    }

    #[tokio::test]
    async fn without_an_identity_every_caller_may() {
        let (status, body) = ask("DELETE /thing", None).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "nobody"));
    }
}
