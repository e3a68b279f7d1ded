//! The parameters of a read: the query, its canonical text and its hash.
//!
//! The text is what Python's `json.dumps(params, sort_keys=True, separators=(",", ":"))` makes:
//! keys by code point, everything but printable ASCII escaped. Clients compute the hash themselves.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, InvalidField},
    schema::{Schema, SchemaFault},
};

/// Parameters of one read.
pub const MAX_PARAMS: usize = 256;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// Of several values for a name the last counts.
    pub fn from_query(query: &str) -> Result<Self, Error> {
        let mut params = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            params.insert(decode(name), decode(value));
        }
        if params.len() > MAX_PARAMS {
            let text = format!("At most {MAX_PARAMS} parameters are taken");
            return Err(InvalidField::new("too_long", &["query"], text, params.len()).into());
        }
        Ok(Self(params))
    }

    #[must_use]
    pub fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    #[must_use]
    pub fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }

    /// As it is hashed, and sent to the provider.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            quote(&mut text, name);
            text.push(':');
            quote(&mut text, value);
        }
        text.push('}');
        text
    }

    /// Refuses parameters that do not fit the provider's JSON Schema, each by its name.
    pub fn check(&self, schema: &Schema) -> Result<(), Error> {
        let schema_faults = schema.schema_faults(&self.typed(schema.document()));
        if schema_faults.is_empty() {
            return Ok(());
        }
        let invalid = schema_faults.into_iter().map(|fault| {
            let (kind, name, message) = match fault {
                SchemaFault::Missing(name) => ("missing", Some(name), "Field required".to_owned()),
                SchemaFault::Extra(name) => {
                    let message = "Extra inputs are not permitted".to_owned();
                    ("extra_forbidden", Some(name), message)
                }
                SchemaFault::Other(name, message) => ("schema", name, message),
            };
            let given = name.as_ref().and_then(|name| self.0.get(name));
            let input = given.map_or(Value::Null, |text| text.as_str().into());
            let at: Vec<&str> = std::iter::once("query").chain(name.as_deref()).collect();
            InvalidField::new(kind, &at, message, input)
        });
        Err(Error::InvalidFields(invalid.collect()))
    }

    /// A query has only texts: a parameter that the schema wants as a number or a boolean is
    /// converted.
    fn typed(&self, schema: &Value) -> Value {
        let typed = self.0.iter().map(|(name, text)| {
            let wanted = &schema["properties"][name];
            let value = types(schema, wanted, 0)
                .into_iter()
                .find_map(|kind| read_as(kind, text))
                .unwrap_or_else(|| Value::from(text.as_str()));
            (name.clone(), value)
        });
        Value::Object(typed.collect())
    }
}

/// The types that a property may have, also by `anyOf` and `$ref` within the schema.
fn types<'a>(schema: &'a Value, wanted: &'a Value, depth: usize) -> Vec<&'a str> {
    const MAX_DEPTH: usize = 4;
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    let mut found: Vec<&str> = match &wanted["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for part in ["anyOf", "oneOf", "allOf"] {
        let parts = wanted[part].as_array().into_iter().flatten();
        found.extend(parts.flat_map(|part| types(schema, part, depth + 1)));
    }
    let target = wanted["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| schema.pointer(pointer)) {
        found.extend(types(schema, target, depth + 1));
    }
    found
}

/// As pydantic reads a text.
fn read_as(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "string" => Some(text.into()),
        "integer" => whole(text).parse::<i64>().ok().map(Value::from),
        "number" => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Value::from),
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" | "y" | "on" => Some(true.into()),
            "false" | "f" | "0" | "no" | "n" | "off" => Some(false.into()),
            _ => None,
        },
        "null" if text.is_empty() => Some(Value::Null),
        "array" | "object" => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// Without a fraction that is nothing: `7.0` is 7.
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, rest)) if !rest.is_empty() && rest.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// The hash by which an answer is found.
#[must_use]
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn quote(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

/// As Python's web servers do it: a plus is a blank, and bytes that are not UTF-8 are replaced.
fn decode(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    String::from_utf8_lossy(&wakeline_web::percent_decoded(&bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(query: &str) -> String {
        hash(&Params::from_query(query).unwrap().text())
    }

    #[test]
    fn hashes_of_parameters_are_those_of_the_real_client() {
        let known = [
            (
                "",
                "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            ),
            (
                "path=/x",
                "3dac3d9396c816b7e4926c7c4b8f17dd0e6c5a306b4362f05218096095062dd2",
            ),
            (
                "path=/%C3%A9&b=1&b=2",
                "f4b989626ef40752331c8dd29786000d71d0f3747501d6141e1ebd2cf508c7c1",
            ),
            (
                "index=7",
                "b2388f49ccc90b19f0ee3361da728685bdd1822e997718d2d47d421aaa9657ae",
            ),
            (
                "q=%F0%9F%98%80+%7F%22%5C",
                "54a51ceff61b2ac2ca8535ad01ab5f06f5781edc5c4fd33caad9b26880f5c4a1",
            ),
        ];
        for (query, hash) in known {
            assert_eq!(hashed(query), hash, "{query}");
        }
    }

    fn refusal(schema: &str, query: &str) -> Vec<String> {
        let params = Params::from_query(query).unwrap();
        match params.check(&Schema::new(schema)) {
            Ok(()) => Vec::new(),
            Err(Error::InvalidFields(fields)) => fields
                .iter()
                .map(|unfit| format!("{:?} {}: {}", unfit.at, unfit.kind, unfit.message))
                .collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    #[test]
    fn parameters_that_violate_the_schema_are_named() {
        let schema = r##"{"type":"object","required":["index"],"properties":{
            "index":{"type":"integer","minimum":0},
            "glob":{"anyOf":[{"type":"string"},{"type":"null"}]},
            "deep":{"$ref":"#/$defs/Deep"},
            "size":{"anyOf":[{"type":"integer","minimum":3},{"type":"null"}]},
            "recursive":{"type":"boolean"}},"$defs":{"Deep":{"type":"integer"}}}"##;
        for query in ["index=7", "index=7&glob=&recursive=true&deep=3&other=x"] {
            assert_eq!(refusal(schema, query), Vec::<String>::new(), "{query}");
        }
        let refusals = [
            "index=x",
            "index=-1",
            "glob=a",
            "index=1&recursive=maybe",
            "index=1&deep=x",
            "index=1&size=2",
        ];
        let refused = refusals.map(|query| refusal(schema, query).join("\n"));
        insta::assert_snapshot!(refused.join("\n"), @r#"
        [String("query"), String("index")] schema: want integer, but got string
        [String("query"), String("index")] schema: must be >=0, but got -1
        [String("query"), String("index")] missing: Field required
        [String("query"), String("recursive")] schema: want boolean, but got string
        [String("query"), String("deep")] schema: want integer, but got string
        [String("query"), String("size")] schema: anyOf failed (must be >=3, but got 2; want null, but got number)
        "#);
        assert_eq!(refusal("{}", "a=b"), Vec::<String>::new());
        assert_eq!(refusal(r#"{"type":5}"#, "a=b"), Vec::<String>::new());
    }

    #[test]
    fn a_parameter_that_is_not_allowed_is_named() {
        let schema = r#"{"additionalProperties":false,"minProperties":1,"properties":{
            "a/b~c":{"type":"integer"},
            "in":{"type":"object","required":["x"],"additionalProperties":false}}}"#;
        let queries = [
            "x=1&a/b~c=1&~y=2",
            "a/b~c=z",
            "",
            "in={}",
            "in={%22x%22:1,%22y%22:2}",
        ];
        let refused = queries.map(|query| refusal(schema, query).join("\n"));
        insta::assert_snapshot!(refused.join("\n"), @r#"
        [String("query"), String("x")] extra_forbidden: Extra inputs are not permitted
        [String("query"), String("~y")] extra_forbidden: Extra inputs are not permitted
        [String("query"), String("a/b~c")] schema: want integer, but got string
        [String("query")] schema: minimum 1 properties required, but got 0 properties
        [String("query"), String("in")] schema: missing properties 'x'
        [String("query"), String("in")] schema: additionalProperties 'x', 'y' not allowed
        "#);
        let none = refusal(r#"{"additionalProperties":false}"#, "x=1&y=2");
        insta::assert_snapshot!(none.join("\n"), @r#"
        [String("query"), String("x")] extra_forbidden: Extra inputs are not permitted
        [String("query"), String("y")] extra_forbidden: Extra inputs are not permitted
        "#);
    }

    #[test]
    fn parameters_are_parsed_as_pydantic_parses_them() {
        let schema = r#"{"properties":{"b":{"type":"boolean"},"i":{"type":"integer"}}}"#;
        for good in "true True t T yes Y on ON 1 false F f no N n off 0".split(' ') {
            let query = format!("b={good}");
            assert_eq!(refusal(schema, &query), Vec::<String>::new(), "{query}");
        }
        for good in ["7", "-7", "7.0", "7.000", "+7"] {
            let query = format!("i={}", good.replace('+', "%2B"));
            assert_eq!(refusal(schema, &query), Vec::<String>::new(), "{query}");
        }
        for bad in [
            "b=2", "b=", "b=tr", "i=7.5", "i=7.", "i=.0", "i=7.0.0", "i=1e3",
        ] {
            assert_eq!(refusal(schema, bad).len(), 1, "{bad}");
        }
    }
}
