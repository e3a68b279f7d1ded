//! What `/openapi.json` says besides what the routes say of themselves.

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

/// Without any routes yet.
pub(crate) fn begun() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Wakeline")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("One server for everything an application waits on."))
        .build();
    OpenApiBuilder::new().info(info).build()
}

/// With what has to be sent, and who is refused, where a login is asked for.
pub(crate) fn secured(mut document: OpenApi, auth: &Auth) -> OpenApi {
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
    let nothing_more: [&str; 0] = [];
    operation.security = Some(vec![SecurityRequirement::new(BEARER, nothing_more)]);
    for (status, description) in [
        ("401", "No token, or one that this server does not accept"),
        ("403", "The role of the token does not allow this"),
    ] {
        let refused = operation.responses.responses.entry(status.to_owned());
        refused.or_insert_with(|| problem(description).into());
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
