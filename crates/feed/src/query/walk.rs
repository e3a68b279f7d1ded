//! The order in which the variables of a query are found, each from one found before.

use super::{Edge, Exists, Query};

/// How all variables are found, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Edges, by their number, that are checked before the first step.
    pub first: Vec<usize>,
    pub steps: Vec<WalkStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkStep {
    pub variable: usize,
    pub by: FoundBy,
    /// Edges that must hold too and whose ends are known from here on.
    pub edges: Vec<usize>,
}

/// How a variable is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The variable is a successor of a found one.
    Down { edge: usize },
    /// The variable is a predecessor of a found one.
    Up { edge: usize },
    /// All facts of its type.
    Type,
}

impl Query {
    /// From the givens on, in the order of the variables.
    #[must_use]
    pub fn top_down(&self) -> Walk {
        let known = (0..self.variables.len()).map(|variable| variable < self.givens);
        let wanted = (self.givens..self.variables.len()).collect();
        Walker::new(&self.edges, known.collect()).walk(Vec::new(), wanted, false)
    }

    /// From all facts of one variable's type, and as far as possible to predecessors.
    #[must_use]
    pub fn bottom_up(&self, start: usize) -> Walk {
        let known = (0..self.variables.len()).map(|variable| variable < self.givens);
        let wanted = (self.givens..self.variables.len())
            .filter(|variable| *variable != start)
            .collect();
        Walker::new(&self.edges, known.collect()).walk(vec![start], wanted, true)
    }

    /// From some variables that are known to others.
    #[must_use]
    pub fn from_known(&self, known: &[usize], wanted: Vec<usize>) -> Walk {
        let known = (0..self.variables.len()).map(|variable| known.contains(&variable));
        Walker::new(&self.edges, known.collect()).walk(Vec::new(), wanted, true)
    }
}

impl Exists {
    /// From all that it is a condition of.
    #[must_use]
    pub fn walk(&self, base: usize) -> Walk {
        let all = base + self.variables.len();
        let known = (0..all).map(|variable| variable < base).collect();
        Walker::new(&self.edges, known).walk(Vec::new(), (base..all).collect(), false)
    }
}

struct Walker<'a> {
    edges: &'a [Edge],
    known: Vec<bool>,
    used: Vec<bool>,
}

impl<'a> Walker<'a> {
    fn new(edges: &'a [Edge], known: Vec<bool>) -> Self {
        Self {
            used: vec![false; edges.len()],
            edges,
            known,
        }
    }

    fn walk(mut self, start: Vec<usize>, mut wanted: Vec<usize>, is_upward_first: bool) -> Walk {
        let mut walk = Walk {
            first: self.settled(),
            steps: Vec::new(),
        };
        for variable in start {
            walk.steps.push(self.step(variable, FoundBy::Type));
        }
        while !wanted.is_empty() {
            let up = wanted
                .iter()
                .position(|variable| matches!(self.way(*variable), Some(FoundBy::Up { .. })));
            let any = wanted
                .iter()
                .position(|variable| self.way(*variable).is_some());
            let next = up.filter(|_| is_upward_first).or(any).unwrap_or(0);
            let variable = wanted.remove(next);
            let by = self.way(variable).unwrap_or(FoundBy::Type);
            walk.steps.push(self.step(variable, by));
        }
        walk
    }

    fn step(&mut self, variable: usize, by: FoundBy) -> WalkStep {
        if let FoundBy::Down { edge } | FoundBy::Up { edge } = by {
            self.used[edge] = true;
        }
        self.known[variable] = true;
        WalkStep {
            variable,
            by,
            edges: self.settled(),
        }
    }

    /// Up first: a fact has few predecessors and may have many successors.
    fn way(&self, variable: usize) -> Option<FoundBy> {
        let up = self
            .edges
            .iter()
            .position(|edge| edge.predecessor == variable && self.known[edge.successor]);
        let down = self
            .edges
            .iter()
            .position(|edge| edge.successor == variable && self.known[edge.predecessor]);
        up.map(|edge| FoundBy::Up { edge })
            .or(down.map(|edge| FoundBy::Down { edge }))
    }

    /// Edges that no step uses and whose ends are known by now.
    fn settled(&mut self) -> Vec<usize> {
        let mut settled = Vec::new();
        for (number, edge) in self.edges.iter().enumerate() {
            if !self.used[number] && self.known[edge.successor] && self.known[edge.predecessor] {
                self.used[number] = true;
                settled.push(number);
            }
        }
        settled
    }
}
