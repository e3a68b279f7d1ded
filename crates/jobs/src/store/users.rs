//! The store of users.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Commit, Query, Row, StoreFuture, only, values_of, write};
use crate::{
    user::{LoginRecord, NewUser, PasswordHash, User, UserChange, UserChangeOutcome, UserDeletion},
    wakes,
};

/// The update changes nothing: it is there to return the secret that exists.
const SECRET: &str = "INSERT INTO wakeline.jobs_secret (one, secret) VALUES (1, $1)
    ON CONFLICT (one) DO UPDATE SET one = excluded.one
    RETURNING secret";

const CREATE: &str = "INSERT INTO wakeline.jobs_user
        (id, email, password, is_superuser, is_verified, is_guest, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, {now})
    ON CONFLICT DO NOTHING
    RETURNING *";

const BY_ID: &str = "SELECT * FROM wakeline.jobs_user WHERE id = $1";
const BY_EMAIL: &str = "SELECT * FROM wakeline.jobs_user WHERE email = $1";

/// Each method is one atomic step. The futures of reads may be dropped; a [`Write`] that was committed
/// runs to its end.
pub trait Users: Query + std::fmt::Debug {
    /// The secret with which all nodes sign tokens: `fresh`, if there is none yet. A repeat returns the
    /// stored one.
    fn secret(&self, fresh: Vec<u8>) -> Write<Vec<u8>> {
        let (parameters, commit) = (values_of![Bytes::from(fresh)], Commit::Shared("secret"));
        write(self, commit, SECRET, parameters, wakes::nobody, |rows| {
            Ok(only(rows)?.get::<Bytes>("secret").into())
        })
    }

    /// `None`: another user has the id or the email, as a repeat finds it.
    fn create_user(&self, user: NewUser) -> Write<Option<User>> {
        let parameters = values_of![
            user.id,
            user.email,
            user.password.map(|hash| hash.0),
            user.is_superuser,
            user.is_verified,
            user.is_guest,
        ];
        let commit = Commit::Shared("create_user");
        write(self, commit, CREATE, parameters, wakes::nobody, |rows| {
            Ok(rows.first().map(User::from_row))
        })
    }

    /// Another password begins another epoch, and another email is not a verified one. A repeat with a
    /// password begins one more epoch.
    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChangeOutcome>;

    /// Only a user without workers. A repeat finds no user.
    fn delete_user(&self, user: Uuid) -> Write<UserDeletion>;

    /// Removes guests without workers that were created longer ago than `kept`, the oldest first and at
    /// most `limit`. Returns how many. A repeat goes on with the next ones.
    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64>;

    fn user(&self, user: Uuid) -> StoreFuture<'_, Option<User>> {
        let rows = self.rows("user", BY_ID, values_of![user]);
        async move { Ok(rows.await?.first().map(User::from_row)) }.boxed()
    }

    fn login(&self, email: String) -> StoreFuture<'_, Option<LoginRecord>> {
        let rows = self.rows("login", BY_EMAIL, values_of![email]);
        let login = |row: &Row| LoginRecord {
            user: User::from_row(row),
            password: row.get::<Option<String>>("password").map(PasswordHash),
        };
        async move { Ok(rows.await?.first().map(login)) }.boxed()
    }

    fn workers_of_user(&self, user: Uuid) -> StoreFuture<'_, Vec<Uuid>> {
        let statement = "SELECT id FROM wakeline.jobs_worker WHERE user_id = $1";
        let rows = self.rows("workers_of_user", statement, values_of![user]);
        async move { Ok(rows.await?.iter().map(|row| row.get("id")).collect()) }.boxed()
    }
}

impl User {
    /// From a row with the columns of `jobs_user`.
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            id: row.get("id"),
            email: row.get("email"),
            is_active: row.get("is_active"),
            is_superuser: row.get("is_superuser"),
            is_verified: row.get("is_verified"),
            epoch: row.get("epoch"),
        }
    }
}
