//! The durable steps. Two implementations: [`sqlite`] and [`postgres`].

pub mod postgres;
pub mod sqlite;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::Due;
use wakeline_store::Error;
use wakeline_wake::{Waiting, Wake};

use crate::{
    ack::{Ack, Acked},
    claim::{Claimed, PopRequest, Popped},
    message::{NewMessage, Pushed},
};

/// What a push did: a result per message, and whom it makes ready.
pub type Stored = (Vec<Pushed>, Vec<Wake>);

/// Each method is one atomic durable step, shares its commit with whatever else arrived in the
/// same moment, and happens even if its future is dropped half way.
///
/// Whose clock rules: SQLite's is the process', PostgreSQL's is the database server's, so that
/// nodes agree on when a lease ends.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Stores all messages or none, and says whom that makes ready. A message whose transaction id
    /// its partition already has is not stored again, so that repeating a push is safe.
    fn push(&self, messages: Arc<[NewMessage]>) -> BoxFuture<'_, Result<Stored, Error>>;

    /// Claims the next messages of one partition for the group: leased under `lease` for as long
    /// as the queue says (by default `time`), or acknowledged at once.
    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>>;

    fn ack(&self, ack: Arc<Ack>) -> BoxFuture<'_, Result<Acked, Error>>;

    /// Undoes a claim that reached nobody. False when it was no longer the caller's to give back.
    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<bool, Error>>;

    /// Of all these places, where something is ready or when it will be; in one statement.
    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>>;
}
