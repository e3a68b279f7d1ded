//! Random facts and specifications, small enough that most of them find something.

use std::sync::Arc;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::json;
use wakeline_feed::{
    fact::{Fact, Predecessors, Reference},
    query::Query,
    specification::{
        Component, Condition, Existential, GivenLabel, Label, Match, Name, Path, Projection, Role,
        SingleProjection, Specification,
    },
    store::{Seq, Store},
};

use crate::{build::build, plain_evaluator::PlainEvaluator, saving::save};

const KINDS: [&str; 3] = ["A", "B", "C"];
const ROLES: [&str; 2] = ["r", "s"];

/// The seeds of a case: a given one, or new ones, printed so that a failure can be repeated.
pub(crate) fn seeds(many: usize) -> Vec<u64> {
    match std::env::var("WAKELINE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..many).map(|_| rand::random()).collect(),
    }
}

pub(crate) struct Random(pub(crate) StdRng);

/// Random facts that are stored.
pub(crate) struct StoredFacts {
    pub(crate) random: Random,
    pub(crate) seqs: Vec<Seq>,
    pub(crate) plain: PlainEvaluator,
}

/// A specification, and facts to begin with.
pub(crate) struct RandomCase {
    pub(crate) specification: Specification,
    pub(crate) query: Arc<Query>,
    /// By their numbers.
    pub(crate) given: Vec<usize>,
    pub(crate) references: Vec<Reference>,
}

impl StoredFacts {
    pub(crate) async fn save(store: &dyn Store, seed: u64, count: usize) -> Self {
        let mut random = Random::new(seed);
        let facts = random.facts(count, seed);
        Self {
            random,
            seqs: save(store, &facts).await,
            plain: PlainEvaluator { facts },
        }
    }

    /// At most so many: a specification without givens among the facts is left out.
    pub(crate) fn cases(&mut self, count: usize, projects: bool) -> Vec<RandomCase> {
        let facts = &self.plain.facts;
        let cases = (0..count).filter_map(|_| {
            let specification = self.random.specification(projects);
            let given = self.random.given(&specification, facts)?;
            let references = given.iter().map(|number| facts[*number].reference.clone());
            Some(RandomCase {
                query: Arc::new(Query::of_specification(&specification).unwrap()),
                references: references.collect(),
                specification,
                given,
            })
        });
        cases.collect()
    }

    pub(crate) fn seq(&self, reference: &Reference) -> Seq {
        let mut facts = self.plain.facts.iter();
        self.seqs[facts.position(|fact| fact.reference == *reference).unwrap()]
    }
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        eprintln!("WAKELINE_SEED={seed}");
        Self(StdRng::seed_from_u64(seed))
    }

    pub(crate) fn chance(&mut self, of_ten: u32) -> bool {
        self.0.random_range(0..10) < of_ten
    }

    fn kind(&mut self) -> &'static str {
        KINDS.choose(&mut self.0).unwrap()
    }

    /// Unique by the seed, so that many can share a store.
    pub(crate) fn facts(&mut self, many: usize, seed: u64) -> Vec<Fact> {
        let mut facts: Vec<Fact> = Vec::new();
        for number in 0..many {
            let mut roles = Vec::new();
            for role in ROLES {
                if facts.is_empty() || self.chance(3) {
                    continue;
                }
                let predecessors = if self.chance(6) {
                    Predecessors::One(facts.choose(&mut self.0).unwrap().reference.clone())
                } else {
                    let many = self.0.random_range(0..4);
                    let each = |_| facts.choose(&mut self.0).unwrap().reference.clone();
                    Predecessors::Many((0..many).map(each).collect())
                };
                roles.push((role.into(), predecessors));
            }
            let mut fields = json!({ "n": number, "seed": seed.to_string() });
            if number % 3 > 0 {
                fields["f"] = json!([1, { "x": null }]);
            }
            facts.push(build(self.kind(), fields, roles));
        }
        facts
    }

    pub(crate) fn specification(&mut self, projects: bool) -> Specification {
        let mut known: Vec<Label> = Vec::new();
        for number in 0..self.0.random_range(1..3) {
            known.push(Label {
                name: format!("g{number}").into(),
                kind: self.kind().into(),
            });
        }
        let givens: Vec<GivenLabel> = known
            .clone()
            .into_iter()
            .map(|label| GivenLabel {
                conditions: if self.chance(1) {
                    vec![self.existential(&known, 1)]
                } else {
                    Vec::new()
                },
                label,
            })
            .collect();
        let many = self.0.random_range(1..4);
        let matches = self.matches(&mut known, many, 0);
        let projection = if projects {
            self.projection(&known, 0)
        } else {
            Projection::empty()
        };
        Specification {
            givens,
            matches,
            projection,
        }
    }

    fn matches(&mut self, known: &mut Vec<Label>, many: usize, depth: usize) -> Vec<Match> {
        (0..many)
            .map(|_| {
                let wanted = self.wanted(known, depth);
                known.push(wanted.unknown.clone());
                wanted
            })
            .collect()
    }

    fn wanted(&mut self, known: &[Label], depth: usize) -> Match {
        let name: Name = format!("u{}", known.len()).into();
        let (path, kind) = self.path(known, None);
        let unknown = Label {
            name,
            kind: kind.as_str().into(),
        };
        let mut conditions = vec![Condition::Path(path)];
        if self.chance(3) {
            let (path, _) = self.path(known, Some(&kind));
            conditions.push(Condition::Path(path));
        }
        if depth < 2 && self.chance(4) {
            let mut inside = known.to_vec();
            inside.push(unknown.clone());
            let existential = self.existential(&inside, depth + 1);
            conditions.push(Condition::Existential(existential));
        }
        Match {
            unknown,
            conditions,
        }
    }

    fn existential(&mut self, known: &[Label], depth: usize) -> Existential {
        let mut known = known.to_vec();
        let many = self.0.random_range(1..3);
        Existential {
            exists: self.chance(4),
            matches: self.matches(&mut known, many, depth),
        }
    }

    /// A path and the type of its unknown, which may be decided already.
    fn path(&mut self, known: &[Label], kind: Option<&str>) -> (Path, String) {
        loop {
            let from = known.choose(&mut self.0).unwrap().clone();
            let left = self.roles(&[6, 3]);
            let right = self.roles(&[3, 2]);
            let met = right.last().map_or(&from.kind, |role| &role.kind).clone();
            let mut path = Path {
                left,
                right_label: from.name,
                right,
            };
            let unknown = match path.left.last_mut() {
                Some(last) => {
                    last.kind = met;
                    kind.map_or_else(|| self.kind().to_owned(), str::to_owned)
                }
                None if kind.is_some_and(|kind| *met != *kind) => continue,
                None => met.to_string(),
            };
            return (path, unknown);
        }
    }

    fn roles(&mut self, chances: &[u32]) -> Vec<Role> {
        let mut roles = Vec::new();
        for chance in chances {
            if !self.chance(*chance) {
                break;
            }
            roles.push(Role {
                name: (*ROLES.choose(&mut self.0).unwrap()).into(),
                kind: self.kind().into(),
            });
        }
        roles
    }

    fn projection(&mut self, known: &[Label], depth: usize) -> Projection {
        match self.0.random_range(0..6) {
            0 => Projection::empty(),
            1 => Projection::Single(self.single(known)),
            _ => {
                let many = self.0.random_range(1..4);
                let components = (0..many).map(|number| {
                    let name: Name = format!("c{number}").into();
                    if depth < 2 && self.chance(5) {
                        let mut known = known.to_vec();
                        let many = self.0.random_range(1..3);
                        let matches = self.matches(&mut known, many, 1);
                        let projection = self.projection(&known, depth + 1);
                        let inner = Component::Collection {
                            matches,
                            projection,
                        };
                        return (name, inner);
                    }
                    (name, Component::Single(self.single(known)))
                });
                Projection::Composite(components.collect())
            }
        }
    }

    fn single(&mut self, known: &[Label]) -> SingleProjection {
        let label = known.choose(&mut self.0).unwrap().name.clone();
        match self.0.random_range(0..5) {
            0 => SingleProjection::Hash(label),
            1 => SingleProjection::Fact(label),
            2 => SingleProjection::Field {
                label,
                field: "f".into(),
            },
            _ => SingleProjection::Field {
                label,
                field: "n".into(),
            },
        }
    }

    /// Facts of the right types for the givens, if there are any.
    pub(crate) fn given(
        &mut self,
        specification: &Specification,
        facts: &[Fact],
    ) -> Option<Vec<usize>> {
        specification
            .givens
            .iter()
            .map(|given| {
                let fitting: Vec<usize> = (0..facts.len())
                    .filter(|number| facts[*number].reference.kind == given.label.kind)
                    .collect();
                fitting.choose(&mut self.0).copied()
            })
            .collect()
    }
}
