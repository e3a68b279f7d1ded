//! Ending, releasing and renewing leases.

use std::{fmt::Display, str::FromStr, time::Duration};

use duroxide::providers::ProviderError;
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};

use super::{Inner, PostgresProvider, held_leases::Token, topics::ActivityKind};
use crate::store::{OwnedParameter, fetch::micros, owned, statements};

/// A call is repeated once more when its lease has certainly ended: only the database knows whether
/// an earlier attempt was in time.
const MARGIN: Duration = Duration::from_secs(1);

/// What can be leased: an instance, by its id, or an activity, by the id of its row.
pub(super) trait LeaseKey: Display + FromStr + Send + 'static {
    /// The runtime's name for the operation, and the statement.
    const RELEASE: (&'static str, &'static str);
    const RENEW: (&'static str, &'static str);

    fn parameter(self) -> OwnedParameter;

    /// The wakes for what a release has made ready; `row` is its answer.
    fn release_wakes(inner: &Inner, row: &Row, delay: Option<Duration>) -> Wakes;
}

impl LeaseKey for String {
    const RELEASE: (&'static str, &'static str) =
        ("abandon_orchestration_item", statements::RELEASE_INSTANCE);
    const RENEW: (&'static str, &'static str) =
        ("renew_orchestration_item_lock", statements::RENEW_INSTANCE);

    fn parameter(self) -> OwnedParameter {
        owned(self, Type::TEXT)
    }

    fn release_wakes(inner: &Inner, row: &Row, _delay: Option<Duration>) -> Wakes {
        let ready_us: i64 = row.get("ready_us");
        let after = Duration::from_micros(u64::try_from(ready_us).unwrap_or(0));
        let wake = inner.topics.wake_orchestrations(1);
        inner.shared.wakes_after(wake, after)
    }
}

impl LeaseKey for i64 {
    const RELEASE: (&'static str, &'static str) =
        ("abandon_work_item", statements::RELEASE_ACTIVITY);
    const RENEW: (&'static str, &'static str) =
        ("renew_work_item_lock", statements::RENEW_ACTIVITY);

    fn parameter(self) -> OwnedParameter {
        owned(self, Type::INT8)
    }

    fn release_wakes(inner: &Inner, row: &Row, delay: Option<Duration>) -> Wakes {
        let kind = ActivityKind {
            tag: row.get("tag"),
            has_session: row.get("has_session"),
            owner: row.get("owner"),
        };
        let (topics, shared) = (&inner.topics, &inner.shared);
        let wake = topics.wake_activities(&kind, 1);
        let session_end = shared.wakes_at_session_end(topics, &kind, row.get("ends_us"));
        let released = shared.wakes_after(wake, delay.unwrap_or_default());
        released.and(session_end)
    }
}

pub(super) fn lost_lease(operation: &str) -> ProviderError {
    ProviderError::permanent(
        operation,
        "Invalid lock token: the lock has expired, was taken over, or its item is gone",
    )
}

impl PostgresProvider {
    /// Until when a call under a lease is repeated. An earlier error would make the runtime fail an
    /// orchestration whose lease still holds.
    pub(super) fn until_lease_ends(&self, secret: Uuid) -> Instant {
        let ends = self.inner.leases.ends(secret);
        ends.map_or_else(|| self.retry_until(), |ends| ends + MARGIN)
    }

    /// A statement that needs a lease. It returns a row if the lease was held; the value says so.
    fn write_under_lease(
        &self,
        (operation, statement): (&'static str, &'static str),
        secret: Uuid,
        parameters: Vec<OwnedParameter>,
        wakes: impl FnOnce(&Row) -> Wakes + Send + 'static,
    ) -> Write<bool> {
        let until = self.until_lease_ends(secret);
        let wakes = |rows: &[Row]| rows.first().map_or_else(Wakes::none, wakes);
        let store = &self.inner.store;
        store
            .write(operation, statement, parameters, until, wakes)
            .map(|rows| !rows.is_empty())
    }

    /// Commits a write that needs a lease.
    pub(super) async fn commit_held(
        &self,
        operation: &'static str,
        write: Write<bool>,
    ) -> Result<(), ProviderError> {
        let is_held = self.commit(operation, write).await?;
        is_held.then_some(()).ok_or_else(|| lost_lease(operation))
    }

    /// After `write` this process does not have the lease.
    pub(super) fn ending_lease(&self, secret: Uuid, write: Write<bool>) -> Write<bool> {
        let inner = self.inner.clone();
        write.map(move |is_held| {
            inner.leases.remove(&inner.shared.engine, secret);
            is_held
        })
    }

    pub(super) async fn abandon<K: LeaseKey>(
        &self,
        token: &str,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Result<(), ProviderError> {
        let operation = K::RELEASE.0;
        let token = Token::<K>::read(token).ok_or_else(|| lost_lease(operation))?;
        self.commit_held(operation, self.release(token, delay, is_attempt))
            .await
    }

    pub(super) fn release<K: LeaseKey>(
        &self,
        token: Token<K>,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Write<bool> {
        let secret = token.secret;
        let parameters = vec![
            token.key.parameter(),
            owned(secret, Type::UUID),
            owned(delay.map(micros), Type::INT8),
            owned(is_attempt, Type::BOOL),
        ];
        let inner = self.inner.clone();
        let wakes = move |row: &Row| K::release_wakes(&inner, row, delay);
        let released = self.write_under_lease(K::RELEASE, secret, parameters, wakes);
        self.ending_lease(secret, released)
    }

    pub(super) async fn renew<K: LeaseKey>(
        &self,
        token: &str,
        time: Duration,
    ) -> Result<(), ProviderError> {
        let operation = K::RENEW.0;
        let token = Token::<K>::read(token).ok_or_else(|| lost_lease(operation))?;
        let secret = token.secret;
        let parameters = vec![
            token.key.parameter(),
            owned(secret, Type::UUID),
            owned(micros(time), Type::INT8),
        ];
        let inner = self.inner.clone();
        let renewed = self
            .write_under_lease(K::RENEW, secret, parameters, |_| Wakes::none())
            .map(move |is_held| {
                if is_held {
                    let engine = &inner.shared.engine;
                    inner.leases.renew(engine, secret, time);
                }
                is_held
            });
        self.commit_held(operation, renewed).await
    }
}
