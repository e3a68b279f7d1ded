//! Users on SQLite.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{SqliteStore, Step};
use crate::{
    store::{Users, in_micros},
    user::{Login, NewUser, PasswordHash, User, UserChange, UserChanged, UserDeleted},
    wakes,
};

impl Users for SqliteStore {
    fn secret(&self, fresh: Vec<u8>) -> Write<Vec<u8>> {
        self.write("secret", wakes::nobody, move |connection, _| {
            connection.execute(
                "INSERT INTO jobs_secret (one, secret) VALUES (1, ?1) ON CONFLICT DO NOTHING",
                params![fresh],
            )?;
            connection.query_row("SELECT secret FROM jobs_secret", [], |row| row.get(0))
        })
    }

    fn create_user(&self, user: NewUser) -> Write<Option<User>> {
        self.write("create-user", wakes::nobody, move |connection, now| {
            connection
                .query_row(
                    "INSERT INTO jobs_user
                         (id, email, password, is_superuser, is_verified, is_guest, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT DO NOTHING
                     RETURNING id, email, is_active, is_superuser, is_verified, epoch",
                    params![
                        user.id,
                        user.email,
                        user.password.map(|hash| hash.0),
                        user.is_superuser,
                        user.is_verified,
                        user.is_guest,
                        now
                    ],
                    read_user,
                )
                .optional()
        })
    }

    fn user(&self, user: Uuid) -> Step<'_, Option<User>> {
        self.read("user", move |connection, _| find(connection, user))
    }

    fn login(&self, email: String) -> Step<'_, Option<Login>> {
        self.read("login", move |connection, _| {
            connection
                .prepare_cached(
                    "SELECT id, email, is_active, is_superuser, is_verified, epoch, password
                     FROM jobs_user WHERE email = ?1",
                )?
                .query_row(params![email], |row| {
                    Ok(Login {
                        user: read_user(row)?,
                        password: row.get::<_, Option<String>>(6)?.map(PasswordHash),
                    })
                })
                .optional()
        })
    }

    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChanged> {
        self.write("change-user", wakes::nobody, move |connection, _| {
            if let Some(email) = &change.email {
                let sql = "SELECT EXISTS (SELECT 1 FROM jobs_user WHERE email = ?1 AND id <> ?2)";
                let is_taken = connection.query_row(sql, params![email, user], |row| row.get(0))?;
                if is_taken && find(connection, user)?.is_some() {
                    return Ok(UserChanged::EmailTaken);
                }
            }
            let changed = connection
                .query_row(
                    "UPDATE jobs_user SET
                         email = coalesce(?2, email),
                         password = coalesce(?3, password),
                         epoch = epoch + (?3 IS NOT NULL),
                         is_active = coalesce(?4, is_active),
                         is_superuser = coalesce(?5, is_superuser),
                         is_verified = coalesce(?6, is_verified AND coalesce(?2, email) = email)
                     WHERE id = ?1
                     RETURNING id, email, is_active, is_superuser, is_verified, epoch",
                    params![
                        user,
                        change.email,
                        change.password.map(|hash| hash.0),
                        change.is_active,
                        change.is_superuser,
                        change.is_verified
                    ],
                    read_user,
                )
                .optional()?;
            Ok(changed.map_or(UserChanged::NotFound, UserChanged::Done))
        })
    }

    fn workers_of_user(&self, user: Uuid) -> Step<'_, Vec<Uuid>> {
        self.read("workers-of-user", move |connection, _| {
            connection
                .prepare_cached("SELECT id FROM jobs_worker WHERE user_id = ?1")?
                .query_map(params![user], |row| row.get(0))?
                .collect()
        })
    }

    fn delete_user(&self, user: Uuid) -> Write<UserDeleted> {
        self.write("delete-user", wakes::nobody, move |connection, _| {
            let sql = "SELECT EXISTS (SELECT 1 FROM jobs_worker WHERE user_id = ?1)";
            if connection.query_row(sql, params![user], |row| row.get(0))? {
                return Ok(UserDeleted::HasWorkers);
            }
            let deleted =
                connection.execute("DELETE FROM jobs_user WHERE id = ?1", params![user])?;
            Ok(match deleted {
                0 => UserDeleted::NotFound,
                _ => UserDeleted::Done,
            })
        })
    }

    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64> {
        self.write("sweep-guests", wakes::nobody, move |connection, now| {
            let deleted = connection.execute(
                "DELETE FROM jobs_user WHERE id IN (
                     SELECT id FROM jobs_user u
                     WHERE is_guest AND password IS NULL AND created_at <= ?1
                         AND NOT EXISTS (SELECT 1 FROM jobs_worker WHERE user_id = u.id)
                     ORDER BY created_at LIMIT ?2
                 )",
                [now - in_micros(kept), limit],
            )?;
            Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
        })
    }
}

fn find(connection: &Connection, user: Uuid) -> rusqlite::Result<Option<User>> {
    connection
        .prepare_cached(
            "SELECT id, email, is_active, is_superuser, is_verified, epoch
             FROM jobs_user WHERE id = ?1",
        )?
        .query_row(params![user], read_user)
        .optional()
}

fn read_user(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: row.get(0)?,
        email: row.get(1)?,
        is_active: row.get(2)?,
        is_superuser: row.get(3)?,
        is_verified: row.get(4)?,
        epoch: row.get(5)?,
    })
}
