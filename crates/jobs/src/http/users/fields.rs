//! Fields of a body, refused in FastAPI's words. What was sent is not said again where it may hold
//! a password.

use serde_json::{Map, Value};
use wakeline_web::Params;

use crate::error::{Error, Unfit};

const WHERE: &str = "body";

/// A JSON object, read field by field; what is wrong with them is told together.
#[derive(Debug)]
pub(super) struct Fields {
    given: Map<String, Value>,
    unfit: Vec<Unfit>,
}

impl Fields {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        if body.is_empty() {
            return Err(missing(&[WHERE]).into());
        }
        let given: Value = serde_json::from_slice(body).map_err(|error| {
            let context = serde_json::json!({ "error": error.to_string() });
            Unfit::new("json_invalid", &[WHERE], "JSON decode error", Value::Null)
                .with_context(context)
        })?;
        let Value::Object(given) = given else {
            let message = "Input should be a valid dictionary or object to extract fields from";
            let unfit = Unfit::new("model_attributes_type", &[WHERE], message, Value::Null);
            return Err(unfit.into());
        };
        Ok(Self {
            given,
            unfit: Vec::new(),
        })
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.given.remove(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => self.refuse("string_type", name, "Input should be a valid string"),
        }
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        match self.given.remove(name) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(flag),
            Some(_) => self.refuse("bool_type", name, "Input should be a valid boolean"),
        }
    }

    pub(super) fn required(&mut self, name: &str) -> String {
        let known = self.unfit.len();
        let text = self.text(name);
        if text.is_none() && self.unfit.len() == known {
            self.unfit.push(missing(&[WHERE, name]));
        }
        text.unwrap_or_default()
    }

    /// What was read is good for something only after this.
    pub(super) fn end(self) -> Result<(), Error> {
        if self.unfit.is_empty() {
            return Ok(());
        }
        Err(Error::Unfit(self.unfit))
    }

    fn refuse<T>(&mut self, kind: &'static str, name: &str, message: &str) -> Option<T> {
        let unfit = Unfit::new(kind, &[WHERE, name], message, Value::Null);
        self.unfit.push(unfit);
        None
    }
}

/// The fields of a form, all of them required.
pub(super) fn form<const N: usize>(body: &[u8], names: [&str; N]) -> Result<[String; N], Error> {
    let unreadable = |message: &str| Unfit::new("string_unicode", &[WHERE], message, Value::Null);
    let text = str::from_utf8(body).map_err(|_| unreadable("the form is not UTF-8"))?;
    let form = Params::parse(text).map_err(|problem| unreadable(problem.detail()))?;
    let absent = names.iter().filter(|name| form.text(name).is_none());
    let absent: Vec<_> = absent.map(|name| missing(&[WHERE, name])).collect();
    if !absent.is_empty() {
        return Err(Error::Unfit(absent));
    }
    Ok(names.map(|name| form.text(name).unwrap_or_default().to_owned()))
}

fn missing(at: &[&str]) -> Unfit {
    Unfit::new("missing", at, "Field required", Value::Null)
}
