//! What a save can show: the facts that were sent, and those stored that they lead to.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use wakeline_store::Error;

use crate::{
    fact::{Envelope, Fact, Reference},
    specification::{Name, Path, Role, Specification},
    store::Store,
};

/// Facts by label.
pub(super) type Row = HashMap<Name, Reference>;

/// Rows of one rule for one fact.
const MAX_ROWS: usize = 10_000;

#[derive(Debug)]
pub(super) struct Evidence<'a> {
    sent: HashMap<&'a Reference, &'a Fact>,
    envelopes: &'a [Envelope],
    /// `None`: not stored.
    stored: HashMap<Reference, Option<Fact>>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(envelopes: &'a [Envelope]) -> Self {
        let sent = envelopes.iter().map(|one| (&one.fact.reference, &one.fact));
        Self {
            sent: sent.collect(),
            envelopes,
            stored: HashMap::new(),
        }
    }

    /// Runs each specification from the fact with this index on. They go only to predecessors, so
    /// each round loads what all of them need next, and there are no more rounds than steps.
    pub(super) async fn run(
        &mut self,
        store: &dyn Store,
        heads: &[(usize, &Specification)],
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut results: Vec<Option<Vec<Row>>> = vec![None; heads.len()];
        loop {
            let mut missing = HashSet::new();
            for (result, (index, head)) in results.iter_mut().zip(heads) {
                if result.is_none() {
                    let fact = &self.envelopes[*index].fact.reference;
                    *result = self.rows(head, fact, &mut missing);
                }
            }
            if missing.is_empty() {
                return Ok(results.into_iter().map(Option::unwrap_or_default).collect());
            }
            self.load(store, missing.into_iter().collect()).await?;
        }
    }

    /// The key of a user's fact.
    pub(super) fn public_key(&self, user: &Reference) -> Option<String> {
        #[derive(Deserialize)]
        struct Fields {
            #[serde(rename = "publicKey")]
            public_key: Option<String>,
        }
        let fields: Fields = serde_json::from_str(&self.find(user)??.fields).ok()?;
        fields.public_key
    }

    async fn load(&mut self, store: &dyn Store, wanted: Vec<Reference>) -> Result<(), Error> {
        let found = store.find(wanted.clone()).await?;
        let facts = store.facts(found.into_iter().flatten().collect()).await?;
        for reference in wanted {
            self.stored.insert(reference, None);
        }
        for stored in facts {
            self.stored
                .insert(stored.fact.reference.clone(), Some(stored.fact));
        }
        Ok(())
    }

    /// `None`: not loaded yet.
    fn find(&self, reference: &Reference) -> Option<Option<&Fact>> {
        if let Some(sent) = self.sent.get(reference) {
            return Some(Some(sent));
        }
        self.stored.get(reference).map(Option::as_ref)
    }

    /// `None` where facts are missing.
    fn rows(
        &self,
        head: &Specification,
        fact: &Reference,
        missing: &mut HashSet<Reference>,
    ) -> Option<Vec<Row>> {
        let given = head.givens.first().map(|given| given.label.name.clone());
        let mut rows = vec![Row::from_iter(given.map(|name| (name, fact.clone())))];
        for one in &head.matches {
            let mut longer = Vec::new();
            let mut is_complete = true;
            for row in &rows {
                let mut ends: Option<Vec<Reference>> = None;
                for path in one.paths() {
                    let Some(found) = self.follow(row, path, missing) else {
                        is_complete = false;
                        continue;
                    };
                    ends = Some(match ends {
                        None => found,
                        Some(before) => before
                            .into_iter()
                            .filter(|end| found.contains(end))
                            .collect(),
                    });
                }
                for end in ends.into_iter().flatten() {
                    if end.kind == one.unknown.kind && longer.len() < MAX_ROWS {
                        let mut row = row.clone();
                        row.insert(one.unknown.name.clone(), end);
                        longer.push(row);
                    }
                }
            }
            if !is_complete {
                return None;
            }
            rows = longer;
        }
        // The users' keys are read from their facts.
        let ends = rows.iter().flat_map(HashMap::values);
        let unseen: Vec<_> = ends
            .filter(|end| self.find(end).is_none())
            .cloned()
            .collect();
        if unseen.is_empty() {
            Some(rows)
        } else {
            missing.extend(unseen);
            None
        }
    }

    fn follow(
        &self,
        row: &Row,
        path: &Path,
        missing: &mut HashSet<Reference>,
    ) -> Option<Vec<Reference>> {
        let mut facts: Vec<Reference> = row.get(&path.right_label).cloned().into_iter().collect();
        for role in &path.right {
            let mut next = Vec::new();
            let mut is_complete = true;
            for fact in &facts {
                match self.find(fact) {
                    Some(Some(found)) => next.extend(predecessors(found, role).cloned()),
                    Some(None) => {}
                    None => {
                        missing.insert(fact.clone());
                        is_complete = false;
                    }
                }
            }
            if !is_complete {
                return None;
            }
            next.dedup();
            next.truncate(MAX_ROWS);
            facts = next;
        }
        Some(facts)
    }
}

fn predecessors<'a>(fact: &'a Fact, role: &'a Role) -> impl Iterator<Item = &'a Reference> {
    let roles = fact
        .predecessors
        .iter()
        .filter(|(name, _)| **name == *role.name);
    let references = roles.flat_map(|(_, predecessors)| predecessors.references());
    references.filter(|reference| reference.kind == role.kind)
}
