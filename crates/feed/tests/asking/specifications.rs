//! Short ways to write specifications.

use wakeline_feed::specification::{
    Condition, Existential, GivenLabel, Label, Match, Path, Projection, Role, Specification,
};

pub(crate) fn label(name: &str, kind: &str) -> Label {
    Label {
        name: name.into(),
        kind: kind.into(),
    }
}

fn roles(roles: &[(&str, &str)]) -> Vec<Role> {
    roles
        .iter()
        .map(|(name, kind)| Role {
            name: (*name).into(),
            kind: (*kind).into(),
        })
        .collect()
}

/// `unknown->left = right->…`
pub(crate) fn path(left: &[(&str, &str)], label: &str, right: &[(&str, &str)]) -> Condition {
    Condition::Path(Path {
        left: roles(left),
        right_label: label.into(),
        right: roles(right),
    })
}

pub(crate) fn exists(exists: bool, matches: Vec<Match>) -> Condition {
    Condition::Existential(Existential { exists, matches })
}

pub(crate) fn found(name: &str, kind: &str, conditions: Vec<Condition>) -> Match {
    Match {
        unknown: label(name, kind),
        conditions,
    }
}

pub(crate) fn specification(
    givens: &[Label],
    matches: Vec<Match>,
    projection: Projection,
) -> Specification {
    let givens = givens.iter().map(|label| GivenLabel {
        label: label.clone(),
        conditions: Vec::new(),
    });
    Specification {
        givens: givens.collect(),
        matches,
        projection,
    }
}

/// Sites have posts, posts have comments.
pub(crate) fn posts() -> (Vec<Label>, Vec<Match>) {
    let post = found("post", "Post", vec![path(&[("site", "Site")], "site", &[])]);
    (vec![label("site", "Site")], vec![post])
}

pub(crate) fn comments() -> (Vec<Label>, Vec<Match>) {
    let (givens, mut matches) = posts();
    let comment = path(&[("post", "Post")], "post", &[]);
    matches.push(found("comment", "Comment", vec![comment]));
    (givens, matches)
}
