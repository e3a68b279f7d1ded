//! `/v1/auth`: users, in the shapes of fastapi-users.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{FromRequestParts, Path, State, rejection::PathRejection},
    response::IntoResponse,
};
use http::{HeaderMap, HeaderName, StatusCode, header, request::Parts};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;
use wakeline_web::{ClientAddress, Identity};

use super::{
    fields::{form, request_body, secret_body},
    small_body::SmallBody,
};
use crate::{
    caller::Caller,
    error::Error,
    user::User,
    users::{Credentials, UserChanges, Users, refreshing},
};

pub fn router(users: Arc<Users>) -> OpenApiRouter {
    let routes = OpenApiRouter::new()
        .routes(routes!(guest))
        .routes(routes!(register))
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(me, change_me))
        .routes(routes!(user, change_user, delete_user))
        .with_state(users.clone());
    refreshing(routes, users)
}

#[derive(Debug, Serialize, ToSchema)]
struct TokenAnswer {
    access_token: String,
    #[schema(example = "bearer")]
    token_type: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
struct GuestAnswer {
    access_token: String,
    #[schema(example = "bearer")]
    token_type: &'static str,
    #[schema(example = "5f0c1a9e@guest.user")]
    email: String,
}

/// FastAPI's form of a refusal: a text, or for 422 a list of fields.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Detail)]
struct DetailDocument {
    #[schema(example = "Unauthorized")]
    detail: String,
}

request_body! {
    struct RegisterBody {
        email: String,
        /// 8 characters to 1,024 bytes.
        password: String,
    }
}

#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "only described; a form is read by its names")]
struct LoginForm {
    /// The email.
    username: String,
    password: String,
}

request_body! {
    struct ChangeBody {
        email: Option<String>,
        /// A new one ends all tokens of the user.
        password: Option<String>,
        /// Only a superuser changes this and the next fields, and not by `/me`.
        is_active: Option<bool>,
        is_superuser: Option<bool>,
        is_verified: Option<bool>,
    }
}

const BEARER: &str = "bearer";
/// No cache may keep a token.
const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// A caller who is a superuser.
struct Superuser;

impl FromRequestParts<Arc<Users>> for Superuser {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, users: &Arc<Users>) -> Result<Self, Error> {
        let caller = Caller::from_request_parts(parts, users).await?;
        if caller.is_superuser {
            return Ok(Self);
        }
        Err(Error::Detail(StatusCode::FORBIDDEN, "Forbidden"))
    }
}

/// Creates a guest: a user without a name or a password.
#[utoipa::path(
    post, path = "/v1/auth/guest", tag = "jobs",
    responses(
        (status = 200, body = GuestAnswer),
        (status = 403, description = "Guests are not allowed (`jobs.guests`)"),
    )
)]
async fn guest(State(users): State<Arc<Users>>) -> Result<impl IntoResponse, Error> {
    let (user, access_token) = users.guest().await?;
    let answer = GuestAnswer {
        access_token,
        token_type: BEARER,
        email: user.email,
    };
    Ok((NO_STORE, Json(answer)))
}

/// Creates a user with a password.
#[utoipa::path(
    post, path = "/v1/auth/register", tag = "jobs",
    request_body = RegisterBody,
    responses(
        (status = 201, body = User),
        (status = 400, description = "`REGISTER_USER_ALREADY_EXISTS`", body = DetailDocument),
        (status = 403, description = "Only a superuser registers users here (`jobs.registration`)"),
        (status = 413, description = "The body is longer than 16 KiB"),
        (status = 422, description = "No email address, or a password too short or too long"),
        (status = 503, description = "Too many passwords are being checked; try again later"),
    )
)]
async fn register(
    State(users): State<Arc<Users>>,
    identity: Option<Extension<Identity>>,
    headers: HeaderMap,
    SmallBody(body): SmallBody,
) -> Result<(StatusCode, Json<User>), Error> {
    users.may_register(&headers, gate(&identity)).await?;
    let RegisterBody { email, password } = secret_body(&body)?;
    let wanted = Credentials { email, password };
    Ok((StatusCode::CREATED, Json(users.register(wanted).await?)))
}

/// A token for an email and its password.
#[utoipa::path(
    post, path = "/v1/auth/jwt/login", tag = "jobs",
    request_body(content = LoginForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = TokenAnswer),
        (status = 400, description = "`LOGIN_BAD_CREDENTIALS`", body = DetailDocument),
        (status = 413, description = "The body is longer than 16 KiB"),
        (status = 422, description = "A field is missing"),
        (status = 429, description = "Too many logins of this account failed from this address; try again after `Retry-After`"),
        (status = 503, description = "Too many passwords are being checked; try again later"),
    )
)]
async fn login(
    State(users): State<Arc<Users>>,
    address: Option<Extension<ClientAddress>>,
    SmallBody(body): SmallBody,
) -> Result<impl IntoResponse, Error> {
    let [email, password] = form(&body, ["username", "password"])?;
    let address = address.map(|Extension(ClientAddress(address))| address);
    let access_token = users
        .login(Credentials { email, password }, address)
        .await?;
    let answer = TokenAnswer {
        access_token,
        token_type: BEARER,
    };
    Ok((NO_STORE, Json(answer)))
}

/// Does nothing but check the token: it stays valid until it expires, so the client has to forget
/// it.
#[utoipa::path(
    post, path = "/v1/auth/jwt/logout", tag = "jobs",
    responses((status = 204), (status = 401, body = DetailDocument))
)]
async fn logout(
    State(users): State<Arc<Users>>,
    identity: Option<Extension<Identity>>,
    headers: HeaderMap,
) -> Result<StatusCode, Error> {
    // Not by `Caller`: a client that logs out gets no refreshed token.
    users.identify(&headers, gate(&identity)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The caller as a user.
#[utoipa::path(
    get, path = "/v1/auth/users/me", tag = "jobs",
    responses((status = 200, body = User), (status = 401, body = DetailDocument))
)]
async fn me(State(users): State<Arc<Users>>, caller: Caller) -> Result<Json<User>, Error> {
    Ok(Json(users.me(caller).await?))
}

/// Changes the caller's email or password.
#[utoipa::path(
    patch, path = "/v1/auth/users/me", tag = "jobs",
    request_body = ChangeBody,
    responses(
        (status = 200, body = User),
        (status = 400, description = "`UPDATE_USER_EMAIL_ALREADY_EXISTS`", body = DetailDocument),
        (status = 401, body = DetailDocument),
        (status = 403, description = "An external user, who has no password here"),
        (status = 413, description = "The body is longer than 16 KiB"),
        (status = 422, description = "A field does not fit"),
        (status = 503, description = "Too many passwords are being checked; try again later"),
    )
)]
async fn change_me(
    State(users): State<Arc<Users>>,
    caller: Caller,
    identity: Option<Extension<Identity>>,
    SmallBody(body): SmallBody,
) -> Result<Json<User>, Error> {
    // A password here would outlive what the issuer says.
    if identity.is_some() {
        return Err(Error::forbidden(
            "You are logged in by the server itself (auth.tokens, auth.jwt); there is nothing to change here",
        ));
    }
    let changes = UserChanges {
        is_active: None,
        is_superuser: None,
        is_verified: None,
        ..changes(&body)?
    };
    Ok(Json(users.change(caller.id, changes).await?))
}

/// A user. For superusers.
#[utoipa::path(
    get, path = "/v1/auth/users/{id}", tag = "jobs",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = User),
        (status = 401, body = DetailDocument),
        (status = 403, body = DetailDocument),
        (status = 404, body = DetailDocument),
    )
)]
async fn user(
    State(users): State<Arc<Users>>,
    _: Superuser,
    named: Result<Path<Uuid>, PathRejection>,
) -> Result<Json<User>, Error> {
    Ok(Json(users.user(known(named)?).await?))
}

/// Changes a user. For superusers.
#[utoipa::path(
    patch, path = "/v1/auth/users/{id}", tag = "jobs",
    params(("id" = Uuid, Path)),
    request_body = ChangeBody,
    responses(
        (status = 200, body = User),
        (status = 400, description = "`UPDATE_USER_EMAIL_ALREADY_EXISTS`", body = DetailDocument),
        (status = 401, body = DetailDocument),
        (status = 403, body = DetailDocument),
        (status = 404, body = DetailDocument),
        (status = 413, description = "The body is longer than 16 KiB"),
        (status = 422, description = "A field does not fit"),
        (status = 503, description = "Too many passwords are being checked; try again later"),
    )
)]
async fn change_user(
    State(users): State<Arc<Users>>,
    _: Superuser,
    named: Result<Path<Uuid>, PathRejection>,
    SmallBody(body): SmallBody,
) -> Result<Json<User>, Error> {
    let id = known(named)?;
    Ok(Json(users.change(id, changes(&body)?).await?))
}

/// Deletes a user with its workers and providers. For superusers.
#[utoipa::path(
    delete, path = "/v1/auth/users/{id}", tag = "jobs",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204),
        (status = 401, body = DetailDocument),
        (status = 403, body = DetailDocument),
        (status = 404, body = DetailDocument),
        (status = 503, description = "It keeps getting workers; delete it again"),
    )
)]
async fn delete_user(
    State(users): State<Arc<Users>>,
    _: Superuser,
    named: Result<Path<Uuid>, PathRejection>,
) -> Result<StatusCode, Error> {
    users.delete(known(named)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The identity that the server's own login has found.
fn gate(identity: &Option<Extension<Identity>>) -> Option<&Identity> {
    identity.as_ref().map(|Extension(identity)| identity)
}

/// A text that is not an id is not a user.
fn known(named: Result<Path<Uuid>, PathRejection>) -> Result<Uuid, Error> {
    let unknown = Error::Detail(StatusCode::NOT_FOUND, "Not Found");
    named.map(|Path(id)| id).map_err(|_| unknown)
}

fn changes(body: &[u8]) -> Result<UserChanges, Error> {
    let body: ChangeBody = secret_body(body)?;
    Ok(UserChanges {
        email: body.email,
        password: body.password,
        is_active: body.is_active,
        is_superuser: body.is_superuser,
        is_verified: body.is_verified,
    })
}
