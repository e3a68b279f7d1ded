//! The refusals that many routes share, as `/openapi.json` tells of them.

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

/// A parameter is at fault.
pub(super) struct BadParameter;

impl IntoResponses for BadParameter {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("400", "Refused; the parameter is named")
    }
}

/// A field of the body is at fault.
pub(super) struct BadField;

impl IntoResponses for BadField {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("400", "Refused; the field is named")
    }
}

/// What the path names is not there.
pub(super) struct Missing;

impl IntoResponses for Missing {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("404", "There is none")
    }
}

/// The store is not there.
pub(super) struct Unreachable;

impl IntoResponses for Unreachable {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem("503", "The database cannot be reached")
    }
}
