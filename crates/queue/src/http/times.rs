//! The parameters of routes that tell of a time, as `/openapi.json` tells of them.

use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
    },
};

fn text(name: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// From when to when.
pub(super) struct Times;

impl IntoParams for Times {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        ["from", "to"].map(text).to_vec()
    }
}

/// From when to when, and of which queue.
pub(super) struct TimesOfQueue;

impl IntoParams for TimesOfQueue {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        ["from", "to", "queue"].map(text).to_vec()
    }
}
