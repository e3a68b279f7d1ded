//! Specifications evaluated the plain way: every fact is tried for every unknown.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wakeline_feed::{
    fact::{Fact, Reference},
    specification::{
        Component, Condition, Existential, Match, Name, Path, Projection, Role, SingleProjection,
        Specification,
    },
};

#[derive(Default)]
pub(crate) struct PlainEvaluator {
    pub(crate) facts: Vec<Fact>,
}

/// Facts by label, as numbers.
type FactsByLabel = BTreeMap<Name, usize>;

impl PlainEvaluator {
    pub(crate) fn tuples(
        &self,
        specification: &Specification,
        given: &[usize],
    ) -> Vec<Vec<Reference>> {
        let unknowns: Vec<Name> = unknowns(&specification.matches);
        let tuples = self.start(specification, given).into_iter();
        tuples
            .map(|known| {
                let fact = |name| self.facts[known[name]].reference.clone();
                unknowns.iter().map(fact).collect()
            })
            .collect()
    }

    pub(crate) fn read(&self, specification: &Specification, given: &[usize]) -> Vec<Value> {
        let (matches, projection) = (&specification.matches, &specification.projection);
        self.start(specification, given)
            .iter()
            .map(|known| self.project(known, &unknowns(matches), projection))
            .collect()
    }

    fn start(&self, specification: &Specification, given: &[usize]) -> Vec<FactsByLabel> {
        let givens = &specification.givens;
        let known: FactsByLabel = givens
            .iter()
            .zip(given)
            .map(|(label, fact)| (label.label.name.clone(), *fact))
            .collect();
        let conditions = givens.iter().flat_map(|given| &given.conditions);
        for condition in conditions {
            if !self.holds(&known, condition) {
                return Vec::new();
            }
        }
        self.matches(known, &specification.matches)
    }

    fn matches(&self, known: FactsByLabel, matches: &[Match]) -> Vec<FactsByLabel> {
        let mut all = vec![known];
        for wanted in matches {
            all = all
                .into_iter()
                .flat_map(|known| self.match_rows(&known, wanted))
                .collect();
        }
        all
    }

    fn match_rows(&self, known: &FactsByLabel, wanted: &Match) -> Vec<FactsByLabel> {
        let right = (0..self.facts.len())
            .filter(|number| self.facts[*number].reference.kind == wanted.unknown.kind);
        right
            .filter_map(|number| {
                let mut inside = known.clone();
                inside.insert(wanted.unknown.name.clone(), number);
                let holds = wanted.conditions.iter().all(|condition| match condition {
                    Condition::Path(path) => self.meets(known, number, path),
                    Condition::Existential(existential) => self.holds(&inside, existential),
                });
                holds.then_some(inside)
            })
            .collect()
    }

    fn meets(&self, known: &FactsByLabel, unknown: usize, path: &Path) -> bool {
        let left = self.walk(unknown, &path.left);
        let right = self.walk(known[&path.right_label], &path.right);
        left.iter().any(|fact| right.contains(fact))
    }

    fn walk(&self, from: usize, roles: &[Role]) -> Vec<usize> {
        let mut all = vec![from];
        for role in roles {
            all = all
                .into_iter()
                .flat_map(|fact| self.facts[fact].references())
                .filter(|(name, reference)| *name == &*role.name && reference.kind == role.kind)
                .filter_map(|(_, reference)| self.number(reference))
                .collect();
        }
        all
    }

    fn number(&self, reference: &Reference) -> Option<usize> {
        self.facts
            .iter()
            .position(|fact| fact.reference == *reference)
    }

    fn holds(&self, known: &FactsByLabel, existential: &Existential) -> bool {
        let found = self.matches(known.clone(), &existential.matches);
        found.is_empty() != existential.exists
    }

    fn project(&self, known: &FactsByLabel, unknowns: &[Name], projection: &Projection) -> Value {
        match projection {
            Projection::Single(single) => self.single(known, single).unwrap_or(Value::Null),
            Projection::Composite(components) if components.is_empty() => {
                let fields = unknowns
                    .iter()
                    .map(|name| (name.to_string(), self.fields(known[name])));
                Value::Object(fields.collect())
            }
            Projection::Composite(components) => {
                let mut object = Map::new();
                for (name, component) in components {
                    let value = match component {
                        Component::Single(single) => self.single(known, single),
                        Component::Collection {
                            matches,
                            projection,
                        } => {
                            let all = self.matches(known.clone(), matches);
                            let names: Vec<Name> = self::unknowns(matches);
                            let values = all
                                .iter()
                                .map(|known| self.project(known, &names, projection));
                            Some(values.collect())
                        }
                    };
                    if let Some(value) = value {
                        object.insert(name.to_string(), value);
                    }
                }
                Value::Object(object)
            }
        }
    }

    fn single(&self, known: &FactsByLabel, single: &SingleProjection) -> Option<Value> {
        match single {
            SingleProjection::Field { label, field } => {
                self.fields(known[label]).get(&**field).cloned()
            }
            SingleProjection::Hash(label) => {
                let hash = self.facts[known[label]].reference.hash;
                Some(json!(hash.to_string()))
            }
            SingleProjection::Fact(label) => Some(self.whole(known[label])),
            // Only the store knows the time.
            SingleProjection::Time(_) => None,
        }
    }

    fn fields(&self, number: usize) -> Value {
        serde_json::from_str(&self.facts[number].fields).unwrap()
    }

    fn whole(&self, number: usize) -> Value {
        let fact = &self.facts[number];
        let mut whole = self.fields(number);
        whole["type"] = json!(&*fact.reference.kind);
        let at = |reference: &Reference| self.whole(self.number(reference).unwrap());
        for (role, predecessors) in &fact.predecessors {
            whole[&**role] = match predecessors {
                wakeline_feed::fact::Predecessors::One(one) => at(one),
                wakeline_feed::fact::Predecessors::Many(many) => many.iter().map(at).collect(),
            };
        }
        whole
    }
}

fn unknowns(matches: &[Match]) -> Vec<Name> {
    matches
        .iter()
        .map(|found| found.unknown.name.clone())
        .collect()
}

/// With arrays in one order: results have one, but not this evaluator's.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => {
            let mut values: Vec<Value> = values.into_iter().map(sorted).collect();
            values.sort_by_key(Value::to_string);
            Value::Array(values)
        }
        Value::Object(members) => {
            let members = members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}
