//! Results of a specification.

use axum::{
    extract::{Request, State},
    response::Response,
};
use futures_util::{Stream, TryStreamExt, stream::try_unfold};

use super::{Door, accept, answer, csv, feeds::text};
use crate::{
    error::Error,
    login::Caller,
    reading::{Reading, Value},
};

const CSV: &str = "text/csv";
const LINES: &str = "application/x-ndjson";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// How results are written.
enum Layout {
    /// As many lines as it takes, for people.
    Indented,
    Compact,
    Lines,
    Columns(Vec<std::sync::Arc<str>>),
}

/// Reads the results of a specification.
///
/// They are sent as they are found. By `Accept`: indented JSON (default), compact JSON, a line of
/// JSON each, or comma-separated values.
#[utoipa::path(
    post, path = "/jinaga/read", tag = "feed",
    request_body(content = String, content_type = "text/plain", description = "Declarations and a specification"),
    responses(
        (status = 200, description = "The results", content((String = "text/plain"), (Object = "application/json"), (String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 400, description = "The text cannot be read", content_type = "text/plain", body = String),
        (status = 403, description = "No rule lets the caller have them", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn read(
    State(door): State<Door>,
    caller: Caller,
    request: Request,
) -> Result<Response, Error> {
    let accepted = accept::preferred(request.headers(), &[TEXT, CSV, LINES, JSON]);
    let text = text(&door, request).await?;
    let (specification, mut reading) = door.feeds.read(&caller, &text).await?;
    let (layout, kind) = match accepted {
        Some(CSV) => (
            Layout::Columns(csv::columns(&specification)?),
            "text/csv; charset=utf-8",
        ),
        Some(LINES) => (Layout::Lines, "application/x-ndjson"),
        Some(JSON) => (Layout::Compact, "application/json; charset=utf-8"),
        _ => (Layout::Indented, "text/plain; charset=utf-8"),
    };
    // The first results are read before the answer begins, so an error in them can still be its
    // status.
    let first = reading.next().await?;
    let begin = match &layout {
        Layout::Indented | Layout::Compact => "[".to_owned(),
        Layout::Lines => String::new(),
        Layout::Columns(columns) => csv::header(columns),
    };
    let end = match &layout {
        Layout::Indented if first.is_some() => "\n]",
        Layout::Indented | Layout::Compact => "]",
        Layout::Lines | Layout::Columns(_) => "",
    };
    Ok(answer::streamed(
        kind,
        begin,
        written(layout, first, reading),
        end,
    ))
}

fn written(
    layout: Layout,
    first: Option<Vec<Value>>,
    reading: Reading,
) -> impl Stream<Item = Result<String, Error>> + Send {
    let chunks = try_unfold(
        (first, reading, true),
        |(chunk, mut reading, is_first)| async move {
            let Some(values) = chunk else {
                return Ok(None);
            };
            let next = reading.next().await?;
            Ok(Some(((values, is_first), (next, reading, false))))
        },
    );
    chunks.map_ok(move |(values, is_first)| {
        let mut text = String::new();
        for (index, value) in values.iter().enumerate() {
            layout.write(&mut text, value, is_first && index == 0);
        }
        text
    })
}

impl Layout {
    fn write(&self, text: &mut String, value: &Value, is_first: bool) {
        let comma = if is_first { "" } else { "," };
        match self {
            Self::Indented => {
                text.push_str(comma);
                text.push_str("\n  ");
                indented(text, &serde_json::to_string(value).unwrap_or_default());
            }
            Self::Compact => {
                text.push_str(comma);
                text.push_str(&serde_json::to_string(value).unwrap_or_default());
            }
            Self::Lines => {
                text.push_str(&serde_json::to_string(value).unwrap_or_default());
                text.push('\n');
            }
            Self::Columns(columns) => csv::row(text, columns, value),
        }
    }
}

/// Lays out compact JSON, one level deep already: fields are kept as text and have no layout.
fn indented(text: &mut String, compact: &str) {
    let mut depth = 1;
    let mut is_string = false;
    let mut characters = compact.chars().peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = characters.next() {
        if is_string {
            text.push(c);
            match c {
                '\\' => text.extend(characters.next()),
                '"' => is_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '{' | '[' => {
                text.push(c);
                if characters
                    .peek()
                    .is_some_and(|next| matches!(next, '}' | ']'))
                {
                    text.extend(characters.next());
                } else {
                    depth += 1;
                    line(text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                is_string = c == '"';
                text.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_laid_out_as_javascript_does() {
        let mut text = String::new();
        indented(&mut text, r#"{"a":[],"b":{"c":"x:,{\"}"},"d":[1,{}]}"#);
        insta::assert_snapshot!(text, @r#"
        {
            "a": [],
            "b": {
              "c": "x:,{\"}"
            },
            "d": [
              1,
              {}
            ]
          }
        "#);
    }
}
