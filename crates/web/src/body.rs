//! Request bodies: limited in size, JSON with the field named when it does not fit.

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
};
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Limits of a request, put into its extensions by the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_body: usize,
}

/// A request's body within the limit.
#[derive(Clone, Debug)]
pub struct LimitedBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for LimitedBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let max = request
            .extensions()
            .get::<Limits>()
            .map_or(usize::MAX, |limits| limits.max_body);
        limited(request.into_body(), max).await.map(Self)
    }
}

/// Reads `body`, refusing it as soon as it is longer than `max` bytes.
pub async fn limited(body: Body, max: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            format!("body: longer than {max} bytes, the limit of this server (http.max_body)"),
        )),
        Err(error) => Err(Problem::invalid("body", format!("it broke off ({error})"))),
    }
}

/// `bytes` as JSON. A refusal names the path of the field, as `items[3].queue`.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return Err(Problem::invalid("body", "empty; JSON is expected"));
    }
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut source).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let field = if path == "." || inner.is_syntax() || inner.is_eof() {
            "body"
        } else {
            &path
        };
        Problem::invalid(field, inner.to_string())
    })?;
    source
        .end()
        .map_err(|error| Problem::invalid("body", error.to_string()))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Push {
        #[allow(dead_code, reason = "only the reading is tested")]
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        #[allow(dead_code, reason = "only the reading is tested")]
        queue: String,
    }

    fn refusal(body: &[u8]) -> String {
        json::<Push>(body).unwrap_err().detail().to_owned()
    }

    #[test]
    fn a_refusal_names_the_field() {
        let bodies: [&[u8]; 6] = [
            b"",
            b"{",
            b"{}",
            br#"{"items":[{"queue":"a"},{"queue":5}]}"#,
            b"{\"items\":[{\"queue\":\"\xff\"}]}",
            br#"{"items":[]} x"#,
        ];
        let texts: Vec<_> = bodies.into_iter().map(refusal).collect();
        insta::assert_json_snapshot!(texts, @r#"
        [
          "body: empty; JSON is expected",
          "body: EOF while parsing an object at line 1 column 1",
          "body: missing field `items` at line 1 column 2",
          "items[1].queue: invalid type: integer `5`, expected a string at line 1 column 34",
          "body: invalid unicode code point at line 1 column 21",
          "body: trailing characters at line 1 column 14"
        ]
        "#);
    }
}
