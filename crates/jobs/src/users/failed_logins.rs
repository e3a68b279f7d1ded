//! Failed logins: a caller who guesses passwords has to wait longer and longer.
//!
//! Failures count for an account and an address together, so that no caller locks an owner out who
//! calls from another address. They count for accounts that do not exist too: a refusal must not
//! show which ones do. They are in the memory of one node.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;

use crate::error::Error;

/// Failures without a delay: owners mistype.
const FREE_FAILURES: u32 = 5;
/// After the next failure. Each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);
/// After so long without a failure the earlier ones are forgotten.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);
/// Accounts with their addresses that are remembered, of about 200 bytes each.
const MAX_SOURCES: usize = 10_000;
/// Bits of an IPv6 address that tell callers apart: one of them has all addresses behind these.
const IPV6_PREFIX: u32 = 64;

/// The source of a login: the account and the caller's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoginSource {
    /// A hash: a long email takes no more memory than a short one.
    account: [u8; 32],
    address: IpAddr,
}

impl LoginSource {
    /// All callers whose address is not known count as one.
    pub(super) fn new(email: &str, address: Option<IpAddr>) -> Self {
        let address = address.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
        let address = match address.to_canonical() {
            IpAddr::V6(address) => {
                let prefix = u128::MAX << (128 - IPV6_PREFIX);
                Ipv6Addr::from_bits(address.to_bits() & prefix).into()
            }
            address => address,
        };
        Self {
            account: Sha256::digest(email).into(),
            address,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct FailedLogins {
    sources: Mutex<HashMap<LoginSource, Arc<SourceFailures>>>,
}

#[derive(Debug, Default)]
struct SourceFailures {
    /// Held while a password is checked: guesses that are sent at once are checked one after another,
    /// so that the first failures delay the rest.
    turn: Arc<tokio::sync::Mutex<()>>,
    record: Mutex<FailureRecord>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureRecord {
    failures: u32,
    last: Option<Instant>,
}

/// A login whose password may be checked now.
#[derive(Debug)]
pub(super) struct LoginAttempt<'a> {
    all: &'a FailedLogins,
    source: LoginSource,
    failures: Arc<SourceFailures>,
    _turn: OwnedMutexGuard<()>,
}

impl FailedLogins {
    /// Refuses a login that comes too early. Nothing is stored for it.
    pub(super) fn check(&self, source: &LoginSource, now: Instant) -> Result<(), Error> {
        let found = self.sources().get(source).cloned();
        found.map_or(Ok(()), |failures| failures.check(now))
    }

    /// Waits until the earlier logins of this source are decided. The caller has a password slot, so
    /// not many wait.
    pub(super) async fn begin(
        &self,
        source: LoginSource,
        now: impl Fn() -> Instant,
    ) -> Result<LoginAttempt<'_>, Error> {
        let failures = self.failures_of(source, now());
        let turn = failures.turn.clone().lock_owned().await;
        failures.check(now())?;
        Ok(LoginAttempt {
            all: self,
            source,
            failures,
            _turn: turn,
        })
    }

    fn failures_of(&self, source: LoginSource, now: Instant) -> Arc<SourceFailures> {
        let mut sources = self.sources();
        if sources.len() >= MAX_SOURCES && !sources.contains_key(&source) {
            make_room(&mut sources, now);
        }
        sources.entry(source).or_default().clone()
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<LoginSource, Arc<SourceFailures>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoginAttempt<'_> {
    /// The password was right.
    pub(super) fn succeeded(self) {
        let mut record = self.failures.record();
        *record = FailureRecord::default();
        drop(record);
        let mut sources = self.all.sources();
        // Unless others of the same source wait: they have to find one another.
        if Arc::strong_count(&self.failures) <= 2 {
            sources.remove(&self.source);
        }
    }

    /// The password was wrong. Returns how often it was.
    pub(super) fn failed(self, now: Instant) -> u32 {
        let mut record = self.failures.record();
        *record = record.after_failure(now);
        record.failures
    }
}

impl SourceFailures {
    fn check(&self, now: Instant) -> Result<(), Error> {
        match self.record().wait(now) {
            Duration::ZERO => Ok(()),
            wait => Err(Error::TooManyFailedLogins(wait)),
        }
    }

    fn record(&self) -> MutexGuard<'_, FailureRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureRecord {
    fn after_failure(self, now: Instant) -> Self {
        let before = if self.is_over(now) { 0 } else { self.failures };
        Self {
            failures: before.saturating_add(1),
            last: Some(now),
        }
    }

    /// How long the next login has to wait.
    fn wait(self, now: Instant) -> Duration {
        let Some(last) = self.last else {
            return Duration::ZERO;
        };
        (last + delay(self.failures)).saturating_duration_since(now)
    }

    fn is_over(self, now: Instant) -> bool {
        self.last
            .is_none_or(|last| now.saturating_duration_since(last) >= REMEMBERED)
    }
}

/// The delay after so many failures.
fn delay(failures: u32) -> Duration {
    if failures < FREE_FAILURES {
        return Duration::ZERO;
    }
    let doubled = 2_u32.saturating_pow(failures - FREE_FAILURES);
    FIRST_DELAY.saturating_mul(doubled).min(MAX_DELAY)
}

/// Forgets what is over, and otherwise the source with the fewest failures, the oldest of those: a
/// caller who invents accounts forgets those of its inventions first, and not the account at which it
/// guesses.
fn make_room(sources: &mut HashMap<LoginSource, Arc<SourceFailures>>, now: Instant) {
    let is_used = |failures: &Arc<SourceFailures>| Arc::strong_count(failures) > 1;
    sources.retain(|_, failures| is_used(failures) || !failures.record().is_over(now));
    if sources.len() < MAX_SOURCES {
        return;
    }
    let idle = sources.iter().filter(|(_, failures)| !is_used(failures));
    let least = idle.min_by_key(|(_, failures)| {
        let record = failures.record();
        (record.failures, record.last)
    });
    if let Some(least) = least.map(|(source, _)| *source) {
        sources.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(email: &str, address: &str) -> LoginSource {
        LoginSource::new(email, Some(address.parse().unwrap()))
    }

    async fn fail(logins: &FailedLogins, source: LoginSource, now: Instant) {
        let attempt = logins.begin(source, || now).await.unwrap();
        attempt.failed(now);
    }

    fn wait(logins: &FailedLogins, source: LoginSource, now: Instant) -> Duration {
        match logins.check(&source, now) {
            Ok(()) => Duration::ZERO,
            Err(Error::TooManyFailedLogins(wait)) => wait,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_delay_grows_up_to_a_limit() {
        let delays: Vec<_> = (0..14).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(delay(u32::MAX), MAX_DELAY);
    }

    #[tokio::test]
    async fn a_source_with_many_failed_logins_is_delayed() {
        let (logins, mut now) = (FailedLogins::default(), Instant::now());
        let here = source("ada", "192.0.2.1");
        for _ in 0..FREE_FAILURES {
            assert_eq!(wait(&logins, here, now), Duration::ZERO);
            fail(&logins, here, now).await;
        }
        assert_eq!(wait(&logins, here, now), FIRST_DELAY);
        assert!(logins.begin(here, || now).await.is_err());
        // The owner elsewhere, and another account here.
        for other in [source("ada", "192.0.2.2"), source("bob", "192.0.2.1")] {
            assert_eq!(wait(&logins, other, now), Duration::ZERO);
            logins.begin(other, || now).await.unwrap().succeeded();
        }
        assert_eq!(wait(&logins, here, now), FIRST_DELAY);
        now += FIRST_DELAY;
        fail(&logins, here, now).await;
        assert_eq!(wait(&logins, here, now), 2 * FIRST_DELAY);
        now += 2 * FIRST_DELAY;
        logins.begin(here, || now).await.unwrap().succeeded();
        assert!(logins.sources().is_empty());
        fail(&logins, here, now).await;
        assert_eq!(wait(&logins, here, now), Duration::ZERO);
    }

    #[tokio::test]
    async fn old_failures_are_forgotten() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        let here = source("ada", "192.0.2.1");
        for _ in 0..FREE_FAILURES {
            fail(&logins, here, now).await;
        }
        let later = now + REMEMBERED;
        fail(&logins, here, later).await;
        assert_eq!(wait(&logins, here, later), Duration::ZERO);
    }

    #[tokio::test]
    async fn concurrent_guesses_are_checked_one_after_another() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        let here = source("ada", "192.0.2.1");
        let guesses = (0..50).map(async |_| {
            let attempt = logins.begin(here, || now).await?;
            tokio::task::yield_now().await;
            Ok::<_, Error>(attempt.failed(now))
        });
        let guesses = futures_util::future::join_all(guesses).await;
        let checked = guesses.into_iter().filter(Result::is_ok).count();
        assert_eq!(checked, FREE_FAILURES as usize);
    }

    #[tokio::test]
    async fn logins_with_the_right_password_do_not_delay_each_other() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        let here = source("ada", "192.0.2.1");
        let right = (0..50).map(async |_| {
            let attempt = logins.begin(here, || now).await?;
            tokio::task::yield_now().await;
            attempt.succeeded();
            Ok::<_, Error>(())
        });
        let right = futures_util::future::join_all(right).await;
        assert!(right.iter().all(Result::is_ok));
        assert!(logins.sources().is_empty());
    }

    #[tokio::test]
    async fn invented_accounts_do_not_make_room_for_more_guesses() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        let here = source("ada", "192.0.2.1");
        for _ in 0..FREE_FAILURES {
            fail(&logins, here, now).await;
        }
        for number in 0..=MAX_SOURCES {
            let invented = source(&number.to_string(), "192.0.2.1");
            fail(&logins, invented, now).await;
        }
        assert_eq!(logins.sources().len(), MAX_SOURCES);
        assert_eq!(wait(&logins, here, now), FIRST_DELAY);
        // Expired entries are removed together.
        let later = now + REMEMBERED;
        fail(&logins, source("late", "192.0.2.1"), later).await;
        assert_eq!(logins.sources().len(), 1);
    }

    #[test]
    fn ipv6_addresses_of_one_network_share_a_delay() {
        let one = source("ada", "2001:db8::1");
        assert_eq!(one, source("ada", "2001:db8::ffff:1"));
        assert_ne!(one, source("ada", "2001:db8:0:1::1"));
        let mapped = source("ada", "::ffff:192.0.2.1");
        assert_eq!(mapped, source("ada", "192.0.2.1"));
    }
}
