//! How a specification is read: a query per level of its projections.

use std::sync::Arc;

use super::Error;
use crate::{
    query::Query,
    specification::{Component, Label, Match, Name, Projection, SingleProjection, Specification},
};

/// A specification that can be read.
#[derive(Debug)]
pub struct Plan {
    pub(super) top: LevelPlan,
}

#[derive(Debug)]
pub(super) struct LevelPlan {
    /// Its givens are all labels of the levels above.
    pub(super) query: Arc<Query>,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// Without a projection: the fields of each fact that was found, by label.
    Fields(Vec<(Name, usize)>),
    Single(FactProjection),
    Composite(Vec<(Name, PlanPart)>),
}

#[derive(Debug)]
pub(super) enum PlanPart {
    Single(FactProjection),
    Collection(LevelPlan),
}

/// The part of a fact of the tuple that the result shows.
#[derive(Debug)]
pub(super) struct FactProjection {
    pub(super) place: usize,
    pub(super) what: FactPart,
}

#[derive(Debug)]
pub(super) enum FactPart {
    Field(Name),
    Hash,
    Time,
    Fact,
}

impl Plan {
    pub fn of(specification: &Specification) -> Result<Self, Error> {
        let query = Query::of_specification(specification)?;
        let labels: Vec<Label> = specification
            .givens
            .iter()
            .map(|given| given.label.clone())
            .collect();
        let (matches, projection) = (&specification.matches, &specification.projection);
        let top = level(query, labels, matches, projection)?;
        Ok(Self { top })
    }
}

fn level(
    query: Query,
    mut labels: Vec<Label>,
    matches: &[Match],
    projection: &Projection,
) -> Result<LevelPlan, Error> {
    let above = labels.len();
    labels.extend(matches.iter().map(|found| found.unknown.clone()));
    let shape = match projection {
        Projection::Single(single) => Shape::Single(take(&labels, single)?),
        Projection::Composite(components) if components.is_empty() => {
            let found = labels.iter().enumerate().skip(above);
            Shape::Fields(
                found
                    .map(|(place, label)| (label.name.clone(), place))
                    .collect(),
            )
        }
        Projection::Composite(components) => {
            let mut parts = Vec::with_capacity(components.len());
            for (name, component) in components {
                let part = match component {
                    Component::Single(single) => PlanPart::Single(take(&labels, single)?),
                    Component::Collection {
                        matches,
                        projection,
                    } => {
                        let query = Query::of(&labels, matches)?;
                        PlanPart::Collection(level(query, labels.clone(), matches, projection)?)
                    }
                };
                parts.push((name.clone(), part));
            }
            Shape::Composite(parts)
        }
    };
    Ok(LevelPlan {
        query: Arc::new(query),
        shape,
    })
}

fn take(labels: &[Label], single: &SingleProjection) -> Result<FactProjection, Error> {
    let (label, what) = match single {
        SingleProjection::Field { label, field } => (label, FactPart::Field(field.clone())),
        SingleProjection::Hash(label) => (label, FactPart::Hash),
        SingleProjection::Time(label) => (label, FactPart::Time),
        SingleProjection::Fact(label) => (label, FactPart::Fact),
    };
    // An inner label hides an outer one of the same name.
    let place = labels.iter().rposition(|known| known.name == *label);
    let place = place.ok_or_else(|| Error::UnknownLabel(label.clone()))?;
    Ok(FactProjection { place, what })
}
