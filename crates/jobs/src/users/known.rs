//! Users that were asked for just now, so that a request of a known one costs no statement.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;
use uuid::Uuid;
use wakeline_store::Error;

use crate::{store, user::User};

/// How long another node's change may go unseen.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Users kept; past it, all are forgotten and asked for again as they come.
const MAX_USERS: usize = 10_000;

type Answer = Result<Option<User>, Error>;

#[derive(Debug, Default)]
pub(super) struct Known {
    users: Mutex<HashMap<Uuid, Arc<Entry>>>,
}

/// One question to the store, and its answer for all who ask meanwhile and soon after.
#[derive(Debug)]
struct Entry {
    /// Before the store was asked: what it answers may be as old.
    since: Instant,
    answer: OnceCell<Answer>,
}

impl Known {
    pub(super) async fn find(&self, store: &dyn store::Users, id: Uuid) -> Answer {
        let entry = self.entry(id);
        let answer = entry.answer.get_or_init(|| store.user(id)).await;
        if answer.is_err() {
            self.forget_entry(id, &entry);
        }
        answer.clone()
    }

    /// To go with a write, so that the user is forgotten whatever becomes of it or of its caller.
    pub(super) fn forget_after(self: &Arc<Self>, id: Uuid) -> ForgetOnDrop {
        ForgetOnDrop {
            known: self.clone(),
            id,
        }
    }

    /// After each change. A question that is under way may have been asked before it, so its
    /// answer is for those who asked before it too.
    fn forget(&self, id: Uuid) {
        self.lock().remove(&id);
    }

    fn entry(&self, id: Uuid) -> Arc<Entry> {
        let mut users = self.lock();
        if let Some(entry) = users.get(&id)
            && entry.since.elapsed() < REMEMBERED
        {
            return entry.clone();
        }
        if users.len() >= MAX_USERS {
            users.clear();
        }
        let entry = Arc::new(Entry {
            since: Instant::now(),
            answer: OnceCell::new(),
        });
        users.insert(id, entry.clone());
        entry
    }

    fn forget_entry(&self, id: Uuid, entry: &Arc<Entry>) {
        let mut users = self.lock();
        if users
            .get(&id)
            .is_some_and(|found| Arc::ptr_eq(found, entry))
        {
            users.remove(&id);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Arc<Entry>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Known::forget_after`].
pub(super) struct ForgetOnDrop {
    known: Arc<Known>,
    id: Uuid,
}

impl Drop for ForgetOnDrop {
    fn drop(&mut self) {
        self.known.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_is_asked_for_all_until_it_is_forgotten() {
        let known = Known::default();
        let first = known.entry(Uuid::max());
        assert!(Arc::ptr_eq(&first, &known.entry(Uuid::max())));
        known.forget(Uuid::max());
        let second = known.entry(Uuid::max());
        assert!(!Arc::ptr_eq(&first, &second));
        // A late failure of the first takes nothing from the second.
        known.forget_entry(Uuid::max(), &first);
        assert!(Arc::ptr_eq(&second, &known.entry(Uuid::max())));
        known.forget_entry(Uuid::max(), &second);
        assert!(!Arc::ptr_eq(&second, &known.entry(Uuid::max())));
    }

    #[test]
    fn what_is_kept_is_limited() {
        let known = Known::default();
        for n in 0..=MAX_USERS {
            known.entry(Uuid::from_u128(n as u128));
            assert!(known.lock().len() <= MAX_USERS);
        }
        assert_eq!(known.lock().len(), 1);
    }
}
