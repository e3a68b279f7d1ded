//! Facts as text.

use wakeline_feed::{
    declaration::{self, Declaration, Literal, Names, Value, facts},
    fact::Hash,
    specification::Label,
};

fn declared(text: &str) -> Result<Vec<Declaration>, String> {
    let me = Label {
        name: "me".into(),
        kind: "Jinaga.User".into(),
    };
    declaration::parse(text, &[me]).map_err(|error| error.to_string())
}

fn error(text: &str) -> String {
    declared(text).expect_err(text)
}

#[test]
fn a_fact_has_fields_and_predecessors() {
    let text = r#"
        let site: Blog.Site = { domain: "a.com", creator: me }
        let a: Tag = {}
        let b: Tag = { name: "b" }
        let post: Blog.Post = { site, tags: [a, b], none: [], author: me, n: -1.5, big: 1e21,
            plus: +3, yes: true, no: false, nothing: null, truely: site, text: "\ud800 \"x\"\n" }"#;
    let declarations = declared(text).expect("declarations");
    let Value::Fact(post) = &declarations[3].value else {
        panic!("{declarations:?}");
    };
    let fields: Vec<_> = post
        .fields
        .iter()
        .map(|(name, value)| (&**name, value))
        .collect();
    assert_eq!(
        fields,
        [
            ("n", &Literal::Number(-1.5)),
            ("big", &Literal::Number(1e21)),
            ("plus", &Literal::Number(3.0)),
            ("yes", &Literal::Bool(true)),
            ("no", &Literal::Bool(false)),
            ("nothing", &Literal::Null),
            ("text", &Literal::String(r#""\ud800 \"x\"\n""#.into())),
        ]
    );
    let predecessors: Vec<_> = post
        .predecessors
        .iter()
        .map(|(role, names)| (&**role, names.clone()))
        .collect();
    assert_eq!(
        predecessors,
        [
            ("site", Names::One("site".into())),
            ("tags", Names::Many(vec!["a".into(), "b".into()])),
            ("none", Names::Many(Vec::new())),
            ("author", Names::One("me".into())),
            ("truely", Names::One("site".into())),
        ]
    );
}

#[test]
fn a_fact_can_be_a_reference_or_the_same_as_another() {
    let hash = Hash([9; 64]);
    let text = format!("let a: A = #{hash} let b: A = a let let: A = b");
    let values: Vec<_> = declared(&text)
        .expect("declarations")
        .into_iter()
        .map(|declaration| declaration.value)
        .collect();
    let same = |name: &str| Value::Same(name.into());
    assert_eq!(values, [Value::Reference(hash), same("a"), same("b")]);
}

#[test]
fn an_empty_text_declares_no_facts() {
    assert_eq!(declared(" \n"), Ok(Vec::new()));
}

#[test]
fn wrong_declarations_are_refused_with_their_place() {
    let hash = Hash([9; 64]);
    let cases = [
        (
            "let <b>",
            "Expected identifier but found '<b>' (line 1, column 5)",
        ),
        ("letter: A = {}", "Expected end of input but found 'letter"),
        (
            "let a: A = {}\nlet a: A = {}",
            "The name 'a' has already been used (line 2, column 5)",
        ),
        ("let me: A = {}", "The name 'me' has already been used"),
        (
            "let a: A = { b }",
            "The fact 'b' has not been defined (line 1, column 14)",
        ),
        ("let a: A = { b: c }", "The fact 'c' has not been defined"),
        ("let a: A = { b: [c] }", "The fact 'c' has not been defined"),
        (
            "let a: A = { me, me }",
            "The name 'me' has already been used",
        ),
        (
            "let a: A = { x: 1, x: 2 }",
            "The name 'x' has already been used",
        ),
        ("let a: A = { x: 01 }", "Expected a number but found '01 }'"),
        ("let a: A = { x: 1. }", "Expected a number but found '1. }'"),
        (
            "let a: A = { x: 1e999 }",
            "Expected a number of at most 64 bits",
        ),
        ("let a: A = { x: \"\\q\" }", "Expected a JSON string"),
        ("let a: A = { x: \"\n\" }", "Expected a JSON string"),
        ("let a: A = { x: \"abc", "Expected a JSON string"),
        ("let a: A = { x: 1", "Expected '}' but found ''"),
        ("let a: A = { x: 1,", "Expected identifier but found ''"),
        (
            "let a: A = #abc",
            "The hash must be a base64-encoded string",
        ),
        (
            "let a: A = me",
            "Cannot assign a 'Jinaga.User' to a 'A' (line 1, column 12)",
        ),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.starts_with(expected), "{error}");
    }
    let text = format!("let a: A = #{hash} (a: A) {{}}");
    assert!(error(&text).starts_with("Expected end of input but found '(a: A) {}'"));
}

#[test]
fn a_field_and_a_role_may_have_one_name() {
    assert!(declared("let a: A = { me, me: 1 }").is_ok());
}

/// The hashes are upstream's, of the same declarations.
#[test]
fn declared_facts_have_upstreams_hashes() {
    let text = r#"let site: Blog.Site = { domain: "a.com" }
        let a: Tag = { name: "a" } let b: Tag = { name: "b" }
        let one: Blog.Post = { site, tags: [b, a, b], n: 1.50, text: "\u00e9\n", yes: true }
        let same: Blog.Post = one
        let two: Blog.Post = { tags: [a], site: site }"#;
    let declared = facts::resolve(&declared(text).expect("declarations"), Vec::new());
    let hashes: Vec<_> = facts::saved(declared.expect("facts"))
        .expect("facts")
        .into_iter()
        .map(|fact| fact.reference.hash.to_string())
        .collect();
    assert_eq!(hashes, HASHES);
}

const HASHES: [&str; 6] = [
    "ez/foNQSIyMyZS3X9swnJp9q81e+MJ86UEjJhHKPFa6FLZqWKv7Ith/43mE7mr2mJ9kwuIMh1uf8Fm7w4FvSgQ==",
    "N1sM54KWdMOmLE3f4a8jjlxBg5hQxNDdcupMjyw6uw2ow2FmazyftoR+q9tVp4QC7wDS7FUuLCDU7EU5l1imVw==",
    "R+2xBpbdQ2cXFosiIUgF0Jd5gB9wn25FJPolkbk3RtgMWrI6nygmY9JMwBuSlzfg8xX8/LuUtDuDZbqScttuPA==",
    "mrUvE3lrrQ4x5ONcrbT8HjjfYmxnHIfhh0JiqXEF7xuktXS+jQ0y10Lnf1+Ot3SYUI+hz2IKVt4LhNOIaLvshg==",
    "mrUvE3lrrQ4x5ONcrbT8HjjfYmxnHIfhh0JiqXEF7xuktXS+jQ0y10Lnf1+Ot3SYUI+hz2IKVt4LhNOIaLvshg==",
    "f+Q4OMdapp6Y5Ni/ReFuKdBc2o+h5cVAHTdoEV2TD3Axa4V1h/RMkWYN2UA6aZWvAL7xevQdvQXfG+gmnTifHQ==",
];

#[test]
fn references_are_not_saved() {
    let text = format!("let a: A = {{}} let b: B = #{}", Hash([9; 64]));
    let declared = facts::resolve(&declared(&text).expect("declarations"), Vec::new());
    let refused = facts::saved(declared.expect("facts")).expect_err("a reference");
    assert_eq!(
        refused.to_string(),
        "References are not allowed while saving."
    );
}

#[test]
fn a_fact_with_an_impossible_role_is_refused() {
    let text = "let a: A = { __proto__: me }";
    let me = facts::resolve(
        &declared("let user: Jinaga.User = {}").expect("a user"),
        Vec::new(),
    );
    let mut known = me.expect("a user");
    known[0].name = "me".into();
    let refused = facts::resolve(&declared(text).expect("declarations"), known);
    assert_eq!(
        refused.expect_err("a role without a hash").to_string(),
        "'a' cannot be a fact: no role can be called '__proto__'"
    );
}

#[test]
fn the_facts_of_the_caller_come_first() {
    let user = facts::resolve(
        &declared("let user: Jinaga.User = {}").expect("a user"),
        Vec::new(),
    );
    let mut known = user.expect("a user");
    known[0].name = "me".into();
    let me = known[0].reference.clone();
    let text = "let a: A = { by: me }";
    let all = facts::resolve(&declared(text).expect("declarations"), known).expect("facts");
    assert_eq!(all[0].reference, me);
    let by = all[1]
        .fact
        .as_ref()
        .map(|fact| fact.predecessors[0].1.references());
    assert_eq!(by, Some([me].as_slice()));
}
