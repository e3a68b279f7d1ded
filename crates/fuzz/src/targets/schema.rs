//! A provider's JSON Schema, which whoever registers it has written, and the query of a read that is
//! checked against it.

use wakeline_jobs::{Error, params::Params, schema::Schema};

use super::parts;

pub fn run(input: &[u8]) {
    let parts = parts(input);
    let Some(schema) = parts.first().and_then(|part| str::from_utf8(part).ok()) else {
        return;
    };
    let schema = Schema::new(schema);
    for query in &parts[1..] {
        let Ok(query) = str::from_utf8(query) else {
            continue;
        };
        let Ok(params) = Params::from_query(query) else {
            continue;
        };
        match params.check(&schema) {
            Ok(()) => {}
            Err(Error::InvalidFields(fields)) => assert!(!fields.is_empty()),
            Err(error) => panic!("{error}"),
        }
    }
}
