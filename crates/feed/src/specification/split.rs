//! Splits a specification: a head that follows from the given facts alone, and a tail that has to
//! be searched.

use crate::specification::{
    Component, Condition, GivenLabel, Label, Match, Name, Path, Projection, Role, SingleProjection,
    Specification, labels::fresh,
};

/// The head's projection names the givens of the tail: the fact itself if there is one, else a
/// composite with a component for each, of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Goes only to predecessors. `None` where the first match already needs more.
    pub head: Option<Specification>,
    /// `None` where the head is all.
    pub tail: Option<Specification>,
}

impl Specification {
    /// Cuts before the first match, or within the match's path, that goes to successors or has more
    /// than one condition. Conditions of givens have to be looked for before anything else.
    #[must_use]
    pub fn split_before_successors(&self) -> Split {
        if self.givens.iter().any(|given| !given.conditions.is_empty()) {
            return self.only_tail();
        }
        let Some(at) = self.matches.iter().position(needs_looking) else {
            return Split {
                head: Some(self.clone()),
                tail: None,
            };
        };
        let (before, rest) = self.matches.split_at(at);
        let pivot = &rest[0];
        let mut paths = pivot.paths();
        let (Some(path), None) = (paths.next(), paths.next()) else {
            return self.only_tail();
        };
        match path.right.last() {
            None if at == 0 => self.only_tail(),
            None => self.cut(before.to_vec(), rest.to_vec(), None),
            Some(last) => self.cut_path(before, rest, path, last),
        }
    }

    fn only_tail(&self) -> Split {
        Split {
            head: None,
            tail: Some(self.clone()),
        }
    }

    /// The path's steps to predecessors belong to the head, which finds a fact that the
    /// specification has no label for.
    fn cut_path(&self, before: &[Match], rest: &[Match], path: &Path, last: &Role) -> Split {
        let names = self.label_names();
        let between = Label {
            name: fresh(&"s1".into(), |name| names.contains(name)),
            kind: last.kind.clone(),
        };
        let mut head = before.to_vec();
        head.push(Match {
            unknown: between.clone(),
            conditions: vec![Condition::Path(Path {
                left: Vec::new(),
                ..path.clone()
            })],
        });
        let mut tail = rest.to_vec();
        let onward = Condition::Path(Path {
            left: path.left.clone(),
            right_label: between.name.clone(),
            right: Vec::new(),
        });
        let existentials = rest[0].existentials().cloned().map(Condition::Existential);
        tail[0].conditions = std::iter::once(onward).chain(existentials).collect();
        self.cut(head, tail, Some(between))
    }

    fn cut(&self, head: Vec<Match>, tail: Vec<Match>, between: Option<Label>) -> Split {
        let unknowns = self.matches.iter().map(|found| found.unknown.clone());
        let labels: Vec<GivenLabel> = self
            .givens
            .iter()
            .cloned()
            .chain(unknowns.chain(between).map(|label| GivenLabel {
                label,
                conditions: Vec::new(),
            }))
            .collect();
        let mut projected = Vec::new();
        names_in_projection(&self.projection, &mut projected);
        let tail_givens = referenced(&tail, projected, &labels);
        let passed_on = tail_givens.iter().map(|given| &given.label.name).collect();
        let head_givens = referenced(&head, passed_on, &self.givens);
        Split {
            head: Some(Specification {
                givens: head_givens,
                matches: head,
                projection: facts(&tail_givens),
            }),
            tail: Some(Specification {
                givens: tail_givens,
                matches: tail,
                projection: self.projection.clone(),
            }),
        }
    }
}

fn needs_looking(found: &Match) -> bool {
    match found.conditions.as_slice() {
        [Condition::Path(path)] => !path.left.is_empty(),
        _ => true,
    }
}

fn facts(givens: &[GivenLabel]) -> Projection {
    if let [given] = givens {
        return Projection::Single(SingleProjection::Fact(given.label.name.clone()));
    }
    let components = givens.iter().map(|given| {
        let name = &given.label.name;
        (
            name.clone(),
            Component::Single(SingleProjection::Fact(name.clone())),
        )
    });
    Projection::Composite(components.collect())
}

/// The labels that the matches, or the other names, need from outside.
fn referenced<'a>(
    matches: &'a [Match],
    named: Vec<&'a Name>,
    labels: &[GivenLabel],
) -> Vec<GivenLabel> {
    let mut names = named;
    names_in_matches(matches, &mut names);
    let outside = |name: &Name| !matches.iter().any(|found| found.unknown.name == *name);
    labels
        .iter()
        .filter(|given| names.contains(&&given.label.name) && outside(&given.label.name))
        .cloned()
        .collect()
}

fn names_in_matches<'a>(matches: &'a [Match], names: &mut Vec<&'a Name>) {
    for found in matches {
        names.extend(found.paths().map(|path| &path.right_label));
        for condition in found.existentials() {
            names_in_matches(&condition.matches, names);
        }
    }
}

fn names_in_projection<'a>(projection: &'a Projection, names: &mut Vec<&'a Name>) {
    if let Projection::Single(single) = projection {
        names.push(single.label());
    }
    for (_, component) in projection.components() {
        match component {
            Component::Single(single) => names.push(single.label()),
            Component::Collection {
                matches,
                projection,
            } => {
                names_in_matches(matches, names);
                names_in_projection(projection, names);
            }
        }
    }
}
