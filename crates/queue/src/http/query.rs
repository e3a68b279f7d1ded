//! The parameters of a route. A query is declared once, which parses it and describes it in
//! `/openapi.json`.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;
use wakeline_web::{Params, Problem, json, path};

use crate::{name, service::Limits};

/// The year 3000, which is in every database's range.
pub(super) const FAR_US: i64 = 32_503_680_000_000_000;

/// The names in the path.
pub(super) struct PathNames<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathNames<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        path(Path::from_request_parts(parts, state).await).map(Self)
    }
}

/// A body as JSON; an empty one has the default of each field.
pub(super) fn optional_json<T: Default + DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    match body {
        [] => Ok(T::default()),
        body => json(body),
    }
}

/// Declares the query of a route. Each field has its name in the query, its type (all are optional)
/// and its reader, which is one of the functions below.
macro_rules! query {
    ($(#[$meta:meta])* struct $query:ident($limits:ident) {
        $($(#[$field_meta:meta])* $field:ident $name:tt: $type:ty = $reader:expr,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        pub(in crate::http) struct $query {
            $($(#[$field_meta])* #[param(rename = $name)] pub(in crate::http) $field: Option<$type>,)+
        }

        impl $query {
            pub(in crate::http) fn read(
                params: &wakeline_web::Params,
                $limits: &crate::service::Limits,
            ) -> Result<Self, wakeline_web::Problem> {
                let _ = $limits;
                Ok(Self { $($field: $reader(params, $name)?,)+ })
            }
        }
    };
}
pub(super) use query;

/// The name of a queue, partition, namespace, task or group.
pub(super) fn named(
    limits: &Limits,
) -> impl Fn(&Params, &str) -> Result<Option<String>, Problem> + use<> {
    let most = limits.max_name;
    move |params, field| {
        name::check_given(field, params.text(field), most)?;
        text(params, field)
    }
}

pub(super) fn text(params: &Params, field: &str) -> Result<Option<String>, Problem> {
    Ok(params.text(field).map(ToOwned::to_owned))
}

pub(super) fn flag(params: &Params, field: &str) -> Result<Option<bool>, Problem> {
    params.flag(field)
}

pub(super) fn number<N: FromStr + PartialOrd + Display>(
    range: RangeInclusive<N>,
) -> impl Fn(&Params, &str) -> Result<Option<N>, Problem> {
    move |params, field| params.number(field, &range)
}

/// A time, in microseconds since 1970.
pub(super) fn time(params: &Params, field: &str) -> Result<Option<i64>, Problem> {
    let text = params.text(field);
    text.map(|text| super::time(field, text).map(|at| at.clamp(0, FAR_US)))
        .transpose()
}

/// One of these words, which stand for these values.
pub(super) fn one_of<T: Copy, const N: usize>(
    words: [(&'static str, T); N],
) -> impl Fn(&Params, &str) -> Result<Option<T>, Problem> {
    move |params, field| {
        let Some(text) = params.text(field) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words = words.map(|(word, _)| word).join(", ");
                Err(Problem::invalid(field, format!("none of {words}")))
            }
        }
    }
}

query! {
    /// From when to when.
    struct TimesQuery(limits) {
        /// The start, such as `2026-01-31T12:00:00Z`.
        #[param(value_type = Option<String>)]
        from_us "from": i64 = time,
        /// The end; it is not within.
        #[param(value_type = Option<String>)]
        to_us "to": i64 = time,
    }
}
