//! Passwords: argon2id, a few at a time.
//!
//! A hash costs 19 MiB and tens of milliseconds of one core by intent, so a caller that guesses
//! passwords must not be able to have many made at once.

use std::sync::Arc;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use wakeline_web::Problem;

use crate::{error::Error, user::PasswordHash};

/// Bytes.
pub const MAX_PASSWORD: usize = 1_024;

/// Hashes made at once: more of them would only take the cores from other requests.
const AT_ONCE: usize = 2;
/// Callers that may wait for their turn.
const WAITING: usize = 64;
const SALT: usize = 16;

/// The hash of no known password, with the parameters of all others. A password is checked against
/// it when there is no user, so that this takes as long.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$A5DzkQ4V+M0UYW0Rv1yl9Q$VwPjYN3ELIyd9hyX4p0m7q1xPaQ8k9xSmY5d1J3Yb0E";

#[derive(Debug)]
pub(super) struct Passwords {
    slots: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// A place among the waiting callers; taken before anything else is done for the caller.
#[derive(Debug)]
pub(super) struct PasswordSlot {
    _permit: OwnedSemaphorePermit,
}

impl Passwords {
    pub(super) fn new() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    pub(super) fn slot(&self) -> Result<PasswordSlot, Error> {
        match self.slots.clone().try_acquire_owned() {
            Ok(_permit) => Ok(PasswordSlot { _permit }),
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                Err(Error::Web(Problem::unavailable(
                    "overloaded",
                    "too many passwords are being checked; nothing was done, try again later",
                )))
            }
        }
    }

    pub(super) async fn hash(
        &self,
        slot: PasswordSlot,
        password: String,
    ) -> Result<PasswordHash, Error> {
        let made = self.work(slot, move || {
            let salt: [u8; SALT] = rand::random();
            Argon2::default()
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map(|hash: phc::PasswordHash| PasswordHash(hash.to_string()))
        });
        // This fails only for a password or a salt of a length that nothing here has.
        made.await?.map_err(|error| failed(&error))
    }

    /// Whether the password is right. Takes as long when there is none.
    pub(super) async fn check(
        &self,
        slot: PasswordSlot,
        password: String,
        kept: Option<PasswordHash>,
    ) -> Result<bool, Error> {
        let checked = self.work(slot, move || {
            let kept = kept.as_ref().map_or(NOBODYS, |hash| &hash.0);
            let kept = phc::PasswordHash::new(kept)?;
            match Argon2::default().verify_password(password.as_bytes(), &kept) {
                Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
                other => other.map(|()| true),
            }
        });
        checked
            .await?
            .map_err(|error: argon2::password_hash::Error| failed(&error))
    }

    /// The slot and the turn go with the work: they are taken for as long as it lasts, also when
    /// the caller hangs up.
    async fn work<T: Send + 'static>(
        &self,
        slot: PasswordSlot,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|error| failed(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((turn, slot));
            done
        });
        done.await.map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    tracing::warn!(%error, "a password could not be hashed");
    Error::Web(Problem::new(
        http::StatusCode::INTERNAL_SERVER_ERROR,
        "password-failed",
        "the password could not be checked; nothing was done, and the log says why",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_right_password_is_accepted_and_another_is_refused() {
        let passwords = Passwords::new();
        let slot = || passwords.slot().unwrap();
        let kept = passwords.hash(slot(), "correct horse".to_owned()).await;
        let kept = kept.unwrap();
        assert!(kept.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        for (password, is_right) in [("correct horse", true), ("Correct horse", false)] {
            let checked = passwords.check(slot(), password.to_owned(), Some(kept.clone()));
            assert_eq!(checked.await.unwrap(), is_right, "{password}");
        }
    }

    #[tokio::test]
    async fn the_check_of_an_unknown_user_costs_as_much_as_that_of_a_known_one() {
        let passwords = Passwords::new();
        let slot = || passwords.slot().unwrap();
        let somebodys = passwords.hash(slot(), "correct horse".to_owned()).await;
        let somebodys = phc::PasswordHash::new(&somebodys.unwrap().0).unwrap();
        let nobodys = phc::PasswordHash::new(NOBODYS).unwrap();
        assert_eq!(nobodys.algorithm, somebodys.algorithm);
        assert_eq!(nobodys.version, somebodys.version);
        assert_eq!(nobodys.params, somebodys.params);
        let length = |hash: &phc::PasswordHash| hash.hash.as_ref().unwrap().len();
        assert_eq!(length(&nobodys), length(&somebodys));
        let checked = passwords.check(slot(), String::new(), None).await;
        assert!(!checked.unwrap());
    }

    #[tokio::test]
    async fn the_number_of_slots_is_limited_and_a_slot_is_kept_until_its_work_is_done() {
        let passwords = Passwords::new();
        let slots: Vec<_> = (0..AT_ONCE + WAITING)
            .map(|_| passwords.slot().unwrap())
            .collect();
        assert!(passwords.slot().is_err());
        let mut slots = slots.into_iter();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (go, went) = std::sync::mpsc::channel::<()>();
        let mut work = Box::pin(passwords.work(slots.next().unwrap(), move || {
            begin.send(()).unwrap();
            went.recv().unwrap();
        }));
        assert!(futures_util::poll!(work.as_mut()).is_pending());
        begun.await.unwrap();
        // The caller has hung up; the work goes on.
        drop(work);
        assert!(passwords.slot().is_err());
        go.send(()).unwrap();
        let free = passwords.slots.acquire().await;
        drop(free.unwrap());
        drop(slots);
        assert!(passwords.slot().is_ok());
    }
}
