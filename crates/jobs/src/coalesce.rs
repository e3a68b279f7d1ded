//! Coalesces reads of the same moment into one statement: a hundred readers of the same key cost
//! the store what one does.
//!
//! A reader never shares a statement that began before the reader came: its answer may be older
//! than that.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use wakeline_store::Error;

/// Statements under way at once. Two: while one waits for the database, the next collects keys and
/// goes.
const UNDER_WAY: usize = 2;
/// Different keys in one statement.
const MAX_KEYS: usize = 1_000;

type AskMany<K, V> = dyn Fn(Vec<K>) -> BoxFuture<'static, Result<Vec<V>, Error>> + Send + Sync;
type WaitingKeys<K, V> = Vec<(K, oneshot::Sender<Result<V, Error>>)>;

pub(crate) struct Coalescer<K, V> {
    ask: Box<AskMany<K, V>>,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    waiting: WaitingKeys<K, V>,
    under_way: usize,
}

impl<K, V> fmt::Debug for Coalescer<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Coalescer").finish_non_exhaustive()
    }
}

impl<K, V> Coalescer<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    pub(crate) fn new(
        ask: impl Fn(Vec<K>) -> BoxFuture<'static, Result<Vec<V>, Error>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            ask: Box::new(ask),
            state: Mutex::new(State {
                waiting: Vec::new(),
                under_way: 0,
            }),
        })
    }

    pub(crate) async fn ask(self: &Arc<Self>, key: K) -> Result<V, Error> {
        let (answer, answered) = oneshot::channel();
        let goes = {
            let mut state = self.lock();
            state.waiting.push((key, answer));
            let goes = state.under_way < UNDER_WAY;
            state.under_way += usize::from(goes);
            goes
        };
        if goes {
            tokio::spawn(self.clone().go());
        }
        answered
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("the question was dropped".into())))
    }

    /// Runs statements until no reader waits.
    async fn go(self: Arc<Self>) {
        let mut panicked = ReleaseOnPanic(Some(&self));
        loop {
            let waiting = {
                let mut state = self.lock();
                if state.waiting.is_empty() {
                    state.under_way -= 1;
                    panicked.0 = None;
                    return;
                }
                let most = state.waiting.len().min(MAX_KEYS);
                let later = state.waiting.split_off(most);
                mem::replace(&mut state.waiting, later)
            };
            self.answer(waiting).await;
        }
    }

    async fn answer(&self, waiting: WaitingKeys<K, V>) {
        let mut places = HashMap::new();
        let mut keys = Vec::new();
        for (key, _) in &waiting {
            places.entry(key.clone()).or_insert_with(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
        }
        let answers = match (self.ask)(keys).await {
            Ok(values) => values.into_iter().map(Ok).collect(),
            // The statement as a whole was refused: each key by itself, so that only the bad one
            // fails.
            Err(Error::Failed(reason)) if places.len() > 1 => {
                tracing::debug!(
                    reason,
                    "a coalesced statement was refused; running it for each key"
                );
                self.one_by_one(in_order(&places)).await
            }
            Err(error) => vec![Err(error); places.len()],
        };
        for (key, answer) in waiting {
            let value = answers
                .get(places[&key])
                .cloned()
                .unwrap_or_else(|| Err(Error::OutcomeUnknown("too few answers".into())));
            let _ = answer.send(value);
        }
    }

    async fn one_by_one(&self, keys: Vec<K>) -> Vec<Result<V, Error>> {
        let mut answers = Vec::with_capacity(keys.len());
        let mut outage = None;
        for key in keys {
            // Hundreds of keys in a row must not each wait for a store that has gone.
            if let Some(error) = &outage {
                answers.push(Err(Error::clone(error)));
                continue;
            }
            let alone = (self.ask)(vec![key]).await;
            outage = alone
                .as_ref()
                .err()
                .filter(|error| error.is_outage())
                .cloned();
            let too_few = || Error::OutcomeUnknown("too few answers".into());
            answers.push(alone.and_then(|mut values| values.pop().ok_or_else(too_few)));
        }
        answers
    }
}

impl<K, V> Coalescer<K, V> {
    fn lock(&self) -> std::sync::MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the slot of a statement that ends by a panic. Waiting readers that no statement is left
/// for get an error; the next reader begins anew.
struct ReleaseOnPanic<'a, K, V>(Option<&'a Coalescer<K, V>>);

impl<K, V> Drop for ReleaseOnPanic<'_, K, V> {
    fn drop(&mut self) {
        if let Some(coalescer) = self.0 {
            let mut state = coalescer.lock();
            state.under_way -= 1;
            if state.under_way == 0 {
                state.waiting.clear();
            }
        }
    }
}

/// The keys in the order of their indexes.
fn in_order<K: Clone>(places: &HashMap<K, usize>) -> Vec<K> {
    let mut keys: Vec<(usize, &K)> = places.iter().map(|(key, place)| (*place, key)).collect();
    keys.sort_by_key(|(place, _)| *place);
    keys.into_iter().map(|(_, key)| key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};
    use tokio::{sync::Semaphore, time::timeout};

    use super::*;

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

    #[tokio::test]
    async fn callers_that_come_during_a_read_share_the_next_one() {
        let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let coalescer = Coalescer::new({
            let (asked, gate) = (asked.clone(), gate.clone());
            move |keys: Vec<u32>| {
                let (asked, gate) = (asked.clone(), gate.clone());
                async move {
                    asked.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    Ok(keys.iter().map(|key| key * 2).collect::<Vec<_>>())
                }
                .boxed()
            }
        });
        let ask = |key| {
            tokio::spawn({
                let coalescer = coalescer.clone();
                async move { coalescer.ask(key).await }
            })
        };
        let mut first = Vec::new();
        for number in 0..2 {
            first.push(ask(number));
            // One after the other: two that come together would be one statement.
            while asked.load(Ordering::SeqCst) <= number as usize {
                tokio::task::yield_now().await;
            }
        }
        let others: Vec<_> = (0..100).map(|n| ask(n % 10)).collect();
        // All of them wait, because both statements are under way.
        while coalescer.lock().waiting.len() < 100 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
        let answers = join_all(first.into_iter().chain(others)).await;
        let answers: Vec<u32> = answers
            .into_iter()
            .map(|answer| answer.unwrap().unwrap())
            .collect();
        let expected: Vec<u32> = (0..2)
            .chain((0..100).map(|n| n % 10))
            .map(|n| n * 2)
            .collect();
        assert_eq!(answers, expected);
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn a_key_that_the_store_refuses_fails_alone() {
        const BAD: u32 = 13;
        let coalescer = Coalescer::new(|keys: Vec<u32>| {
            async move {
                if keys.contains(&BAD) {
                    return Err(Error::Failed("22021".into()));
                }
                Ok(keys.iter().map(|key| key * 2).collect::<Vec<_>>())
            }
            .boxed()
        });
        // On one thread they all come before the first statement goes, so they share it.
        let answers = join_all((0..20).map(|key| coalescer.ask(key))).await;
        for (key, answer) in (0..20).zip(answers) {
            match answer {
                Ok(value) => assert_eq!((key == BAD, value), (false, key * 2)),
                Err(error) => assert_eq!((key, error.is_outage()), (BAD, false)),
            }
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_fails_and_the_next_one_succeeds() {
        let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let coalescer = Coalescer::new({
            let (asked, gate) = (asked.clone(), gate.clone());
            move |keys: Vec<u32>| {
                let (asked, gate) = (asked.clone(), gate.clone());
                async move {
                    asked.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    assert!(!keys.contains(&0), "a test");
                    Ok(keys)
                }
                .boxed()
            }
        });
        let ask = |key| {
            let coalescer = coalescer.clone();
            tokio::spawn(async move { coalescer.ask(key).await })
        };
        // All that may be under way, and one reader that waits behind them.
        let mut failing = Vec::new();
        for number in 0..UNDER_WAY {
            failing.push(ask(0));
            while asked.load(Ordering::SeqCst) <= number {
                tokio::task::yield_now().await;
            }
        }
        failing.push(ask(7));
        while coalescer.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
        for answer in failing {
            let answer = timeout(PATIENCE, answer).await.expect("an answer");
            assert!(matches!(answer.unwrap(), Err(Error::Unavailable(_))));
        }
        let next = timeout(PATIENCE, coalescer.ask(1))
            .await
            .expect("an answer");
        assert_eq!(next, Ok(1));
    }

    #[tokio::test]
    async fn an_unavailable_store_is_not_read_for_each_key_alone() {
        let asked = Arc::new(AtomicUsize::new(0));
        let coalescer = Coalescer::new({
            let asked = asked.clone();
            move |keys: Vec<u32>| {
                asked.fetch_add(1, Ordering::SeqCst);
                let error = if keys.len() > 1 {
                    Error::Failed("22021".into())
                } else {
                    Error::Unavailable("gone".into())
                };
                async move { Err::<Vec<u32>, _>(error) }.boxed()
            }
        });
        let answers = join_all((0..20).map(|key| coalescer.ask(key))).await;
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(Error::Unavailable(_))))
        );
        // Both that may be under way at once: the statement, and the first key of it alone.
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked <= 4, "{asked}");
    }
}
