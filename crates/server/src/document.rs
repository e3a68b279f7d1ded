//! The parts of `/openapi.json` that the routes do not describe.

use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, Response,
    ResponseBuilder,
    path::{Operation, PathItem},
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

use wakeline_jobs::http::OPEN_PATHS;

use crate::auth::Auth;

/// The name of the only scheme.
const BEARER: &str = "bearer";

/// The document before routes are added.
pub(crate) fn empty() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Wakeline")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A queue, job and live-update server that clients long-poll over HTTP.",
        ))
        .build();
    OpenApiBuilder::new().info(info).build()
}

/// Adds the scheme and the refusals to each route that needs a login.
pub(crate) fn with_security(mut document: OpenApi, auth: &Auth) -> OpenApi {
    if auth.is_off() {
        return document;
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some(
            "A token signed with a key of auth.jwt, whose role says what it may do, or one of \
             auth.tokens.",
        ))
        .build();
    let components = document.components.take().unwrap_or_default();
    let components = ComponentsBuilder::from(components)
        .security_scheme(BEARER, SecurityScheme::Http(scheme))
        .build();
    document.components = Some(components);
    for (path, item) in &mut document.paths.paths {
        let is_open = auth.is_open(path) || OPEN_PATHS.contains(&path.as_str());
        if !is_open {
            operations(item).for_each(secure);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
    ];
    all.into_iter().filter_map(Option::as_mut)
}

fn secure(operation: &mut Operation) {
    let no_scopes: [&str; 0] = [];
    operation.security = Some(vec![SecurityRequirement::new(BEARER, no_scopes)]);
    for (status, description) in [
        ("401", "No token, or one that this server does not accept"),
        ("403", "The role of the token does not allow this"),
    ] {
        let response = operation.responses.responses.entry(status.to_owned());
        response.or_insert_with(|| problem(description).into());
    }
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build()
}
