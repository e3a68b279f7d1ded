//! What a stream has been told of and has not looked for yet.

use std::{collections::BTreeSet, sync::Arc};

use crate::{bookmark::Bookmark, pages::Page, store::Position};

/// Facts that may have brought tuples. A fact leaves by a query that was asked after it came, tuple
/// or not: nothing is waited for that may never be.
#[derive(Debug)]
pub struct Waitlist {
    facts: BTreeSet<Position>,
    /// The order was settled up to here when the last of them came.
    to: Position,
    /// What the feed stands on has changed: it is read from its beginning.
    begins_anew: bool,
    known: Option<Known>,
    cap: usize,
    peak: usize,
}

/// What the facts that came last have brought, where they say it themselves.
#[derive(Clone, Debug)]
pub struct Known {
    /// Every tuple after this is on the page.
    pub after: Position,
    /// The first of them.
    pub first: Position,
    /// The last page up to here.
    pub page: Arc<Page>,
}

impl Waitlist {
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            facts: BTreeSet::new(),
            to: 0,
            begins_anew: false,
            known: None,
            cap,
            peak: 0,
        }
    }

    /// Instead of what was known before.
    pub fn know(&mut self, known: Known) {
        self.known = Some(known);
    }

    /// What comes after `at` up to `to`, if that is known. Only what came last is: of a stream that is
    /// behind, nothing.
    #[must_use]
    pub fn known(&self, at: &Bookmark, to: Position) -> Option<Arc<Page>> {
        let (Bookmark::Finished(at), Some(known)) = (at, &self.known) else {
            return None;
        };
        let is_it =
            (known.after..known.first).contains(at) && known.page.reached == Bookmark::Finished(to);
        is_it.then(|| known.page.clone())
    }

    /// `false` when there are more than may wait.
    #[must_use]
    pub fn add(&mut self, fact: Position, to: Position) -> bool {
        self.to = self.to.max(to);
        if self.facts.len() < self.cap || self.facts.contains(&fact) {
            self.facts.insert(fact);
            self.peak = self.peak.max(self.facts.len());
            return true;
        }
        false
    }

    pub fn begin_anew(&mut self, to: Position) {
        self.to = self.to.max(to);
        self.begins_anew = true;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && !self.begins_anew
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// What has to be looked at: everything after `after`, up to `to`. Never an empty span: it would
    /// be looked at for ever, since its fact stays.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        if self.begins_anew {
            return Some(Span {
                after: 0,
                to: self.to,
            });
        }
        let first = *self.facts.first()?;
        (first <= self.to).then_some(Span {
            after: first - 1,
            to: self.to,
        })
    }

    /// All up to `to` has been looked at, by a query that was asked after it came.
    pub fn settle(&mut self, to: Position) {
        if to >= self.to {
            self.begins_anew = false;
        }
        self.facts = self.facts.split_off(&(to + 1));
        // It would keep its page for as long as nothing else comes.
        self.known.take_if(|known| known.page.reached.base() <= to);
    }

    /// The most that ever waited.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub after: Position,
    pub to: Position,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_that_comes_twice_waits_once() {
        let mut list = Waitlist::new(10);
        assert!(list.add(5, 7) && list.add(5, 8) && list.add(9, 9));
        assert_eq!((list.len(), list.peak()), (2, 2));
        assert_eq!(list.span(), Some(Span { after: 4, to: 9 }));
    }

    #[test]
    fn what_came_after_the_query_stays() {
        let mut list = Waitlist::new(10);
        assert!(list.add(5, 6) && list.add(8, 8));
        list.settle(6);
        assert_eq!(list.span(), Some(Span { after: 7, to: 8 }));
        list.settle(8);
        assert!(list.is_empty() && list.span().is_none());
        assert_eq!(list.peak(), 2);
    }

    #[test]
    fn what_is_not_settled_is_not_looked_at() {
        let mut list = Waitlist::new(10);
        assert!(list.add(6, 5));
        assert_eq!(list.span(), None);
        assert!(list.add(7, 7));
        assert_eq!(list.span(), Some(Span { after: 5, to: 7 }));
    }

    #[test]
    fn more_than_the_cap_is_said() {
        let mut list = Waitlist::new(2);
        assert!(list.add(1, 1) && list.add(2, 2) && list.add(2, 2));
        assert!(!list.add(3, 3));
    }

    fn known(after: Position, first: Position, to: Position) -> Known {
        let page = Page {
            references: Vec::new(),
            tuples: 1,
            reached: Bookmark::Finished(to),
            is_last: true,
        };
        Known {
            after,
            first,
            page: Arc::new(page),
        }
    }

    #[test]
    fn what_is_known_is_the_whole_span_or_nothing() {
        let mut list = Waitlist::new(10);
        list.know(known(5, 8, 9));
        let is_known = |list: &Waitlist, at, to| list.known(&at, to).is_some();
        assert!(is_known(&list, Bookmark::Finished(5), 9));
        assert!(is_known(&list, Bookmark::Finished(7), 9));
        // Something may be before it; the first is told already; something is after it.
        assert!(!is_known(&list, Bookmark::Finished(4), 9));
        assert!(!is_known(&list, Bookmark::Finished(8), 9));
        assert!(!is_known(&list, Bookmark::Finished(7), 10));
        assert!(!is_known(&list, Bookmark::Start, 9));
        list.know(known(9, 11, 12));
        assert!(!is_known(&list, Bookmark::Finished(7), 12));
        list.settle(11);
        assert!(is_known(&list, Bookmark::Finished(10), 12));
        list.settle(12);
        assert!(!is_known(&list, Bookmark::Finished(10), 12));
    }

    #[test]
    fn what_a_feed_stands_on_changes_all_of_it() {
        let mut list = Waitlist::new(2);
        list.begin_anew(7);
        assert!(list.add(9, 9));
        assert_eq!(list.span(), Some(Span { after: 0, to: 9 }));
        list.settle(7);
        assert_eq!(list.span(), Some(Span { after: 0, to: 9 }));
        list.settle(9);
        assert!(list.is_empty());
    }
}
