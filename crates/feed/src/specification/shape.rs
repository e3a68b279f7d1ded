//! What can be said of a specification without asking for a single fact.

use crate::{
    fact::Kind,
    specification::{Component, Match, Path, Projection, Specification},
};

impl Specification {
    /// Its only results are its givens.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.only_paths(Path::is_identity)
    }

    /// Its results follow from its givens alone: nothing that is saved later can change them.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.only_paths(|path| path.left.is_empty())
    }

    fn only_paths(&self, hold: impl Fn(&Path) -> bool) -> bool {
        self.matches
            .iter()
            .all(|found| found.existentials().next().is_none() && found.paths().all(&hold))
    }

    /// Whether a match, conditions aside, is found by going to successors.
    #[must_use]
    pub fn seeks_successors(&self) -> bool {
        self.matches
            .iter()
            .flat_map(Match::paths)
            .any(|path| !path.left.is_empty())
    }

    /// All types that it names, each once, in the order of the text.
    #[must_use]
    pub fn kinds(&self) -> Vec<&Kind> {
        let mut kinds = Vec::new();
        for given in &self.givens {
            kinds.push(&given.label.kind);
            for condition in &given.conditions {
                kinds_of_matches(&condition.matches, &mut kinds);
            }
        }
        kinds_of_matches(&self.matches, &mut kinds);
        kinds_of_projection(&self.projection, &mut kinds);
        let mut seen = std::collections::HashSet::new();
        kinds.retain(|kind| seen.insert(*kind));
        kinds
    }

    /// Without the projections that find nothing: what is left decides which feeds there are.
    #[must_use]
    pub fn reduced(&self) -> Self {
        Self {
            givens: self.givens.clone(),
            matches: self.matches.clone(),
            projection: reduced(&self.projection),
        }
    }
}

fn kinds_of_matches<'a>(matches: &'a [Match], kinds: &mut Vec<&'a Kind>) {
    for found in matches {
        kinds.push(&found.unknown.kind);
        for path in found.paths() {
            kinds.extend(path.left.iter().chain(&path.right).map(|role| &role.kind));
        }
        for condition in found.existentials() {
            kinds_of_matches(&condition.matches, kinds);
        }
    }
}

fn kinds_of_projection<'a>(projection: &'a Projection, kinds: &mut Vec<&'a Kind>) {
    for (_, component) in projection.components() {
        if let Component::Collection {
            matches,
            projection,
        } = component
        {
            kinds_of_matches(matches, kinds);
            kinds_of_projection(projection, kinds);
        }
    }
}

fn reduced(projection: &Projection) -> Projection {
    let collections =
        projection
            .components()
            .iter()
            .filter_map(|(name, component)| match component {
                Component::Single(_) => None,
                Component::Collection {
                    matches,
                    projection,
                } => Some((
                    name.clone(),
                    Component::Collection {
                        matches: matches.clone(),
                        projection: reduced(projection),
                    },
                )),
            });
    Projection::Composite(collections.collect())
}
