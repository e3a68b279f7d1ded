//! Query parameters that a route does not have are refused.

use std::{collections::HashMap, sync::Arc};

use axum::extract::{MatchedPath, Request};
use http::Method;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, ParameterIn},
};
use wakeline_web::{
    Params, Problem, RequestCheck,
    unknown::{UnknownName, is_open, refusal},
};

/// The query parameters of each route, out of the document that describes them.
#[derive(Clone, Debug)]
pub(crate) struct KnownParameters(Arc<HashMap<String, Vec<MethodParameters>>>);

type MethodParameters = (Method, Vec<String>);

impl KnownParameters {
    pub(crate) fn of(document: &OpenApi) -> Self {
        let routes = document.paths.paths.iter().map(|(path, item)| {
            let methods = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            let methods = methods
                .into_iter()
                .filter_map(|(method, operation)| Some((method, parameters(operation.as_ref()?))));
            (path.clone(), methods.collect())
        });
        Self(Arc::new(routes.collect()))
    }
}

impl RequestCheck for KnownParameters {
    /// A route that is not described is not checked.
    fn check(&self, request: &Request) -> Result<(), Problem> {
        let Some(query) = request.uri().query().filter(|query| !query.is_empty()) else {
            return Ok(());
        };
        let Some(path) = request.extensions().get::<MatchedPath>() else {
            return Ok(());
        };
        let path = path.as_str();
        let methods = self.0.get(path).into_iter().flatten();
        let Some((_, known)) = methods
            .into_iter()
            .find(|(method, _)| method == request.method())
        else {
            return Ok(());
        };
        // It may be no text that is known here.
        if is_open(path) {
            return Ok(());
        }
        for name in Params::parse(query)?.names() {
            if !known.iter().any(|known| known == name)
                && let Some(unknown) = refusal(path, name, known)
            {
                return Err(refused(&unknown));
            }
        }
        Ok(())
    }
}

fn refused(unknown: &UnknownName) -> Problem {
    let text = unknown.to_string().replace("field", "parameter");
    Problem::invalid(&unknown.name, text)
}

fn parameters(operation: &Operation) -> Vec<String> {
    let parameters = operation.parameters.iter().flatten();
    let parameters = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    let of_query = parameters.filter(|one| one.parameter_in == ParameterIn::Query);
    of_query.map(|one| one.name.clone()).collect()
}
