use proptest::prelude::*;

use super::{Limits, Object, Problem, Text, Value, compare, parse, parse_bytes, parse_within};

/// Made by Node: see make-facts.mjs.
const VECTORS: &str = include_str!("../../tests/vectors/facts.json");

fn canonical(text: &str) -> String {
    parse(text).unwrap().canonical()
}

fn problem(text: &str) -> (Problem, usize) {
    let error = parse(text).unwrap_err();
    (error.problem, error.at)
}

/// A vectors' list.
fn list<'a>(of: &'a Value<'_>, name: &str) -> &'a [Value<'a>] {
    match of.as_object().and_then(|object| object.get(name)) {
        Some(Value::Array(elements)) => elements,
        other => panic!("no list {name}: {other:?}"),
    }
}

#[test]
fn numbers_are_written_as_node_writes_them() {
    let vectors = parse(VECTORS).unwrap();
    let numbers = list(&vectors, "numbers");
    assert!(numbers.len() > 100);
    for pair in numbers {
        let Value::Array(pair) = pair else {
            panic!("no pair: {pair:?}");
        };
        let (text, expected) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn keys_are_in_the_order_of_javascript() {
    let vectors = parse(VECTORS).unwrap();
    let order = list(&vectors, "order");
    assert!(order.len() > 100);
    let texts: Vec<&Text<'_>> = order
        .iter()
        .map(|value| match value {
            Value::String(text) => text,
            other => panic!("no string: {other:?}"),
        })
        .collect();
    assert!(texts.is_sorted_by(|one, other| one < other));
    let members = texts.iter().rev().map(|&key| (key.clone(), Value::Null));
    let object = Object::new(members.collect());
    assert!(object.members().iter().map(|(key, _)| key).eq(texts));
}

#[test]
fn surrogate_pairs_sort_before_the_last_single_units() {
    assert!(compare("\u{10000}", "\u{E000}").is_lt());
    assert!(compare("a\u{FFFF}", "a\u{10FFFF}").is_gt());
    assert!(compare("\u{D7FF}", "\u{10000}").is_lt());
    assert!(compare("a", "ab").is_lt());
}

#[test]
fn a_lone_surrogate_survives() {
    for text in [
        r#""\ud800 lone""#,
        r#""a\n\udc00\ud800""#,
        r#""\ud83d\ud83d""#,
    ] {
        assert_eq!(canonical(text), text);
    }
    assert_eq!(canonical(r#""\uD83D\uDE00""#), "\"😀\"");
    assert_eq!(canonical(r#""\ud800\u0041""#), r#""\ud800A""#);
    assert_eq!(
        canonical(r#"{"\udc00":1,"\ud800":2}"#),
        r#"{"\ud800":2,"\udc00":1}"#
    );
}

#[test]
fn the_last_of_two_members_with_one_key_is_kept() {
    assert_eq!(
        canonical(r#"{"a":1,"b":2,"\u0061":3,"a":4}"#),
        r#"{"a":4,"b":2}"#
    );
}

#[test]
fn white_space_is_dropped_and_escapes_are_written_as_javascript_does() {
    assert_eq!(
        canonical(
            " { \"b\" : [ 1 , true , null ] ,\r\n\t\"a\" : \"\\/\\u00e9\\u001F\\u007f\\b\" } "
        ),
        "{\"a\":\"/é\\u001f\u{7f}\\b\",\"b\":[1,true,null]}"
    );
}

#[test]
fn invalid_json_is_refused_with_the_position() {
    assert_eq!(problem(""), (Problem::Ends("a JSON value"), 0));
    assert_eq!(
        problem("{\"a\":1,}"),
        (Problem::Expected("a key in double quotes"), 7)
    );
    assert_eq!(problem("[1,]"), (Problem::Expected("a JSON value"), 3));
    assert_eq!(problem("[1 2]"), (Problem::Expected("',' or ']'"), 3));
    assert_eq!(problem("{\"a\" 1}"), (Problem::Expected("':'"), 5));
    assert_eq!(
        problem("01"),
        (Problem::Expected("no digit after a leading 0"), 1)
    );
    assert_eq!(problem("-"), (Problem::Ends("a digit"), 1));
    assert_eq!(problem("1."), (Problem::Ends("a digit"), 2));
    assert_eq!(problem("1e"), (Problem::Ends("a digit"), 2));
    assert_eq!(problem("+1"), (Problem::Expected("a JSON value"), 0));
    assert_eq!(problem("tru"), (Problem::Expected("a JSON value"), 0));
    assert_eq!(problem("NaN"), (Problem::Expected("a JSON value"), 0));
    assert_eq!(problem("1 1"), (Problem::Trailing, 2));
    assert_eq!(problem("\"a\nb\""), (Problem::Control, 2));
    assert_eq!(problem("\"\\x\""), (Problem::Escape, 2));
    assert_eq!(
        problem("\"\\u12g4\""),
        (Problem::Expected("four hexadecimal digits"), 5)
    );
    assert_eq!(problem("\"abc"), (Problem::Ends("a double quote"), 4));
    assert_eq!(problem("\u{FEFF}1"), (Problem::Expected("a JSON value"), 0));
    assert_eq!(problem("[1e309]"), (Problem::Huge, 1));
    let error = parse_bytes(b"\"a\xED\xA0\x80\"").unwrap_err();
    assert_eq!(error.to_string(), "not UTF-8 at byte 2");
}

#[test]
fn nesting_over_the_limit_is_refused() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(&nested(64)).is_ok());
    assert_eq!(
        parse(&nested(65)).unwrap_err().to_string(),
        "nested deeper than 64 at byte 64"
    );
    assert_eq!(
        problem(&"{\"a\":".repeat(100_000)),
        (Problem::Deep(64), 64 * 5)
    );
}

#[test]
fn a_document_over_a_limit_is_refused() {
    let limits = Limits {
        bytes: 10,
        depth: 2,
        values: 3,
    };
    assert!(parse_within("[0,0]", limits).is_ok());
    let refused = |text| parse_within(text, limits).unwrap_err().to_string();
    assert_eq!(refused("[0,0,0]"), "more than 3 values at byte 5");
    assert_eq!(refused("\"123456789\""), "longer than 10 bytes at byte 10");
}

fn text() -> impl Strategy<Value = Text<'static>> {
    let unit = prop_oneof![
        4 => 0x20_u16..0x7F,
        2 => any::<u16>(),
        1 => 0xD800_u16..0xE000,
        1 => 0_u16..0x20,
    ];
    prop::collection::vec(unit, 0..12).prop_map(Text::from_units)
}

fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..8)
                .prop_map(|members| Value::Object(Object::new(members))),
        ]
    })
}

proptest! {
    #[test]
    fn a_written_value_is_read_back(value in value()) {
        let written = value.canonical();
        let read = parse(&written).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(read.canonical(), written);
    }

    #[test]
    fn texts_are_ordered_by_their_utf16_units(one in text(), other in text()) {
        let units = |text: &Text<'_>| match text.as_str() {
            Some(text) => text.encode_utf16().collect(),
            None => text.as_wide().unwrap().to_vec(),
        };
        let (a, b): (Vec<u16>, Vec<u16>) = (units(&one), units(&other));
        prop_assert_eq!(one.cmp(&other), a.cmp(&b));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        if let Ok(value) = parse_bytes(&bytes) {
            let written = value.canonical();
            prop_assert_eq!(parse(&written).unwrap(), value);
        }
    }

    #[test]
    fn almost_json_is_read_or_refused(text in r#"[\[\]{}",:\\u0-9de.+ -]{0,40}"#) {
        let ours = parse(&text);
        if let Ok(value) = &ours {
            let written = value.canonical();
            prop_assert_eq!(&parse(&written).unwrap(), value);
        }
        // serde_json knows no lone surrogates, but is as strict in all else.
        if !text.contains("\\u") {
            let theirs: Result<serde_json::Value, _> = serde_json::from_str(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        }
    }
}
