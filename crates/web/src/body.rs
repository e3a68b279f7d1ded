//! Request bodies: limited in size; a refusal of JSON names the field.

use std::{error::Error, io, net::IpAddr, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRequest, Request},
};
use http::{Extensions, StatusCode, Version, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{body_memory::BodyMeter, depth, object::Object, problem::Problem};

/// How long the rest of a refused body is still read.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// Limits of a request, put into its extensions by the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_body: usize,
    /// How long a client may pause while it sends a body.
    pub body_timeout: Duration,
    /// The caller's address, unless it speaks for many callers and has no limits of its own.
    pub limited_address: Option<IpAddr>,
}

/// For a router that runs without the server, as in a door's own tests.
impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 10 << 20,
            body_timeout: Duration::from_secs(30),
            limited_address: None,
        }
    }
}

/// A request's body within the limit.
#[derive(Clone, Debug)]
pub struct LimitedBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for LimitedBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let limits: Limits = request.extensions().get().copied().unwrap_or_default();
        let must_be_read = request.version() < Version::HTTP_2;
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let (parts, mut body) = request.into_parts();
        // Before reading: a client that sent `Expect: 100-continue` then sends no body.
        if body.size_hint().lower() > limits.max_body as u64 {
            if must_be_read && !expects_continue {
                tokio::spawn(discard(body));
            }
            return Err(too_large(limits.max_body));
        }
        let read = limited(&mut body, limits, &parts.extensions).await;
        if must_be_read && read.as_ref().is_err_and(leaves_body) {
            tokio::spawn(discard(body));
        }
        read.map(Self)
    }
}

/// Reads `body`. Refuses it as soon as it is too long, or when the client pauses for too long.
async fn limited(
    body: &mut Body,
    limits: Limits,
    extensions: &Extensions,
) -> Result<Bytes, Problem> {
    let mut meter = BodyMeter::begin(extensions, body.size_hint(), limits.max_body).await?;
    let mut read = Vec::new();
    loop {
        let frame = timeout(limits.body_timeout, body.frame())
            .await
            .map_err(|_| too_slow(limits.body_timeout))?;
        let Some(frame) = frame else {
            return Ok(meter.end(read.into()));
        };
        let frame = frame.map_err(|error| broken_off(&error))?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if read.len() + data.len() > limits.max_body {
            return Err(too_large(limits.max_body));
        }
        if read.is_empty() && body.is_end_stream() {
            return Ok(meter.end(data));
        }
        meter.received(read.len() + data.len()).await?;
        read.extend_from_slice(&data);
    }
}

fn broken_off(error: &axum::Error) -> Problem {
    let cause = error.source().and_then(|error| error.downcast_ref());
    let is_slow = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    if cause.is_some_and(is_slow) {
        let text = format!("body: {error}; nothing was done");
        return Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", text);
    }
    Problem::invalid("body", format!("it broke off ({error})"))
}

/// Whether the client may still be sending the body that is refused.
fn leaves_body(refusal: &Problem) -> bool {
    matches!(
        refusal.status(),
        StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// Reads the rest of a refused body while its answer is sent. Most clients read the answer only after
/// they have sent everything: if the connection were closed, they would see a broken pipe and not
/// the reason.
async fn discard(mut body: Body) {
    let _ = timeout(DISCARD_TIME, async {
        while let Some(Ok(_)) = body.frame().await {}
    })
    .await;
}

fn too_large(max: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body-too-large",
        format!("body: longer than {max} bytes, the limit of this server (http.max_body)"),
    )
}

fn too_slow(time: Duration) -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "body-too-slow",
        format!(
            "body: the client paused for {} ms, the limit of this server (http.body_timeout); \
             nothing was done, try again",
            time.as_millis()
        ),
    )
}

/// `bytes` as a JSON object. A refusal names the path of the field, as `items[3].queue`, whether the
/// field is wrong or missing.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return Err(Problem::invalid("body", "empty; JSON is expected"));
    }
    depth::check(bytes)?;
    json_at("", bytes)
}

/// A part of a body, at this path in it, as a JSON object.
pub fn json_at<T: DeserializeOwned>(at: &str, bytes: &[u8]) -> Result<T, Problem> {
    let whole = if at.is_empty() { "body" } else { at };
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let Object(value) = serde_path_to_error::deserialize(&mut source).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let mut text = without_value(inner.to_string());
        if path != "." && (inner.is_syntax() || inner.is_eof()) {
            return Problem::invalid(whole, text);
        }
        let mut parts = vec![at.to_owned(), path];
        // Which field an object lacks or has too much is in the text only.
        let named = |start: &str| text.strip_prefix(start)?.split_once('`');
        if let Some((name, place)) = named("missing field `") {
            parts.push(name.to_owned());
            text = format!("missing{place}");
        } else if let Some((_, rest)) = text
            .strip_prefix("unknown field `")
            .and_then(|rest| rest.split_once("`: "))
        {
            // The path ends with its name.
            text = rest.to_owned();
        }
        parts.retain(|part| !part.is_empty() && part != ".");
        match parts.join(".") {
            field if field.is_empty() => Problem::invalid(whole, text),
            field => Problem::invalid(&field, text),
        }
    })?;
    source
        .end()
        .map_err(|error| Problem::invalid(whole, error.to_string()))?;
    Ok(value)
}

/// serde repeats a value that it does not expect, and the value may be a password or a payload.
/// ``invalid type: string "secret", expected a list`` → `invalid type: string, expected a list`
fn without_value(text: String) -> String {
    let beginnings = ["invalid type: ", "invalid value: ", "unknown variant "];
    let is_repeated = beginnings
        .iter()
        .any(|beginning| text.starts_with(beginning));
    // The last: the value may have the same words.
    match (text.find(['"', '`']), text.rfind(", expected ")) {
        (Some(value), Some(expected)) if is_repeated && value < expected => {
            format!("{}{}", text[..value].trim_end(), &text[expected..])
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Push {
        #[allow(dead_code, reason = "only the reading is tested")]
        items: Vec<Object<Item>>,
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
    fn a_refusal_does_not_repeat_a_value() {
        for body in [
            r#"{"items":"hidden"}"#,
            r#"{"items":"hidden, expected \"hidden\""}"#,
            r#"{"items":["hidden"]}"#,
            r#"{"items":[{"queue":["hidden"]}]}"#,
            r#"{"items":[{"queue":12345}]}"#,
            r#"{"items":[{"queue":1.2345}]}"#,
            r#""hidden""#,
        ] {
            let text = refusal(body.as_bytes());
            let is_shown = text.contains("hidden") || text.contains("2345");
            assert!(!is_shown && text.contains("invalid type: "), "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_field() {
        let bodies: [&[u8]; 9] = [
            b"",
            b"{",
            b"{}",
            br#"{"items":[{}]}"#,
            br#"{"items":[{"queue":"a"},{"queue":5}]}"#,
            b"{\"items\":[{\"queue\":\"\xff\"}]}",
            br#"{"items":[]} x"#,
            br#"{"items":[{"queu":"a"}]}"#,
            br#"{"items":[],"colour":5}"#,
        ];
        let texts: Vec<_> = bodies.into_iter().map(refusal).collect();
        insta::assert_json_snapshot!(texts, @r#"
        [
          "body: empty; JSON is expected",
          "body: EOF while parsing an object at line 1 column 1",
          "items: missing at line 1 column 2",
          "items[0].queue: missing at line 1 column 12",
          "items[1].queue: invalid type: integer, expected a string at line 1 column 34",
          "body: invalid unicode code point at line 1 column 21",
          "body: trailing characters at line 1 column 14",
          "items[0].queu: no such field; did you mean `queue`? at line 1 column 17",
          "colour: no such field at line 1 column 20"
        ]
        "#);
    }

    #[test]
    fn an_unknown_field_may_have_a_backquote_in_its_name() {
        assert_eq!(
            refusal(br#"{"items":[],"a`b":5}"#),
            "a`b: no such field at line 1 column 17"
        );
    }
}
