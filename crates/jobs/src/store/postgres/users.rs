//! Users on PostgreSQL.

use std::time::Duration;

use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, Step, only};
use crate::{
    store::{Users, in_micros},
    user::{Login, NewUser, PasswordHash, User, UserChange, UserChanged, UserDeleted},
    wakes,
};

impl Users for PostgresStore {
    fn secret(&self, fresh: Vec<u8>) -> Write<Vec<u8>> {
        // The update changes nothing: it is there to give back what is there already.
        self.write(
            "INSERT INTO wakeline.jobs_secret (one, secret) VALUES (1, $1)
             ON CONFLICT (one) DO UPDATE SET one = excluded.one
             RETURNING secret",
            vec![(Box::new(fresh), Type::BYTEA)],
            wakes::nobody,
            |rows| Ok(only(rows)?.get(0)),
        )
    }

    fn create_user(&self, user: NewUser) -> Write<Option<User>> {
        self.write(
            "INSERT INTO wakeline.jobs_user
                 (id, email, password, is_superuser, is_verified, is_guest, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, wakeline.jobs_now())
             ON CONFLICT DO NOTHING
             RETURNING id, email, is_active, is_superuser, is_verified, epoch",
            vec![
                (Box::new(user.id), Type::UUID),
                (Box::new(user.email), Type::TEXT),
                (Box::new(user.password.map(|hash| hash.0)), Type::TEXT),
                (Box::new(user.is_superuser), Type::BOOL),
                (Box::new(user.is_verified), Type::BOOL),
                (Box::new(user.is_guest), Type::BOOL),
            ],
            wakes::nobody,
            |rows| Ok(rows.first().map(|row| read_user(row, 0))),
        )
    }

    fn user(&self, user: Uuid) -> Step<'_, Option<User>> {
        async move {
            let rows = self
                .ask(
                    "user",
                    "SELECT id, email, is_active, is_superuser, is_verified, epoch
                     FROM wakeline.jobs_user WHERE id = $1",
                    &[(&user, Type::UUID)],
                )
                .await?;
            Ok(rows.first().map(|row| read_user(row, 0)))
        }
        .boxed()
    }

    fn login(&self, email: String) -> Step<'_, Option<Login>> {
        async move {
            let rows = self
                .ask(
                    "login",
                    "SELECT id, email, is_active, is_superuser, is_verified, epoch, password
                     FROM wakeline.jobs_user WHERE email = $1",
                    &[(&email, Type::TEXT)],
                )
                .await?;
            Ok(rows.first().map(|row| Login {
                user: read_user(row, 0),
                password: row.get::<_, Option<String>>(6).map(PasswordHash),
            }))
        }
        .boxed()
    }

    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChanged> {
        self.write(
            "SELECT state, id, email, is_active, is_superuser, is_verified, epoch
             FROM wakeline.jobs_change_user($1, $2, $3, $4, $5, $6)",
            vec![
                (Box::new(user), Type::UUID),
                (Box::new(change.email), Type::TEXT),
                (Box::new(change.password.map(|hash| hash.0)), Type::TEXT),
                (Box::new(change.is_active), Type::BOOL),
                (Box::new(change.is_superuser), Type::BOOL),
                (Box::new(change.is_verified), Type::BOOL),
            ],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                match row.get::<_, i32>(0) {
                    0 => Ok(UserChanged::NotFound),
                    1 => Ok(UserChanged::EmailTaken),
                    2 => Ok(UserChanged::Done(read_user(row, 1))),
                    other => Err(unknown(other)),
                }
            },
        )
    }

    fn workers_of_user(&self, user: Uuid) -> Step<'_, Vec<Uuid>> {
        async move {
            let rows = self
                .ask(
                    "workers-of-user",
                    "SELECT id FROM wakeline.jobs_worker WHERE user_id = $1",
                    &[(&user, Type::UUID)],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        }
        .boxed()
    }

    fn delete_user(&self, user: Uuid) -> Write<UserDeleted> {
        self.write(
            "SELECT wakeline.jobs_delete_user($1)",
            vec![(Box::new(user), Type::UUID)],
            wakes::nobody,
            |rows| match only(rows)?.get::<_, i32>(0) {
                0 => Ok(UserDeleted::NotFound),
                1 => Ok(UserDeleted::HasWorkers),
                2 => Ok(UserDeleted::Done),
                other => Err(unknown(other)),
            },
        )
    }

    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64> {
        self.write(
            "SELECT wakeline.jobs_sweep_guests($1, $2)",
            vec![
                (Box::new(in_micros(kept)), Type::INT8),
                (Box::new(limit), Type::INT8),
            ],
            wakes::nobody,
            |rows| Ok(only(rows)?.get(0)),
        )
    }
}

fn read_user(row: &Row, first: usize) -> User {
    User {
        id: row.get(first),
        email: row.get(first + 1),
        is_active: row.get(first + 2),
        is_superuser: row.get(first + 3),
        is_verified: row.get(first + 4),
        epoch: row.get(first + 5),
    }
}

fn unknown(state: i32) -> Error {
    Error::OutcomeUnknown(format!("an answer of the unknown state {state}"))
}
