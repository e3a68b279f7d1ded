//! Queries from specifications.

use wakeline_feed::query::{Error, MAX_VARIABLES, Query};

use crate::specifications::{exists, found, label, path};

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
fn conditions_are_numbered_after_what_they_are_conditions_of() {
    let inner = found("z", "Z", vec![path(&[("y", "Y")], "y", &[])]);
    let next = vec![path(&[("x", "X")], "x", &[]), exists(true, vec![inner])];
    let condition = exists(false, vec![found("y", "Y", next)]);
    let x = found("x", "X", vec![path(&[("g", "G")], "g", &[]), condition]);
    let w = found("w", "W", vec![path(&[("g", "G")], "g", &[])]);
    let query = Query::of(&[label("g", "G")], &[x, w]).unwrap();
    let outer = &query.conditions[0];
    assert_eq!(
        (outer.edges[0].successor, outer.edges[0].predecessor),
        (3, 1)
    );
    let inner = &outer.conditions[0];
    assert_eq!(
        (inner.edges[0].successor, inner.edges[0].predecessor),
        (4, 3)
    );
    assert_eq!(outer.outer(3), [1]);
}

#[test]
fn what_cannot_be_asked_says_why() {
    let of = |wanted| Query::of(&[label("g", "G")], &[wanted]).unwrap_err();
    let strange = found("x", "X", vec![path(&[("g", "G")], "h", &[])]);
    assert_eq!(of(strange), Error::UnknownLabel("h".into()));
    let lonely = found("x", "X", Vec::new());
    assert_eq!(of(lonely), Error::Unconnected("x".into()));
    let wrong = found("x", "X", vec![path(&[("g", "H")], "g", &[])]);
    assert!(matches!(of(wrong), Error::Mismatch { .. }));
    let way: Vec<(&str, &str)> = vec![("g", "G"); MAX_VARIABLES + 1];
    assert_eq!(
        of(found("x", "X", vec![path(&way, "g", &[])])),
        Error::TooLarge
    );
    let mut deep = found("x", "X", vec![path(&[("g", "G")], "g", &[])]);
    for _ in 0..20 {
        let inside = exists(true, vec![deep]);
        deep = found("x", "X", vec![path(&[("g", "G")], "g", &[]), inside]);
    }
    assert_eq!(of(deep), Error::TooDeep);
}
