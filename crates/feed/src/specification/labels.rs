//! Other names for the same labels.

use std::collections::HashSet;

use crate::specification::{
    Component, Condition, Existential, GivenLabel, Label, Match, Name, Path, Projection,
    SingleProjection, Specification,
};

impl Specification {
    /// With other names for its labels. Who gives two labels of one scope the same name gets
    /// another specification.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(&Name) -> Name) -> Self {
        let mut names = RenamedLabels(name);
        Self {
            givens: names.givens(&self.givens),
            matches: names.matches(&self.matches),
            projection: names.projection(&self.projection),
        }
    }

    /// With a name of its own for every label that can come into one feed. Names in conditions and
    /// collections are forgotten behind them, and may come again; in a feed they stand side by
    /// side.
    #[must_use]
    pub fn distinct(&self) -> Self {
        let mut names = DistinctNames {
            all: self.label_names(),
            known: Vec::new(),
            used: HashSet::new(),
        };
        for given in &self.givens {
            names.introduce(&given.label.name);
        }
        Self {
            givens: self.givens.clone(),
            matches: names.matches(&self.matches),
            projection: names.projection(&self.projection),
        }
    }

    /// All names of labels, those of conditions and collections too.
    #[must_use]
    pub fn label_names(&self) -> HashSet<Name> {
        let mut names = HashSet::new();
        for given in &self.givens {
            names.insert(given.label.name.clone());
            for condition in &given.conditions {
                names_of_matches(&condition.matches, &mut names);
            }
        }
        names_of_matches(&self.matches, &mut names);
        names_of_projection(&self.projection, &mut names);
        names
    }
}

/// `base` itself, or with a number that makes it new.
#[must_use]
pub fn fresh(base: &Name, taken: impl Fn(&Name) -> bool) -> Name {
    if !taken(base) {
        return base.clone();
    }
    let mut number = 2_usize;
    loop {
        let name = format!("{base}_{number}").into();
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}

fn names_of_matches(matches: &[Match], names: &mut HashSet<Name>) {
    for found in matches {
        names.insert(found.unknown.name.clone());
        for condition in found.existentials() {
            names_of_matches(&condition.matches, names);
        }
    }
}

fn names_of_projection(projection: &Projection, names: &mut HashSet<Name>) {
    for (_, component) in projection.components() {
        if let Component::Collection {
            matches,
            projection,
        } = component
        {
            names_of_matches(matches, names);
            names_of_projection(projection, names);
        }
    }
}

/// A walk over a specification that gives labels their names.
trait LabelNames {
    /// Of a label that is introduced here.
    fn introduce(&mut self, name: &Name) -> Name;
    /// Of a label that is used here.
    fn of(&self, name: &Name) -> Name;
    fn existential(&mut self, condition: &Existential) -> Existential;
    fn collection(&mut self, matches: &[Match], projection: &Projection) -> Component;

    fn givens(&mut self, givens: &[GivenLabel]) -> Vec<GivenLabel> {
        let mut renamed = Vec::new();
        for given in givens {
            let label = Label {
                name: self.introduce(&given.label.name),
                kind: given.label.kind.clone(),
            };
            let conditions = given.conditions.iter();
            renamed.push(GivenLabel {
                label,
                conditions: conditions.map(|c| self.existential(c)).collect(),
            });
        }
        renamed
    }

    fn matches(&mut self, matches: &[Match]) -> Vec<Match> {
        matches.iter().map(|found| self.one_match(found)).collect()
    }

    fn one_match(&mut self, found: &Match) -> Match {
        let name = self.introduce(&found.unknown.name);
        let conditions = found.conditions.iter().map(|condition| match condition {
            Condition::Path(path) => Condition::Path(Path {
                right_label: self.of(&path.right_label),
                ..path.clone()
            }),
            Condition::Existential(condition) => {
                Condition::Existential(self.existential(condition))
            }
        });
        let conditions = conditions.collect();
        Match {
            unknown: Label {
                name,
                kind: found.unknown.kind.clone(),
            },
            conditions,
        }
    }

    fn projection(&mut self, projection: &Projection) -> Projection {
        let components = match projection {
            Projection::Single(single) => return Projection::Single(self.single(single)),
            Projection::Composite(components) => components,
        };
        let components = components.iter().map(|(name, component)| {
            let component = match component {
                Component::Single(single) => Component::Single(self.single(single)),
                Component::Collection {
                    matches,
                    projection,
                } => self.collection(matches, projection),
            };
            (name.clone(), component)
        });
        Projection::Composite(components.collect())
    }

    fn single(&self, single: &SingleProjection) -> SingleProjection {
        match single {
            SingleProjection::Field { label, field } => SingleProjection::Field {
                label: self.of(label),
                field: field.clone(),
            },
            SingleProjection::Hash(label) => SingleProjection::Hash(self.of(label)),
            SingleProjection::Time(label) => SingleProjection::Time(self.of(label)),
            SingleProjection::Fact(label) => SingleProjection::Fact(self.of(label)),
        }
    }
}

struct RenamedLabels<F>(F);

impl<F: Fn(&Name) -> Name> LabelNames for RenamedLabels<F> {
    fn introduce(&mut self, name: &Name) -> Name {
        (self.0)(name)
    }

    fn of(&self, name: &Name) -> Name {
        (self.0)(name)
    }

    fn existential(&mut self, condition: &Existential) -> Existential {
        Existential {
            exists: condition.exists,
            matches: self.matches(&condition.matches),
        }
    }

    fn collection(&mut self, matches: &[Match], projection: &Projection) -> Component {
        Component::Collection {
            matches: self.matches(matches),
            projection: self.projection(projection),
        }
    }
}

struct DistinctNames {
    all: HashSet<Name>,
    /// The names in scope, old and new; the last of a name counts.
    known: Vec<(Name, Name)>,
    /// The new names on the way of a tuple to here.
    used: HashSet<Name>,
}

impl LabelNames for DistinctNames {
    fn introduce(&mut self, name: &Name) -> Name {
        let new = if self.used.contains(name) {
            fresh(name, |name| self.all.contains(name))
        } else {
            name.clone()
        };
        self.all.insert(new.clone());
        self.used.insert(new.clone());
        self.known.push((name.clone(), new.clone()));
        new
    }

    fn of(&self, name: &Name) -> Name {
        let mut known = self.known.iter().rev();
        known
            .find(|(old, _)| old == name)
            .map_or_else(|| name.clone(), |(_, new)| new.clone())
    }

    fn existential(&mut self, condition: &Existential) -> Existential {
        // Its names stay used: its facts come into a tuple, and other matches and collections after
        // them.
        let mark = self.known.len();
        let matches = self.matches(&condition.matches);
        self.known.truncate(mark);
        Existential {
            exists: condition.exists,
            matches,
        }
    }

    fn collection(&mut self, matches: &[Match], projection: &Projection) -> Component {
        let used = self.used.clone();
        let mark = self.known.len();
        let component = Component::Collection {
            matches: self.matches(matches),
            projection: self.projection(projection),
        };
        self.known.truncate(mark);
        self.used = used;
        component
    }
}
