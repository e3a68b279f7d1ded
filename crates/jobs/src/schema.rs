//! The JSON Schema of a provider, against which the parameters of a read are checked.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use boon::{
    CompileError, Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, SchemeUrlLoader,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::provider::Provider;

/// The weight of all cached schemas; past it, all are dropped and compiled again when they are
/// needed. A part of a schema takes some hundred times its text.
const MAX_KEPT: usize = 2 << 20;
/// The weight of a schema besides its text, and of each of its patterns.
const BASE_WEIGHT: usize = 1 << 10;
const PATTERN_WEIGHT: usize = 32 << 10;
/// Patterns of one schema: each may take up to 10 MB when it is compiled.
const MAX_PATTERNS: usize = 64;
/// A schema without an address of its own has this one.
const ADDRESS: &str = "schema:///";

/// A schema that cannot be used asks for nothing.
pub struct Schema {
    document: Value,
    compiled: Option<(Schemas, SchemaIndex)>,
    weight: usize,
}

/// A fault of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SchemaFault {
    /// A property that is needed.
    Missing(String),
    /// A property that is not allowed.
    Extra(String),
    /// Within this property; without one, of the value as a whole.
    Other(Option<String>, String),
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Schema").field(&self.document).finish()
    }
}

impl Schema {
    #[must_use]
    pub fn new(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).unwrap_or_default();
        let patterns = patterns(&document);
        let compiled = if document.as_object().is_none_or(Map::is_empty) {
            None
        } else if patterns > MAX_PATTERNS {
            tracing::debug!(
                patterns,
                "a provider's schema has too many patterns to be used"
            );
            None
        } else {
            compile(document.clone())
        };
        Self {
            document,
            compiled,
            weight: text.len() + BASE_WEIGHT + patterns * PATTERN_WEIGHT,
        }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// The faults of an object.
    pub(crate) fn schema_faults(&self, given: &Value) -> Vec<SchemaFault> {
        let Some((schemas, index)) = &self.compiled else {
            return Vec::new();
        };
        let mut schema_faults = Vec::new();
        if let Err(error) = schemas.validate(given, *index) {
            find_faults(&error, &mut schema_faults);
        }
        schema_faults
    }
}

/// An upper bound: what looks like a pattern need not be one.
fn patterns(part: &Value) -> usize {
    match part {
        Value::Object(fields) => {
            let within = |(name, field): (&String, &Value)| match (&**name, field) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(by_pattern)) => {
                    by_pattern.len() + patterns(field)
                }
                _ => patterns(field),
            };
            fields.iter().map(within).sum()
        }
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

fn compile(document: Value) -> Option<(Schemas, SchemaIndex)> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    // A loader without schemes: a `$ref` leads to no file and to no other server.
    compiler.use_loader(Box::new(SchemeUrlLoader::new()));
    let unusable =
        |error: &CompileError| tracing::debug!(%error, "a provider's schema cannot be used");
    let added = compiler.add_resource(ADDRESS, document);
    added.inspect_err(unusable).ok()?;
    let index = compiler.compile(ADDRESS, &mut schemas);
    let index = index.inspect_err(unusable).ok()?;
    Some((schemas, index))
}

type Violation<'s, 'v> = boon::ValidationError<'s, 'v>;

fn find_faults(error: &Violation<'_, '_>, schema_faults: &mut Vec<SchemaFault>) {
    let mut path = error.instance_location.tokens.iter();
    let within = path.next().map(|token| match token {
        InstanceToken::Prop(name) => name.to_string(),
        InstanceToken::Item(index) => index.to_string(),
    });
    match (&error.kind, within) {
        // These only contain the faults.
        (
            ErrorKind::Schema { .. }
            | ErrorKind::Group
            | ErrorKind::Reference { .. }
            | ErrorKind::AllOf,
            _,
        ) => {
            for cause in &error.causes {
                find_faults(cause, schema_faults);
            }
        }
        (ErrorKind::AdditionalProperties { got }, None) => {
            schema_faults.extend(got.iter().map(|name| SchemaFault::Extra(name.to_string())));
        }
        (ErrorKind::FalseSchema, Some(name)) if path.next().is_none() => {
            schema_faults.push(SchemaFault::Extra(name));
        }
        (ErrorKind::Required { want }, None) => {
            schema_faults.extend(
                want.iter()
                    .map(|name| SchemaFault::Missing((*name).to_owned())),
            );
        }
        (_, within) => schema_faults.push(SchemaFault::Other(within, explain(error))),
    }
}

/// With the fault of each of the alternatives.
fn explain(error: &Violation<'_, '_>) -> String {
    let kind = error.kind.to_string();
    if error.causes.is_empty() {
        return kind;
    }
    let causes: Vec<String> = error.causes.iter().map(explain).collect();
    format!("{kind} ({})", causes.join("; "))
}

/// The compiled schemas of providers, by their registrations.
#[derive(Default)]
pub(crate) struct ProviderSchemas(Mutex<CachedSchemas>);

#[derive(Default)]
struct CachedSchemas {
    schemas: HashMap<(Uuid, i64), Arc<Schema>>,
    weight: usize,
}

impl fmt::Debug for ProviderSchemas {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProviderSchemas").finish_non_exhaustive()
    }
}

impl ProviderSchemas {
    pub(crate) fn get(&self, provider: &Provider) -> Arc<Schema> {
        let registration = (provider.id, provider.version);
        if let Some(known) = self.lock().schemas.get(&registration) {
            return known.clone();
        }
        // Without the lock, as it takes a while. Two that do it at once do no harm.
        let schema = Arc::new(Schema::new(&provider.schema));
        let mut cached = self.lock();
        if cached.weight + schema.weight > MAX_KEPT {
            *cached = CachedSchemas::default();
        }
        if schema.weight <= MAX_KEPT
            && cached
                .schemas
                .insert(registration, schema.clone())
                .is_none()
        {
            cached.weight += schema.weight;
        }
        schema
    }

    fn lock(&self) -> MutexGuard<'_, CachedSchemas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::FullName;

    fn provider(version: i64, schema: &str) -> Provider {
        Provider {
            id: Uuid::nil(),
            name: FullName::new("r", "fs", "a"),
            schema: schema.to_owned(),
            content_type: String::new(),
            user: Uuid::nil(),
            worker: None,
            created_at: 0,
            version,
            ttl: None,
        }
    }

    #[test]
    fn a_schema_is_compiled_once_for_each_registration() {
        let schemas = ProviderSchemas::default();
        let first = schemas.get(&provider(1, r#"{"required":["a"]}"#));
        assert!(Arc::ptr_eq(&first, &schemas.get(&provider(1, "{}"))));
        let second = schemas.get(&provider(2, r#"{"required":["b"]}"#));
        let missing = |schema: &Schema| schema.schema_faults(&Value::Object(Map::new()));
        assert_eq!(missing(&first), [SchemaFault::Missing("a".to_owned())]);
        assert_eq!(missing(&second), [SchemaFault::Missing("b".to_owned())]);
    }

    #[test]
    fn the_cache_of_schemas_is_limited() {
        let schemas = ProviderSchemas::default();
        let large = format!(r#"{{"title":"{}"}}"#, "x".repeat(256 << 10));
        for version in 0..20 {
            schemas.get(&provider(version, &large));
            let cached = schemas.lock();
            let weight = cached.schemas.len() * (large.len() + BASE_WEIGHT);
            assert_eq!(cached.weight, weight);
            assert!(weight <= MAX_KEPT, "{weight}");
        }
        let newest = schemas.get(&provider(19, &large));
        assert!(Arc::ptr_eq(&newest, &schemas.get(&provider(19, &large))));
        let too_large = format!(r#"{{"title":"{}"}}"#, "x".repeat(MAX_KEPT));
        schemas.get(&provider(20, &too_large));
        assert_eq!(schemas.lock().schemas.len(), 0);
    }

    #[test]
    fn a_reference_to_a_file_or_a_server_is_not_followed() {
        let file = std::env::current_dir().unwrap().join("Cargo.toml");
        for target in [
            format!("file://{}", file.display()),
            "http://127.0.0.1:1/".to_owned(),
            "other".to_owned(),
        ] {
            let schema = Schema::new(&format!(r#"{{"$ref":"{target}"}}"#));
            assert!(schema.compiled.is_none(), "{target}");
        }
    }

    #[test]
    fn every_draft_is_recognised_by_its_name() {
        let drafts = [
            ("http://json-schema.org/draft-04/schema#", "definitions"),
            ("http://json-schema.org/draft-06/schema#", "definitions"),
            ("http://json-schema.org/draft-07/schema#", "definitions"),
            ("https://json-schema.org/draft/2019-09/schema", "$defs"),
            ("https://json-schema.org/draft/2020-12/schema", "$defs"),
        ];
        for (draft, definitions) in drafts {
            let schema = format!(
                r##"{{"$schema":"{draft}","properties":{{"a":{{"$ref":"#/{definitions}/A"}}}},
                "{definitions}":{{"A":{{"type":"integer"}}}}}}"##
            );
            let schema_faults =
                Schema::new(&schema).schema_faults(&serde_json::json!({ "a": "x" }));
            assert_eq!(schema_faults.len(), 1, "{draft}");
        }
    }

    #[test]
    fn a_pattern_is_matched_in_bounded_time_and_memory() {
        let schema = Schema::new(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#);
        let given = serde_json::json!({ "a": format!("{}b", "a".repeat(100_000)) });
        assert_eq!(schema.schema_faults(&given).len(), 1);
        let huge = r#"{"properties":{"a":{"pattern":"((a{1000}){1000}){1000}"}}}"#;
        assert!(Schema::new(huge).compiled.is_none());
        let many = |count: usize| {
            let pattern = |n: usize| format!(r#""{n}":true"#);
            let patterns: Vec<String> = (0..count).map(pattern).collect();
            let patterns = patterns.join(",");
            format!(r#"{{"items":{{"patternProperties":{{{patterns}}}}}}}"#)
        };
        assert!(Schema::new(&many(MAX_PATTERNS)).compiled.is_some());
        assert!(Schema::new(&many(MAX_PATTERNS + 1)).compiled.is_none());
    }
}
