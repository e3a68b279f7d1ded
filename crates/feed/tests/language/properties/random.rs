//! Random specifications that are right.

use proptest::prelude::*;
use wakeline_feed::specification::{
    Component, Condition, Existential, GivenLabel, Label, Match, Path, Projection, Role,
    SingleProjection, Specification,
};

const KINDS: [&str; 3] = ["A", "B", "C.D"];
const MAX_DEPTH: usize = 3;

pub(crate) fn specification() -> impl Strategy<Value = Specification> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(|choices| {
        let mut maker = Maker {
            choices: choices.into_iter(),
        };
        maker.specification()
    })
}

/// Decides by a list of choices; when it is used up everything becomes as small as possible.
struct Maker {
    choices: std::vec::IntoIter<u8>,
}

impl Maker {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.choices.next().unwrap_or(0)) % limit
    }

    fn specification(&mut self) -> Specification {
        let mut known = Vec::new();
        let givens = (0..=self.below(3)).map(|_| {
            let label = self.label(&known);
            known.push(label.clone());
            let conditions = match self.below(4) {
                3 => vec![self.existential(&known, &label, 1)],
                _ => Vec::new(),
            };
            GivenLabel { label, conditions }
        });
        let givens = givens.collect();
        let matches = self.matches(&mut known, 0, None);
        let projection = self.projection(&known, 0);
        Specification {
            givens,
            matches,
            projection,
        }
    }

    /// Names come again where they are not known: a condition's behind it.
    fn label(&mut self, known: &[Label]) -> Label {
        let taken = |name: &str| known.iter().any(|label| &*label.name == name);
        let names = ["x", "E", "let", "Every", "y1", "_"].map(str::to_owned);
        let mut names = names.into_iter().chain((0..).map(|n| format!("z{n}")));
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        Label {
            name: name.into(),
            kind: KINDS[self.below(KINDS.len())].into(),
        }
    }

    /// One or more if they have to be of `owner`, else any number.
    fn matches(
        &mut self,
        known: &mut Vec<Label>,
        depth: usize,
        owner: Option<&Label>,
    ) -> Vec<Match> {
        let mut matches = Vec::new();
        for index in 0..self.below(3) + usize::from(owner.is_some()) {
            let unknown = self.label(known);
            let right = match owner {
                Some(owner) if index == 0 => owner.clone(),
                _ => known[self.below(known.len())].clone(),
            };
            let mut conditions = vec![Condition::Path(self.path(&unknown, &right, false))];
            if self.below(4) == 3 {
                let right = known[self.below(known.len())].clone();
                conditions.push(Condition::Path(self.path(&unknown, &right, true)));
            }
            known.push(unknown.clone());
            while depth < MAX_DEPTH && self.below(3) == 2 {
                let condition = self.existential(known, &unknown, depth + 1);
                conditions.push(Condition::Existential(condition));
            }
            matches.push(Match {
                unknown,
                conditions,
            });
        }
        matches
    }

    fn existential(&mut self, known: &[Label], owner: &Label, depth: usize) -> Existential {
        Existential {
            exists: self.below(3) == 2,
            matches: self.matches(&mut known.to_vec(), depth, Some(owner)),
        }
    }

    fn path(&mut self, unknown: &Label, right: &Label, with_roles: bool) -> Path {
        let mut up = self.roles();
        let mut down = self.roles();
        if down.is_empty() && up.is_empty() && (with_roles || unknown.kind != right.kind) {
            down.push(self.role());
        }
        let end = up.last().map_or(&right.kind, |role| &role.kind).clone();
        if let Some(last) = down.last_mut() {
            last.kind = end;
        } else if let Some(last) = up.last_mut() {
            last.kind = unknown.kind.clone();
        }
        Path {
            left: down,
            right_label: right.name.clone(),
            right: up,
        }
    }

    fn roles(&mut self) -> Vec<Role> {
        (0..self.below(3)).map(|_| self.role()).collect()
    }

    fn role(&mut self) -> Role {
        Role {
            name: ["r", "s"][self.below(2)].into(),
            kind: KINDS[self.below(KINDS.len())].into(),
        }
    }

    fn projection(&mut self, known: &[Label], depth: usize) -> Projection {
        if self.below(4) == 3 {
            return Projection::Single(self.single(known));
        }
        let components = (0..self.below(4)).map(|index| {
            let component = if depth < MAX_DEPTH && self.below(2) == 1 {
                let mut known = known.to_vec();
                Component::Collection {
                    matches: self.matches(&mut known, 1, None),
                    projection: self.projection(&known, depth + 1),
                }
            } else {
                Component::Single(self.single(known))
            };
            // In the order that they are described in.
            (format!("c{index}").into(), component)
        });
        Projection::Composite(components.collect())
    }

    fn single(&mut self, known: &[Label]) -> SingleProjection {
        let label = known[self.below(known.len())].name.clone();
        match self.below(4) {
            0 => SingleProjection::Fact(label),
            1 => SingleProjection::Hash(label),
            2 => SingleProjection::Time(label),
            _ => SingleProjection::Field {
                label,
                field: "f".into(),
            },
        }
    }
}
