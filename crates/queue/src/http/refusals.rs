//! The refusals that many routes share, for `/openapi.json`.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses,
    openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder},
};

fn problem(description: &str) -> RefOr<Response> {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description(description);
    let response = response.content("application/problem+json", content);
    response.build().into()
}

macro_rules! refusals {
    ($($(#[$meta:meta])* $name:ident: $($status:literal $description:literal),+;)+) => {$(
        $(#[$meta])*
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                BTreeMap::from([$(($status.to_owned(), problem($description))),+])
            }
        }
    )+};
}

refusals! {
    StoreUnreachable: "503" "The database cannot be reached";
    /// The path names something that is not there, or the database cannot be reached.
    NotFound: "404" "There is no such thing", "503" "The database cannot be reached";
    /// A bad parameter, or the database cannot be reached.
    BadParameter: "400" "Refused; the parameter is named", "503" "The database cannot be reached";
    /// A bad field of the body, or the database cannot be reached.
    BadField: "400" "Refused; the field is named", "503" "The database cannot be reached";
}
