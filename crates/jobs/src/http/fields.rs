//! The bodies of requests, read field by field and refused in FastAPI's words, all mistakes
//! together.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde_json::{Map, Value, json};
use uuid::Uuid;
use wakeline_web::Params;

use crate::{
    error::{Error, InvalidField},
    page::Page,
    task::Status,
};

const WHERE: &str = "body";

/// A body that is declared once: the struct describes it in the OpenAPI document and reads it.
macro_rules! request_body {
    ($( #[$meta:meta] )* $visibility:vis struct $name:ident {
        $( $( #[$field_meta:meta] )* $field:ident: $kind:ty ),* $(,)?
    }) => {
        #[derive(Debug, utoipa::ToSchema)]
        $( #[$meta] )*
        $visibility struct $name {
            $( $( #[$field_meta] )* $field: $kind ),*
        }

        impl $crate::http::fields::RequestBody for $name {
            fn read(fields: &mut $crate::http::fields::BodyFields) -> Self {
                Self {
                    $( $field: $crate::http::fields::BodyField::read(fields, stringify!($field)) ),*
                }
            }
        }
    };
}
pub(super) use request_body;

pub(super) trait RequestBody: Sized {
    fn read(fields: &mut BodyFields) -> Self;
}

/// The type of a field: `Option` where it may be missing or null.
pub(super) trait BodyField: Sized {
    fn read(fields: &mut BodyFields, name: &str) -> Self;
}

/// A JSON object; empty if it is missing. The real client sends `schema_` for `schema`.
#[derive(Debug)]
pub(super) struct JsonObject(pub(super) Value);

macro_rules! body_fields {
    ($( $kind:ty: $fields:ident, $name:ident => $read:expr; )+) => { $(
        impl BodyField for $kind {
            fn read($fields: &mut BodyFields, $name: &str) -> Self {
                $read
            }
        }
    )+ };
}

body_fields! {
    String: fields, name => fields.required(name);
    Option<String>: fields, name => fields.text(name);
    Option<bool>: fields, name => fields.flag(name);
    Option<i64>: fields, name => fields.number(name);
    Uuid: fields, name => fields.required_uuid(name);
    Option<Uuid>: fields, name => fields.uuid(name);
    Option<Status>: fields, name => fields.status(name);
    JsonObject: fields, name => JsonObject(match name {
        "schema" => fields.object(&[name, "schema_"]),
        _ => fields.object(&[name]),
    });
}

/// A JSON object.
#[derive(Debug)]
pub(super) struct BodyFields {
    given: Map<String, Value>,
    invalid: Vec<InvalidField>,
    /// The largest whole number.
    most: i64,
    /// Refusals do not repeat what was sent.
    is_secret: bool,
}

/// A body without secrets, whose whole numbers are at most `most`.
pub(super) fn body_within<T: RequestBody>(body: &[u8], most: i64) -> Result<T, Error> {
    BodyFields::parse(body, most, false)?.end()
}

pub(super) fn body<T: RequestBody>(body: &[u8]) -> Result<T, Error> {
    body_within(body, i64::MAX)
}

/// A body that may contain a password, a payload or a result.
pub(super) fn secret_body<T: RequestBody>(body: &[u8]) -> Result<T, Error> {
    BodyFields::parse(body, i64::MAX, true)?.end()
}

impl BodyFields {
    fn parse(body: &[u8], most: i64, is_secret: bool) -> Result<Self, Error> {
        if body.is_empty() {
            return Err(missing(&[WHERE], Value::Null).into());
        }
        let given: Value = serde_json::from_slice(body).map_err(|error| InvalidField {
            at: vec![WHERE.into(), error.column().into()],
            context: Some(json!({ "error": error.to_string() })),
            ..InvalidField::new("json_invalid", &[], "JSON decode error", json!({}))
        })?;
        let Value::Object(given) = given else {
            let message = "Input should be a valid dictionary or object to extract fields from";
            let input = if is_secret { Value::Null } else { given };
            return Err(
                InvalidField::new("model_attributes_type", &[WHERE], message, input).into(),
            );
        };
        Ok(Self {
            given,
            invalid: Vec::new(),
            most,
            is_secret,
        })
    }

    fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            // No text of PostgreSQL's has one.
            Value::String(text) if text.contains('\0') => {
                self.refuse("value_error", name, "Input should have no NUL", text.into())
            }
            Value::String(text) => Some(text),
            other => self.refuse("string_type", name, "Input should be a valid string", other),
        }
    }

    fn required(&mut self, name: &str) -> String {
        if !self.given.contains_key(name) {
            self.refuse_missing(name);
            return String::new();
        }
        if self.given[name].is_null() {
            self.refuse::<()>(
                "string_type",
                name,
                "Input should be a valid string",
                Value::Null,
            );
        }
        self.text(name).unwrap_or_default()
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            other => self.refuse("bool_type", name, "Input should be a valid boolean", other),
        }
    }

    fn number(&mut self, name: &str) -> Option<i64> {
        let given = self.take(name)?;
        match given.as_i64() {
            Some(number) if (0..=self.most).contains(&number) => Some(number),
            _ => {
                let message = format!("Input should be a whole number from 0 to {}", self.most);
                self.refuse("int_type", name, &message, given)
            }
        }
    }

    fn uuid(&mut self, name: &str) -> Option<Uuid> {
        match self.take(name)? {
            Value::String(text) => match parse_uuid(&[WHERE, name], &text) {
                Ok(uuid) => Some(uuid),
                Err(mut invalid) => {
                    if self.is_secret {
                        invalid.input = Value::Null;
                    }
                    self.invalid.push(invalid);
                    None
                }
            },
            other => {
                let message = "UUID input should be a string, bytes or UUID object";
                self.refuse("uuid_type", name, message, other)
            }
        }
    }

    fn required_uuid(&mut self, name: &str) -> Uuid {
        if self.given.get(name).is_none_or(Value::is_null) {
            self.refuse_missing(name);
        }
        self.uuid(name).unwrap_or_default()
    }

    fn refuse_missing(&mut self, name: &str) {
        let given = if self.is_secret {
            Value::Null
        } else {
            Value::Object(self.given.clone())
        };
        self.invalid.push(missing(&[WHERE, name], given));
    }

    /// An object; empty if there is none. Of several names the first that is there.
    fn object(&mut self, names: &[&str]) -> Value {
        for name in names {
            match self.take(name) {
                None => {}
                Some(object @ Value::Object(_)) => return object,
                Some(other) => {
                    let message = "Input should be a valid dictionary";
                    self.refuse::<()>("dict_type", name, message, other);
                }
            }
        }
        json!({})
    }

    fn status(&mut self, name: &str) -> Option<Status> {
        if !self.given.contains_key(name) {
            self.refuse_missing(name);
            return None;
        }
        let given = self.given.remove(name).unwrap_or_default();
        match given.as_str().and_then(Status::parse) {
            Some(status) => Some(status),
            None => {
                let shown = if self.is_secret { Value::Null } else { given };
                self.invalid.push(no_status(&[WHERE, name], shown));
                None
            }
        }
    }

    fn end<T: RequestBody>(mut self) -> Result<T, Error> {
        let body = T::read(&mut self);
        if self.invalid.is_empty() {
            return Ok(body);
        }
        Err(Error::InvalidFields(self.invalid))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name).filter(|value| !value.is_null())
    }

    fn refuse<T>(
        &mut self,
        kind: &'static str,
        name: &str,
        message: &str,
        input: Value,
    ) -> Option<T> {
        let input = if self.is_secret { Value::Null } else { input };
        self.invalid
            .push(InvalidField::new(kind, &[WHERE, name], message, input));
        None
    }
}

/// The fields of a form, all of them required.
pub(super) fn form<const N: usize>(body: &[u8], names: [&str; N]) -> Result<[String; N], Error> {
    let unreadable =
        |message: &str| InvalidField::new("string_unicode", &[WHERE], message, Value::Null);
    let text = str::from_utf8(body).map_err(|_| unreadable("Input should be a form in UTF-8"))?;
    let form = Params::parse(text).map_err(|problem| unreadable(problem.detail()))?;
    let absent = names.iter().filter(|name| form.text(name).is_none());
    let absent: Vec<_> = absent
        .map(|name| missing(&[WHERE, name], Value::Null))
        .collect();
    if !absent.is_empty() {
        return Err(Error::InvalidFields(absent));
    }
    Ok(names.map(|name| form.text(name).unwrap_or_default().to_owned()))
}

fn missing(at: &[&str], input: Value) -> InvalidField {
    InvalidField::new("missing", at, "Field required", input)
}

#[allow(
    clippy::result_large_err,
    reason = "a refusal is rare and ends the request"
)]
fn parse_uuid(at: &[&str], text: &str) -> Result<Uuid, InvalidField> {
    text.parse().map_err(|error: uuid::Error| {
        let message = format!("Input should be a valid UUID, {error}");
        InvalidField::new("uuid_parsing", at, message, text)
            .with_context(json!({ "error": error.to_string() }))
    })
}

/// An id in the path, under this name.
pub(super) fn id(name: &str, text: &str) -> Result<Uuid, Error> {
    Ok(parse_uuid(&["path", name], text)?)
}

fn no_status(at: &[&str], input: Value) -> InvalidField {
    let names: Vec<String> = Status::ALL.map(|status| format!("'{status}'")).to_vec();
    let (last, others) = names.split_last().expect("there are states");
    let expected = format!("{} or {last}", others.join(", "));
    let message = format!("Input should be {expected}");
    InvalidField::new("enum", at, message, input).with_context(json!({ "expected": expected }))
}

/// `limit` and `offset`, and for tasks `status`.
#[derive(Debug)]
pub(super) struct ListQuery {
    pub(super) page: Page,
    pub(super) status: Option<Status>,
}

impl<S: Send + Sync> FromRequestParts<S> for ListQuery {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl ListQuery {
    fn read(query: &str) -> Result<Self, Error> {
        let params = Params::parse(query)?;
        let mut invalid = Vec::new();
        let mut number = |name: &str, default: i64, most: i64| -> i64 {
            let Some(text) = params.text(name) else {
                return default;
            };
            let at = ["query", name];
            match text.parse::<i64>() {
                Ok(number) if number < 0 => {
                    let message = "Input should be greater than or equal to 0";
                    let context = json!({ "ge": 0 });
                    invalid.push(
                        InvalidField::new("greater_than_equal", &at, message, text)
                            .with_context(context),
                    );
                }
                Ok(number) if number > most => {
                    let message = format!("Input should be less than or equal to {most}");
                    let context = json!({ "le": most });
                    invalid.push(
                        InvalidField::new("less_than_equal", &at, message, text)
                            .with_context(context),
                    );
                }
                Ok(number) => return number,
                Err(_) => {
                    let message =
                        "Input should be a valid integer, unable to parse string as an integer";
                    invalid.push(InvalidField::new("int_parsing", &at, message, text));
                }
            }
            default
        };
        let page = Page {
            limit: number("limit", Page::DEFAULT_LIMIT, Page::MAX_LIMIT),
            offset: number("offset", 0, i64::MAX),
        };
        let status = match params.text("status") {
            None => None,
            Some(text) => {
                let status = Status::parse(text);
                if status.is_none() {
                    invalid.push(no_status(&["query", "status"], text.into()));
                }
                status
            }
        };
        if invalid.is_empty() {
            Ok(Self { page, status })
        } else {
            Err(Error::InvalidFields(invalid))
        }
    }
}

/// The parts of the path.
pub(super) struct PathParam(pub(super) String);
pub(super) struct PathParams(pub(super) String, pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(wakeline_web::path(path)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (first, second) = wakeline_web::path(path)?;
        Ok(Self(first, second))
    }
}
