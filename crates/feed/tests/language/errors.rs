//! Errors in texts, and their positions.

use wakeline_feed::{
    fact::Hash,
    specification::{
        Label, parser,
        request::{self, TrailingText},
        scanner::{MAX_DEPTH, MAX_PARTS, MAX_TEXT},
    },
};

use crate::parsed;

fn error(text: &str) -> String {
    match parser::parse(text) {
        Ok(specification) => panic!("it was parsed: {specification:?}"),
        Err(error) => error.to_string(),
    }
}

fn asked(text: &str, trailing: TrailingText) -> Result<request::Request, String> {
    let me = Label {
        name: "me".into(),
        kind: "Jinaga.User".into(),
    };
    request::parse(text, &[me], trailing).map_err(|error| error.to_string())
}

#[test]
fn an_error_says_what_was_expected_what_is_there_and_where() {
    let cases = [
        (
            "this is not a specification",
            "Expected '(' but found 'this is not a specification' (line 1, column 1)",
        ),
        ("", "Expected '(' but found '' (line 1, column 1)"),
        (
            "(s: A) {\n  x B\n}",
            "Expected ':' but found 'B\n}' (line 2, column 5)",
        ),
        (
            "(é: A) {}",
            "Expected identifier but found 'é: A) {}' (line 1, column 2)",
        ),
        (
            "(s: 1) {}",
            "Expected type but found '1) {}' (line 1, column 5)",
        ),
        (
            "(s: A) {} more",
            "Expected end of input but found 'more' (line 1, column 11)",
        ),
        (
            "(s: A) { x: B [!F] }",
            "Expected 'E' but found 'F] }' (line 1, column 17)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn a_preview_is_short() {
    let text = "x".repeat(1_000);
    let expected = format!(
        "Expected '(' but found '{}' (line 1, column 1)",
        "x".repeat(100)
    );
    assert_eq!(error(&text), expected);
}

#[test]
fn a_name_must_be_defined_once_before_its_use() {
    let cases = [
        (
            "() {}",
            "The specification must contain at least one given label",
        ),
        (
            "(s: A, s: B) {}",
            "The name 's' has already been used (line 1, column 8)",
        ),
        (
            "(s: A) { s: B [s->a: A = s] }",
            "The name 's' has already been used (line 1, column 10)",
        ),
        (
            "(s: A) { x: B [x->a: A = s] x: B [x->a: A = s] }",
            "The name 'x' has already been used",
        ),
        (
            "(s: A) { x: B [x->a: A = t] }",
            "The label 't' has not been defined (line 1, column 26)",
        ),
        (
            "(s: A) { x: B [x->a: A = x] }",
            "The label 'x' has not been defined",
        ),
        (
            "(s: A) { x: B [y->a: A = s] }",
            "The unknown 'x' must appear on the left side of the path",
        ),
        ("(s: A) { x: B [] }", "The match for 'x' has no conditions"),
        ("(s: A []) {}", "The given 's' has no conditions"),
        (
            "(s: A) {} => t",
            "The label 't' has not been defined (line 1, column 14)",
        ),
        (
            "(s: A) {} => { a = #t }",
            "The label 't' has not been defined",
        ),
        (
            "(s: A) {} => { a = { x: B [x->a: A = s] } => x b = x }",
            "The label 'x' has not been defined",
        ),
        (
            "(s: A) { x: B [x->a: A = s E { y: C [y->b: B = x] }] } => y",
            "The label 'y' has not been defined",
        ),
        (
            "(s: A) {} => { a = s a = s }",
            "The name 'a' has already been used",
        ),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn types_must_agree_along_paths() {
    let cases = [
        (
            "(s: A) { x: B [x->a: C = s] }",
            "Type mismatch: C is compared to A (line 1, column 16)",
        ),
        (
            "(s: A) { x: B [x = s] }",
            "Type mismatch: B is compared to A",
        ),
        (
            "(s: A) { x: B [x = s->c: C] }",
            "Type mismatch: B is compared to C",
        ),
        (
            "(s: A) { x: B [x->c: C = s->d: D] }",
            "Type mismatch: C is compared to D",
        ),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_condition_must_refer_to_its_unknown() {
    let text = "(s: A) { x: B [x->a: A = s !E { y: C [y->a: A = s] }] }";
    let expected = "The existential condition must be based on the unknown 'x' (line 1, column 28)";
    assert_eq!(error(text), expected);
    let text = "(s: A [E { y: C [y->b: B = t] }], t: B) {}";
    assert!(error(text).starts_with("The label 't' has not been defined"));
}

#[test]
fn a_match_can_be_found_by_its_paths() {
    let text = "(s: A) { x: B [E { y: C [y->b: B = x] }] }";
    assert!(error(text).starts_with("The match for 'x' has no path"));
    let text = "(s: A, t: A) { x: A [x = s x = t] }";
    assert!(error(text).starts_with("The match for 'x' has more than one path without roles"));
}

#[test]
fn names_may_start_like_words_of_the_language() {
    for name in ["E", "Every", "let", "letter", "share", "no", "everyone"] {
        let text = format!(
            "(s: A) {{ {name}: B [{name}->a: A = s E {{ {name}2: C [{name}2->b: B = {name}] }}] }} => {name}"
        );
        let specification = parsed(&text);
        assert_eq!(&*specification.matches[0].unknown.name, name);
        assert_eq!(parsed(&specification.describe()), specification);
    }
}

#[test]
fn text_after_a_specification_is_ignored_only_where_it_is_allowed() {
    let hash = Hash([7; 64]);
    let text = format!("let s: A = #{hash}\n(s: A) {{ x: B [x->a: A = s] }} garbage");
    assert!(asked(&text, TrailingText::Ignored).is_ok());
    let error = asked(&text, TrailingText::Refused).expect_err("garbage");
    assert_eq!(
        error,
        "Expected end of input but found 'garbage' (line 2, column 31)"
    );
}

#[test]
fn givens_are_declared_with_their_types() {
    let hash = Hash([7; 64]);
    let cases = [
        (
            format!("let s: B = #{hash}\n(s: A) {{}}"),
            "The type of start fact 0 (B) does not match the type of input 0 (A)",
        ),
        ("(r: A) {}".to_owned(), "No fact named r was declared"),
        (
            "let u: Jinaga.User = you (u: Jinaga.User) {}".to_owned(),
            "The fact 'you' has not been defined",
        ),
    ];
    for (text, expected) in cases {
        let error = asked(&text, TrailingText::Ignored).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_caller_can_declare_me() {
    for text in [
        "let u: Jinaga.User = me (u: Jinaga.User) {}",
        "(me: Jinaga.User) {}",
    ] {
        assert!(asked(text, TrailingText::Refused).is_ok(), "{text}");
    }
}

#[test]
fn too_deep_nesting_is_refused_and_not_followed() {
    for depth in [MAX_DEPTH + 1, 100_000] {
        let text = format!("(x: A) {}", "{ y: A [y = x E ".repeat(depth));
        assert!(error(&text[..MAX_TEXT.min(text.len())]).contains("already been used"));
        let conditions: String = (0..depth.min(10_000))
            .map(|n| format!("{{ x{}: A [x{}->a: A = x{n} E ", n + 1, n + 1))
            .collect();
        let text = format!("(x0: A) {conditions}");
        let expected = format!("More than {MAX_DEPTH} braces are open (line 1, column ");
        assert!(error(&text).starts_with(&expected));
        let collections = "=> { a = {} ".repeat(depth.min(50_000));
        assert!(error(&format!("(x: A) {{}} {collections}")).starts_with(&expected));
    }
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    // The outermost braces are open too.
    let inner = MAX_DEPTH - 1;
    let opened: String = (1..=inner)
        .map(|n| format!("{{ x{n}: A [x{n}->a: A = x{} E ", n - 1))
        .collect();
    let last = format!("{{ y: A [y->a: A = x{inner}] }}");
    let text = format!("(x0: A) {opened}{last}{}", "] }".repeat(inner));
    let specification = parsed(&text);
    assert_eq!(parsed(&specification.describe()), specification);
}

#[test]
fn long_texts_are_refused() {
    let text = " ".repeat(MAX_TEXT + 1);
    assert!(error(&text).starts_with(&format!("The text is longer than {MAX_TEXT} bytes")));
}

#[test]
fn a_specification_of_too_many_parts_is_refused() {
    let roles = "->a: A".repeat(MAX_PARTS);
    let text = format!("(x: A) {{ y: A [y{roles} = x] }}");
    assert!(error(&text).starts_with(&format!(
        "The specification has more than {MAX_PARTS} parts"
    )));
}

#[test]
fn long_names_are_refused() {
    let long = "a".repeat(201);
    let cases = [
        (
            format!("({long}: A) {{}}"),
            "The identifier is longer than 200 characters (line 1, column 2)",
        ),
        (
            format!("(a: {long}) {{}}"),
            "The type is longer than 200 characters (line 1, column 5)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&text), expected);
    }
}
