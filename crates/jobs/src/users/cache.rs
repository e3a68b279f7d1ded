//! A cache of users, so that the requests of a known user cost no statement.

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
/// Cached users; past it, all are forgotten and read again as they call.
const MAX_USERS: usize = 10_000;

type Answer = Result<Option<User>, Error>;

#[derive(Debug, Default)]
pub(super) struct UserCache {
    users: Mutex<HashMap<Uuid, Arc<Entry>>>,
}

/// One read of the store, and its answer for all requests meanwhile and soon after.
#[derive(Debug)]
struct Entry {
    /// The time before the store was read: its answer may be as old.
    since: Instant,
    answer: OnceCell<Answer>,
}

impl UserCache {
    pub(super) async fn find(&self, store: &dyn store::Users, id: Uuid) -> Answer {
        let entry = self.entry(id);
        let answer = entry.answer.get_or_init(|| store.user(id)).await;
        if answer.is_err() {
            self.forget_entry(id, &entry);
        }
        answer.clone()
    }

    /// Goes with a write, so that the user is forgotten whatever becomes of the write or its
    /// caller.
    pub(super) fn forget_after(self: &Arc<Self>, id: Uuid) -> ForgetOnDrop {
        ForgetOnDrop {
            cache: self.clone(),
            id,
        }
    }

    /// Called after each change. A read that is under way may have begun before the change, so only
    /// the requests that came before it too share its answer.
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

/// See [`UserCache::forget_after`].
pub(super) struct ForgetOnDrop {
    cache: Arc<UserCache>,
    id: Uuid,
}

impl Drop for ForgetOnDrop {
    fn drop(&mut self) {
        self.cache.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_share_the_entry_of_a_user_until_it_is_forgotten() {
        let cache = UserCache::default();
        let first = cache.entry(Uuid::max());
        assert!(Arc::ptr_eq(&first, &cache.entry(Uuid::max())));
        cache.forget(Uuid::max());
        let second = cache.entry(Uuid::max());
        assert!(!Arc::ptr_eq(&first, &second));
        // A late failure of the first takes nothing from the second.
        cache.forget_entry(Uuid::max(), &first);
        assert!(Arc::ptr_eq(&second, &cache.entry(Uuid::max())));
        cache.forget_entry(Uuid::max(), &second);
        assert!(!Arc::ptr_eq(&second, &cache.entry(Uuid::max())));
    }

    #[test]
    fn the_cache_of_users_is_limited() {
        let cache = UserCache::default();
        for n in 0..=MAX_USERS {
            cache.entry(Uuid::from_u128(n as u128));
            assert!(cache.lock().len() <= MAX_USERS);
        }
        assert_eq!(cache.lock().len(), 1);
    }
}
