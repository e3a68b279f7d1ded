//! The givens that results show although no feed delivers them: the given itself, or a predecessor
//! of it, where no successor is looked for. For feeds the rules for feeds are checked, for these
//! givens the rules for facts.

use std::collections::{HashMap, HashSet};

use crate::specification::{Component, Match, Name, Projection, Specification};

/// The numbers of the givens that are shown, or whose predecessors are, other than in rows of a
/// feed that begins with them.
pub fn bare_givens(specification: &Specification) -> Vec<usize> {
    let names = specification.givens.iter().map(|given| &given.label.name);
    let mut level = Level {
        above: names
            .enumerate()
            .map(|(number, name)| (name, HashSet::from([number])))
            .collect(),
        used: HashSet::new(),
        is_feed: false,
    };
    let mut bare = HashSet::new();
    level.walk(&specification.matches, &specification.projection, &mut bare);
    let mut bare: Vec<usize> = bare.into_iter().collect();
    bare.sort_unstable();
    bare
}

#[derive(Clone)]
struct Level<'a> {
    /// The givens that a label is a predecessor of, or is itself.
    above: HashMap<&'a Name, HashSet<usize>>,
    /// The facts that the rows of this level begin with.
    used: HashSet<usize>,
    /// Whether the rows are those of a feed: they are there for a successor that is found.
    is_feed: bool,
}

impl<'a> Level<'a> {
    fn walk(
        &mut self,
        matches: &'a [Match],
        projection: &'a Projection,
        bare: &mut HashSet<usize>,
    ) {
        for found in matches {
            let mut above = HashSet::new();
            for path in found.paths() {
                let from = self.above.get(&path.right_label).cloned();
                self.used.extend(from.iter().flatten());
                if path.left.is_empty() {
                    above.extend(from.into_iter().flatten());
                } else {
                    self.is_feed = true;
                }
            }
            if !above.is_empty() {
                self.above.insert(&found.unknown.name, above);
            }
        }
        if let Projection::Single(single) = projection {
            self.show(single.label(), bare);
        }
        for (_, component) in projection.components() {
            match component {
                Component::Single(single) => self.show(single.label(), bare),
                Component::Collection {
                    matches,
                    projection,
                } => self.clone().walk(matches, projection, bare),
            }
        }
    }

    fn show(&self, label: &Name, bare: &mut HashSet<usize>) {
        let above = self.above.get(label).into_iter().flatten();
        bare.extend(above.filter(|given| !(self.is_feed && self.used.contains(given))));
    }
}

#[cfg(test)]
mod tests {
    use super::bare_givens;
    use crate::specification::parser;

    #[test]
    fn a_given_is_bare_where_it_is_shown_without_a_successor() {
        let posts = "{ p: Post [p->site: Site = s] }";
        let user = "{ u: User [u = s->creator: User] }";
        let cases: [(String, &[usize]); 9] = [
            ("(s: Site) { } => s".into(), &[0]),
            ("(s: Site) { } => s.name".into(), &[0]),
            (format!("(s: Site) {user} => u"), &[0]),
            (format!("(s: Site) {posts} => p"), &[]),
            (format!("(s: Site) {posts} => {{ p = p s = s }}"), &[]),
            (
                format!("(s: Site, t: Site) {posts} => {{ p = p t = #t }}"),
                &[1],
            ),
            (
                format!("(s: Site) {{ }} => {{ posts = {posts} => p }}"),
                &[],
            ),
            (
                format!("(s: Site) {{ }} => {{ s = s posts = {posts} => p }}"),
                &[0],
            ),
            (
                format!("(s: Site) {{ }} => {{ x = {user} => u posts = {posts} => p }}"),
                &[0],
            ),
        ];
        for (text, bare) in cases {
            let specification =
                parser::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(bare_givens(&specification), bare, "{text}");
        }
    }
}
