//! Policy files.

use std::{fs, path::Path};

use wakeline_feed::policy::Policies;

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) {
    let file = directory.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn error(directory: &Path) -> String {
    let error = Policies::read(directory).unwrap_err().to_string();
    error.replace(directory.to_str().unwrap(), "DIR")
}

#[test]
fn a_directory_without_policies_and_marker_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "readme.txt", "nothing");
    assert_eq!(
        error(directory.path()),
        "DIR: there is neither a *.policy file nor an empty file named no-security-policies"
    );
}

#[test]
fn the_marker_file_means_no_policies() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "deep/no-security-policies", "");
    assert!(Policies::read(directory.path()).unwrap().is_none());
}

#[test]
fn a_marker_beside_policies_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "no-security-policies", "");
    write(directory.path(), "a.policy", "authorization { any Site }");
    assert_eq!(
        error(directory.path()),
        "DIR: there are *.policy files and a file named no-security-policies; remove one of both"
    );
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = Policies::read(&missing).unwrap_err().to_string();
    assert!(error.starts_with(missing.to_str().unwrap()), "{error}");
}

#[test]
fn policy_files_in_subdirectories_are_read_in_any_unicode_encoding() {
    let directory = tempfile::tempdir().unwrap();
    let text = "purge { (c: Company) { x: Company.Deleted [x->company: Company = c] } }";
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    write(directory.path(), "b/c/wide.policy", wide);
    write(
        directory.path(),
        "a.policy",
        "\u{feff}authorization { any Site }",
    );
    let policies = Policies::read(directory.path()).unwrap().unwrap();
    let wanted = "(u: Jinaga.User) { c: Company [c->creator: Jinaga.User = u] }";
    let wanted = crate::case_facts::specification(wanted);
    assert!(policies.purge.check(&wanted).is_err());
}

#[test]
fn a_mistake_is_named_with_its_file_and_place() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "a.policy", "authorization { any Site }");
    write(
        directory.path(),
        "b/wrong.policy",
        "authorization {\n    any\n}",
    );
    let error = error(directory.path());
    assert!(error.starts_with("DIR/b/wrong.policy: "), "{error}");
    assert!(error.contains("line 3"), "{error}");
}

#[test]
fn an_invalid_rule_is_named_with_its_file() {
    for (text, reason) in [
        (
            "distribution { share (s: Site) { p: Post [p->site: Site = s] } with (c: Company) { u: Jinaga.User [u = c->creator: Jinaga.User] } => u }",
            "givens of the same types",
        ),
        (
            "distribution { share (s: Site) { p: Post [p->site: Site = s] } with (s: Site) { p: Post [p->site: Site = s] } => p }",
            "must be of type Jinaga.User, not Post",
        ),
        (
            "authorization { (s: Site) { p: Post [p->site: Site = s] u: Jinaga.User [u = p->author: Jinaga.User] } => u }",
            "a new fact has no successors",
        ),
        (
            "purge { (s: Site) { p: Post [p->site: Site = s !E { x: Post.Deleted [x->post: Post = p] }] } }",
            "would reverse the purge of Site with Post.Deleted",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "rules.policy", text);
        let error = error(directory.path());
        assert!(error.starts_with("DIR/rules.policy: "), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}
