//! From tuples to results: the facts that the projections show.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::value::RawValue;
use wakeline_store::Error as StoreError;

use super::{
    Branch, Error, LocatedFact, Value,
    plan::{FactPart, FactProjection, LevelPlan, PlanPart, Shape},
};
use crate::{
    fact::{Predecessors, Reference},
    json,
    store::{Seq, Store, StoredFact},
};

/// Facts per question.
const PAGE: usize = 1_000;
/// A projected fact has its predecessors inside, and they theirs.
const MAX_DEPTH: usize = 100;
/// Facts in one projected fact.
const MAX_FACTS: usize = 10_000;

/// The facts that a chunk shows.
#[derive(Default)]
pub(super) struct ShownFacts {
    facts: HashMap<Seq, StoredFact>,
    places: HashMap<Reference, Seq>,
}

/// Which facts must be loaded.
#[derive(Default)]
struct FactsToLoad {
    alone: BTreeSet<Seq>,
    with_ancestors: BTreeSet<Seq>,
}

impl ShownFacts {
    pub(super) async fn load(
        store: &dyn Store,
        level: &LevelPlan,
        branches: &[Branch],
        max_rows: usize,
    ) -> Result<Self, Error> {
        let mut needed = FactsToLoad::default();
        needed.collect(level, branches);
        let mut all = needed.alone;
        if !needed.with_ancestors.is_empty() {
            let of = needed.with_ancestors.into_iter().collect();
            all.extend(store.closure(of).await?);
        }
        if all.len() > max_rows {
            return Err(Error::TooLarge(max_rows));
        }
        let all: Vec<Seq> = all.into_iter().collect();
        let mut shown = Self::default();
        for page in all.chunks(PAGE) {
            for stored in store.facts(page.to_vec()).await? {
                let reference = stored.fact.reference.clone();
                shown.places.insert(reference, stored.seq);
                shown.facts.insert(stored.seq, stored);
            }
        }
        Ok(shown)
    }

    pub(super) fn value(&self, level: &LevelPlan, branch: &Branch) -> Result<Value, Error> {
        match &level.shape {
            Shape::Fields(labels) => {
                let fields = labels.iter().map(|(name, place)| {
                    let (seq, _) = &branch.tuple[*place];
                    let value = match self.facts.get(seq) {
                        Some(stored) => raw(stored.fact.fields.to_string())?,
                        None => Value::Missing,
                    };
                    Ok((name.clone(), value))
                });
                Ok(Value::Object(fields.collect::<Result<_, Error>>()?))
            }
            Shape::Single(take) => self.take(take, &branch.tuple),
            Shape::Composite(parts) => {
                let mut collections = branch.collections.iter();
                let members = parts.iter().map(|(name, part)| {
                    let value = match part {
                        PlanPart::Single(take) => self.take(take, &branch.tuple)?,
                        PlanPart::Collection(level) => {
                            let inner = collections.next().map_or(&[][..], |inner| inner);
                            let values = inner.iter().map(|branch| self.value(level, branch));
                            Value::Array(values.collect::<Result<_, _>>()?)
                        }
                    };
                    Ok((name.clone(), value))
                });
                Ok(Value::Object(members.collect::<Result<_, Error>>()?))
            }
        }
    }

    fn take(&self, take: &FactProjection, tuple: &[LocatedFact]) -> Result<Value, Error> {
        let (seq, reference) = &tuple[take.place];
        if matches!(take.what, FactPart::Hash) {
            return Ok(Value::Text(reference.hash.to_string()));
        }
        // Purged meanwhile.
        let Some(stored) = self.facts.get(seq) else {
            return Ok(Value::Missing);
        };
        match &take.what {
            FactPart::Hash => Ok(Value::Text(reference.hash.to_string())),
            FactPart::Time => Ok(Value::Text(time(stored.saved_at)?)),
            FactPart::Fact => {
                let mut left = MAX_FACTS;
                self.fact(stored, 0, &mut left)
            }
            FactPart::Field(field) => {
                let found = members(&stored.fact.fields)?
                    .into_iter()
                    .find(|(name, _)| name == field);
                Ok(found.map_or(Value::Missing, |(_, value)| value))
            }
        }
    }

    /// The fields, the type, and the predecessors by role.
    fn fact(&self, stored: &StoredFact, depth: usize, left: &mut usize) -> Result<Value, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep(MAX_DEPTH));
        }
        *left = left.checked_sub(1).ok_or(Error::TooLarge(MAX_FACTS))?;
        let mut members = members(&stored.fact.fields)?;
        members.retain(|(name, _)| &**name != "type");
        let kind = stored.fact.reference.kind.to_string();
        members.push(("type".into(), Value::Text(kind)));
        let mut at = |reference: &Reference| {
            let found = self.places.get(reference);
            match found.and_then(|seq| self.facts.get(seq)) {
                Some(stored) => self.fact(stored, depth + 1, left),
                None => Ok(Value::Missing),
            }
        };
        for (role, predecessors) in &stored.fact.predecessors {
            let value = match predecessors {
                Predecessors::One(reference) => at(reference)?,
                Predecessors::Many(references) => {
                    let values = references.iter().map(&mut at);
                    Value::Array(values.collect::<Result<_, _>>()?)
                }
            };
            // A role that has a field's name, or is called `type`, hides it.
            members.retain(|(name, _)| **name != **role);
            members.push((role.as_ref().into(), value));
        }
        Ok(Value::Object(members))
    }
}

impl FactsToLoad {
    fn collect(&mut self, level: &LevelPlan, branches: &[Branch]) {
        match &level.shape {
            Shape::Fields(labels) => {
                for branch in branches {
                    let seqs = labels.iter().map(|(_, place)| branch.tuple[*place].0);
                    self.alone.extend(seqs);
                }
            }
            Shape::Single(take) => self.take(take, branches),
            Shape::Composite(parts) => {
                let mut number = 0;
                for (_, part) in parts {
                    match part {
                        PlanPart::Single(take) => self.take(take, branches),
                        PlanPart::Collection(level) => {
                            for branch in branches {
                                self.collect(level, &branch.collections[number]);
                            }
                            number += 1;
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, take: &FactProjection, branches: &[Branch]) {
        let seqs = branches.iter().map(|branch| branch.tuple[take.place].0);
        match take.what {
            FactPart::Hash => {}
            FactPart::Field(_) | FactPart::Time => self.alone.extend(seqs),
            FactPart::Fact => self.with_ancestors.extend(seqs),
        }
    }
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::Store(StoreError::Failed(format!(
        "what is stored cannot be read: {error}"
    )))
}

fn raw(text: String) -> Result<Value, Error> {
    RawValue::from_string(text)
        .map(Value::Json)
        .map_err(unreadable)
}

/// A fact's fields, in their order.
fn members(fields: &str) -> Result<Vec<(Arc<str>, Value)>, Error> {
    let object = json::parse(fields).map_err(unreadable)?;
    let members = object.as_object().map_or(&[][..], json::Object::members);
    members
        .iter()
        .map(|(name, value)| Ok((name.to_lossy().into(), raw(value.canonical())?)))
        .collect()
}

/// To the millisecond, as JavaScript writes dates.
fn time(micros: i64) -> Result<String, Error> {
    let time = Timestamp::from_millisecond(micros.div_euclid(1_000)).map_err(unreadable)?;
    Ok(format!("{time:.3}"))
}
