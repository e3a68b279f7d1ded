//! A rule's specification as a query that keeps its labels, so that it can be run from any of its
//! facts on.

use std::sync::Arc;

use crate::{
    query::{Edge, Error, Exists, Query},
    specification::{Name, Specification},
};

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    query: Query,
    /// Of the givens and the matches, with their variables.
    labels: Vec<(Name, usize)>,
}

impl Pattern {
    pub(super) fn of(specification: &Specification) -> Result<Self, Error> {
        let query = Query::of_specification(specification)?;
        let givens = specification.givens.iter().enumerate();
        let givens = givens.map(|(index, given)| (given.label.name.clone(), index));
        let matches = specification.matches.iter().zip(&query.outputs);
        let matches = matches.map(|(one, &output)| (one.unknown.name.clone(), output));
        Ok(Self {
            labels: givens.chain(matches).collect(),
            query,
        })
    }

    pub(super) fn query(&self) -> &Query {
        &self.query
    }

    pub(super) fn variable(&self, label: &Name) -> Option<usize> {
        // A feed can name a given twice; the last one counts.
        let mut labels = self.labels.iter().rev();
        labels.find(|(name, _)| name == label).map(|(_, at)| *at)
    }

    /// As a query from these variables on, that finds nothing but whether there is anything.
    pub(super) fn from(&self, roots: &[usize]) -> Arc<Query> {
        self.part_from(roots, |_| true, &[])
    }

    /// The same for the variables that `is_kept` selects: edges to others are left out. `outputs`
    /// are the variables of a tuple.
    pub(super) fn part_from(
        &self,
        roots: &[usize],
        is_kept: impl Fn(usize) -> bool,
        outputs: &[usize],
    ) -> Arc<Query> {
        let query = &self.query;
        let is_wanted = |variable: usize| roots.contains(&variable) || is_kept(variable);
        let edges = query.edges.iter();
        let edges: Vec<&Edge> = edges
            .filter(|edge| is_wanted(edge.successor) && is_wanted(edge.predecessor))
            .collect();
        let mut order: Vec<usize> = roots.to_vec();
        while let Some(next) = next_of(&order, &edges) {
            order.push(next);
        }
        let before = query.variables.len();
        // A variable that only a condition uses is not connected by an edge.
        let conditions = query.conditions.iter();
        let spoken_of = conditions.flat_map(|condition| condition.outer(before));
        for one in spoken_of.filter(|one| is_wanted(*one)) {
            if !order.contains(&one) {
                order.push(one);
            }
        }
        let after = order.len();
        let place = |variable: usize| match order.iter().position(|one| *one == variable) {
            Some(place) => place,
            None => variable + after - before,
        };
        let equals = query.equals.iter();
        Arc::new(Query {
            givens: roots.len(),
            variables: order
                .iter()
                .map(|one| query.variables[*one].clone())
                .collect(),
            edges: edges.iter().map(|edge| placed(edge, &place)).collect(),
            equals: equals
                .filter(|(one, other)| order.contains(one) && order.contains(other))
                .map(|(one, other)| (place(*one), place(*other)))
                .collect(),
            conditions: placed_all(&query.conditions, &place),
            outputs: outputs.iter().map(|output| place(*output)).collect(),
        })
    }
}

/// One not yet in order that an edge connects with it; else any that an edge still lacks.
fn next_of(order: &[usize], edges: &[&Edge]) -> Option<usize> {
    let lacks = |one: usize| !order.contains(&one);
    let connected =
        edges.iter().find_map(
            |edge| match (lacks(edge.successor), lacks(edge.predecessor)) {
                (true, false) => Some(edge.successor),
                (false, true) => Some(edge.predecessor),
                _ => None,
            },
        );
    connected.or_else(|| {
        let mut ends = edges
            .iter()
            .flat_map(|edge| [edge.successor, edge.predecessor]);
        ends.find(|one| lacks(*one))
    })
}

fn placed(edge: &Edge, place: &impl Fn(usize) -> usize) -> Edge {
    Edge {
        successor: place(edge.successor),
        role: edge.role.clone(),
        predecessor: place(edge.predecessor),
    }
}

fn placed_all(conditions: &[Exists], place: &impl Fn(usize) -> usize) -> Vec<Exists> {
    let conditions = conditions.iter().map(|condition| Exists {
        exists: condition.exists,
        variables: condition.variables.clone(),
        edges: condition
            .edges
            .iter()
            .map(|edge| placed(edge, place))
            .collect(),
        equals: condition
            .equals
            .iter()
            .map(|(one, other)| (place(*one), place(*other)))
            .collect(),
        conditions: placed_all(&condition.conditions, place),
    });
    conditions.collect()
}
