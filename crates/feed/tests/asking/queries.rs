//! Queries from specifications.

use wakeline_feed::{
    query::{Error, Exists, MAX_VARIABLES, Query},
    specification::{Condition, Existential, Label, Match, Path, Role},
};

// Not by their texts: the parser refuses some of them.

fn label(name: &str, kind: &str) -> Label {
    let (name, kind) = (name.into(), kind.into());
    Label { name, kind }
}

fn roles(roles: &[(&str, &str)]) -> Vec<Role> {
    let roles = roles.iter().map(|(name, kind)| Role {
        name: (*name).into(),
        kind: (*kind).into(),
    });
    roles.collect()
}

/// `unknown->left = right->…`
fn path(left: &[(&str, &str)], label: &str, right: &[(&str, &str)]) -> Condition {
    Condition::Path(Path {
        left: roles(left),
        right_label: label.into(),
        right: roles(right),
    })
}

fn exists(exists: bool, matches: Vec<Match>) -> Condition {
    Condition::Existential(Existential { exists, matches })
}

fn found(name: &str, kind: &str, conditions: Vec<Condition>) -> Match {
    Match {
        unknown: label(name, kind),
        conditions,
    }
}

#[test]
fn a_path_of_several_roles_has_hidden_variables() {
    let way = path(&[("a", "A"), ("b", "B")], "g", &[("c", "C"), ("b", "B")]);
    let query = Query::of(&[label("g", "G")], &[found("x", "X", vec![way])]).unwrap();
    let kinds: Vec<&str> = query.variables.iter().map(|kind| &**kind).collect();
    assert_eq!(kinds, ["G", "C", "B", "A", "X"]);
    assert_eq!(query.outputs, [4]);
    assert_eq!(query.hidden(), [[1, 2, 3]]);
    assert_eq!(query.arrivals(), [0, 4]);
}

#[test]
fn a_path_without_roles_is_the_same_fact() {
    let same = found("x", "G", vec![path(&[], "g", &[])]);
    let query = Query::of(&[label("g", "G")], &[same]).unwrap();
    assert_eq!((query.variables.len(), &*query.outputs), (1, &[0][..]));
    let both = found("x", "G", vec![path(&[], "g", &[]), path(&[], "h", &[])]);
    let query = Query::of(&[label("g", "G"), label("h", "G")], &[both]).unwrap();
    assert_eq!(query.equals, [(0, 1)]);
}

#[test]
fn variables_of_conditions_are_numbered_after_those_around_them() {
    let inner = found("z", "Z", vec![path(&[("y", "Y")], "y", &[])]);
    let next = vec![path(&[("x", "X")], "x", &[]), exists(true, vec![inner])];
    let condition = exists(false, vec![found("y", "Y", next)]);
    let x = found("x", "X", vec![path(&[("g", "G")], "g", &[]), condition]);
    let w = found("w", "W", vec![path(&[("g", "G")], "g", &[])]);
    let query = Query::of(&[label("g", "G")], &[x, w]).unwrap();
    let outer = &query.conditions[0];
    let ends = |of: &Exists| (of.edges[0].successor, of.edges[0].predecessor);
    assert_eq!(ends(outer), (3, 1));
    assert_eq!(ends(&outer.conditions[0]), (4, 3));
    assert_eq!(outer.outer(3), [1]);
}

#[test]
fn an_invalid_specification_is_refused_with_a_reason() {
    let error = |wanted| Query::of(&[label("g", "G")], &[wanted]).unwrap_err();
    let strange = found("x", "X", vec![path(&[("g", "G")], "h", &[])]);
    assert_eq!(error(strange), Error::UnknownLabel("h".into()));
    let lonely = found("x", "X", Vec::new());
    assert_eq!(error(lonely), Error::Unconnected("x".into()));
    let wrong = found("x", "X", vec![path(&[("g", "H")], "g", &[])]);
    assert!(matches!(error(wrong), Error::Mismatch { .. }));
    let way: Vec<(&str, &str)> = vec![("g", "G"); MAX_VARIABLES + 1];
    let large = found("x", "X", vec![path(&way, "g", &[])]);
    assert_eq!(error(large), Error::TooLarge);
    let mut deep = found("x", "X", vec![path(&[("g", "G")], "g", &[])]);
    for _ in 0..20 {
        let inside = exists(true, vec![deep]);
        deep = found("x", "X", vec![path(&[("g", "G")], "g", &[]), inside]);
    }
    assert_eq!(error(deep), Error::TooDeep);
}
