//! The refusals that many routes share, for `/openapi.json`.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses,
    openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder},
};

fn problem(status: &str, description: &str) -> BTreeMap<String, RefOr<Response>> {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build();
    BTreeMap::from([(status.to_owned(), response.into())])
}

/// A bad parameter.
pub(super) struct BadParameter;

impl IntoResponses for BadParameter {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("400", "Refused; the parameter is named")
    }
}

/// A bad field of the body.
pub(super) struct BadField;

impl IntoResponses for BadField {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("400", "Refused; the field is named")
    }
}

/// The path names something that is not there.
pub(super) struct NotFound;

impl IntoResponses for NotFound {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("404", "There is no such thing")
    }
}

/// The database cannot be reached.
pub(super) struct StoreUnreachable;

impl IntoResponses for StoreUnreachable {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("503", "The database cannot be reached")
    }
}
