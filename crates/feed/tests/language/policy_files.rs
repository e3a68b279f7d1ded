//! Policy files as text.

use wakeline_feed::policy_file::{AllowedUsers, PolicyFile};

const FILE: &str = "
authorization {
    any Jinaga.User
    no Blog.Secret
    (post: Blog.Post) { author: Jinaga.User [ author = post->author: Jinaga.User ] } => author
}
distribution {
    share (site: Blog.Site) { post: Blog.Post [ post->site: Blog.Site = site ] } => post
    with everyone
    share (site: Blog.Site) { draft: Blog.Draft [ draft->site: Blog.Site = site ] }
    with (site: Blog.Site) { user: Jinaga.User [ user = site->creator: Jinaga.User ] } => user
}
purge {
    (site: Blog.Site) { closed: Blog.Closed [ closed->site: Blog.Site = site ] }
}
authorization { any Blog.Post }
";

#[test]
fn a_file_has_rules_of_three_sorts() {
    let file = PolicyFile::parse(FILE).expect("a file");
    let kinds: Vec<_> = file.authorization.iter().map(|rule| &*rule.kind).collect();
    assert_eq!(
        kinds,
        ["Jinaga.User", "Blog.Secret", "Blog.Post", "Blog.Post"]
    );
    assert_eq!(file.authorization[0].who, AllowedUsers::Anybody);
    assert_eq!(file.authorization[1].who, AllowedUsers::Nobody);
    assert!(
        matches!(&file.authorization[2].who, AllowedUsers::Users(found) if found.matches.len() == 1)
    );
    assert_eq!(file.distribution.len(), 2);
    assert_eq!(file.distribution[0].with, None);
    let with = file.distribution[1].with.as_ref().expect("a user");
    assert_eq!(&*with.matches[0].unknown.kind, "Jinaga.User");
    assert_eq!(file.purge.len(), 1);
}

#[test]
fn files_are_merged_in_order() {
    let mut merged = PolicyFile::parse("authorization { any A }").expect("a file");
    merged.merge(PolicyFile::parse("authorization { no B }").expect("a file"));
    let kinds: Vec<_> = merged
        .authorization
        .iter()
        .map(|rule| &*rule.kind)
        .collect();
    assert_eq!(kinds, ["A", "B"]);
}

#[test]
fn an_empty_file_has_no_rules() {
    assert_eq!(PolicyFile::parse("\u{feff}\r\n"), Ok(PolicyFile::default()));
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let cases = [
        (
            "nonsense",
            "Expected 'authorization', 'distribution', 'purge' or end of input but found 'nonsense' (line 1, column 1)",
        ),
        ("authorization { any }", "Expected type but found '}'"),
        ("authorization { anyA }", "Expected '(' but found 'anyA }'"),
        (
            "authorization {\n (a: A, b: B) {} => a }",
            "A specification in an authorization rule must have exactly one given label (line 2, column 2)",
        ),
        (
            "distribution { (a: A) {} }",
            "Expected 'share' but found '(a: A) {} }'",
        ),
        (
            "distribution { share (a: A) {} }",
            "Expected 'with' but found '}'",
        ),
        ("purge {", "Expected '(' but found ''"),
    ];
    for (text, expected) in cases {
        let error = PolicyFile::parse(text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
