//! Queries: the names and values, as all doors and as the providers' readers have them.

use std::collections::BTreeMap;
use std::fmt::Write;

use wakeline_jobs::params::{self, MAX_PARAMS, Params as ProviderParams};
use wakeline_web::{Params, percent_decoded};

pub fn run(input: &[u8]) {
    let decoded = percent_decoded(input);
    assert!(decoded.len() <= input.len());
    let Ok(query) = str::from_utf8(input) else {
        return;
    };
    own(query);
    of_provider(query);
}

fn own(query: &str) {
    let Ok(params) = Params::parse(query) else {
        return;
    };
    let mut again = String::new();
    for name in params.names() {
        let value = params.text(name).expect("a name has a value");
        let _ = params.flag(name);
        if let Ok(Some(number)) = params.number(name, &(-5..=1_000_i64)) {
            assert!((-5..=1_000).contains(&number));
        }
        write!(again, "&{}={}", encoded(name), encoded(value)).expect("a string takes it");
    }
    let again = Params::parse(&again).expect("it is encoded");
    assert!(params.names().eq(again.names()));
    for name in params.names() {
        assert_eq!(params.text(name), again.text(name));
    }
}

fn of_provider(query: &str) {
    let Ok(params) = ProviderParams::from_query(query) else {
        return;
    };
    let text = params.text();
    assert!(text.is_ascii(), "{text}");
    assert_eq!(params::hash(&text).len(), 64);
    let read: BTreeMap<String, String> = serde_json::from_str(&text).expect("JSON");
    assert!(read.len() <= MAX_PARAMS);
    assert_eq!(read, params.into_map());
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").expect("a string takes it");
        encoded
    })
}
