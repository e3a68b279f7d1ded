//! The facts that may have brought a stream new tuples, and that it has not read yet.

use std::{collections::BTreeSet, sync::Arc};

use crate::{bookmark::Bookmark, pages::Page, store::Seq};

/// A fact leaves the list when a query has run that began after the fact came, whether it found a
/// tuple or not: so the list never waits for a tuple that does not exist.
#[derive(Debug)]
pub struct Waitlist {
    facts: BTreeSet<Seq>,
    /// The order was settled up to here when the last of them came.
    to: Seq,
    /// A fact that the feed depends on has changed: the feed is read from its beginning.
    restarts: bool,
    ready_page: Option<ReadyPage>,
    cap: usize,
    peak: usize,
}

/// The page that the last facts have brought, where the facts are the tuples themselves.
#[derive(Clone, Debug)]
pub struct ReadyPage {
    /// Every tuple after this is on the page.
    pub after: Seq,
    /// The first of them.
    pub first: Seq,
    /// The last page up to here.
    pub page: Arc<Page>,
}

impl Waitlist {
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            facts: BTreeSet::new(),
            to: 0,
            restarts: false,
            ready_page: None,
            cap,
            peak: 0,
        }
    }

    /// Replaces the last one.
    pub fn set_ready_page(&mut self, known: ReadyPage) {
        self.ready_page = Some(known);
    }

    /// The page after `at` and up to `to`, if the last facts were exactly that. A stream that is
    /// behind has none.
    #[must_use]
    pub fn ready_page(&self, at: &Bookmark, to: Seq) -> Option<Arc<Page>> {
        let (Bookmark::Finished(at), Some(known)) = (at, &self.ready_page) else {
            return None;
        };
        let is_it =
            (known.after..known.first).contains(at) && known.page.reached == Bookmark::Finished(to);
        is_it.then(|| known.page.clone())
    }

    /// `false` when there are more than may wait.
    #[must_use]
    pub fn add(&mut self, fact: Seq, to: Seq) -> bool {
        self.to = self.to.max(to);
        if self.facts.len() < self.cap || self.facts.contains(&fact) {
            self.facts.insert(fact);
            self.peak = self.peak.max(self.facts.len());
            return true;
        }
        false
    }

    pub fn restart(&mut self, to: Seq) {
        self.to = self.to.max(to);
        self.restarts = true;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && !self.restarts
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// The span to read: everything after `after` and up to `to`. Never an empty span: it would
    /// be read for ever, because its fact stays.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        if self.restarts {
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

    /// All up to `to` has been read by a query that began after the facts came.
    pub fn remove_through(&mut self, to: Seq) {
        if to >= self.to {
            self.restarts = false;
        }
        self.facts = self.facts.split_off(&(to + 1));
        // Otherwise the list would keep its page until the next fact comes.
        self.ready_page
            .take_if(|known| known.page.reached.base() <= to);
    }

    /// The most facts that ever waited.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub after: Seq,
    pub to: Seq,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_added_twice_is_waited_for_once() {
        let mut list = Waitlist::new(10);
        assert!(list.add(5, 7) && list.add(5, 8) && list.add(9, 9));
        assert_eq!((list.len(), list.peak()), (2, 2));
        assert_eq!(list.span(), Some(Span { after: 4, to: 9 }));
    }

    #[test]
    fn facts_added_after_the_query_stay_in_the_list() {
        let mut list = Waitlist::new(10);
        assert!(list.add(5, 6) && list.add(8, 8));
        list.remove_through(6);
        assert_eq!(list.span(), Some(Span { after: 7, to: 8 }));
        list.remove_through(8);
        assert!(list.is_empty() && list.span().is_none());
        assert_eq!(list.peak(), 2);
    }

    #[test]
    fn positions_that_are_not_settled_are_not_in_the_span() {
        let mut list = Waitlist::new(10);
        assert!(list.add(6, 5));
        assert_eq!(list.span(), None);
        assert!(list.add(7, 7));
        assert_eq!(list.span(), Some(Span { after: 5, to: 7 }));
    }

    #[test]
    fn a_full_list_refuses_another_fact() {
        let mut list = Waitlist::new(2);
        assert!(list.add(1, 1) && list.add(2, 2) && list.add(2, 2));
        assert!(!list.add(3, 3));
    }

    fn known(after: Seq, first: Seq, to: Seq) -> ReadyPage {
        let page = Page {
            references: Vec::new(),
            tuples: 1,
            reached: Bookmark::Finished(to),
            is_last: true,
        };
        ReadyPage {
            after,
            first,
            page: Arc::new(page),
        }
    }

    #[test]
    fn a_ready_page_is_used_only_if_it_covers_the_whole_span() {
        let mut list = Waitlist::new(10);
        list.set_ready_page(known(5, 8, 9));
        let is_known = |list: &Waitlist, at, to| list.ready_page(&at, to).is_some();
        assert!(is_known(&list, Bookmark::Finished(5), 9));
        assert!(is_known(&list, Bookmark::Finished(7), 9));
        // A fact may be before it; the first fact was sent already; a fact is after it.
        assert!(!is_known(&list, Bookmark::Finished(4), 9));
        assert!(!is_known(&list, Bookmark::Finished(8), 9));
        assert!(!is_known(&list, Bookmark::Finished(7), 10));
        assert!(!is_known(&list, Bookmark::Start, 9));
        list.set_ready_page(known(9, 11, 12));
        assert!(!is_known(&list, Bookmark::Finished(7), 12));
        list.remove_through(11);
        assert!(is_known(&list, Bookmark::Finished(10), 12));
        list.remove_through(12);
        assert!(!is_known(&list, Bookmark::Finished(10), 12));
    }

    #[test]
    fn a_restart_waits_for_all_facts_of_the_feed() {
        let mut list = Waitlist::new(2);
        list.restart(7);
        assert!(list.add(9, 9));
        assert_eq!(list.span(), Some(Span { after: 0, to: 9 }));
        list.remove_through(7);
        assert_eq!(list.span(), Some(Span { after: 0, to: 9 }));
        list.remove_through(9);
        assert!(list.is_empty());
    }
}
