//! Users on SQLite.

use std::time::Duration;

use rusqlite::params;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{SqliteStore, rows};
use crate::{
    store::{Users, in_micros, values_of},
    user::{NewUser, User, UserChange, UserChangeOutcome, UserDeletion},
    wakes,
};

impl Users for SqliteStore {
    fn secret(&self, fresh: Vec<u8>) -> Write<Vec<u8>> {
        self.write("secret", wakes::nobody, move |connection, _| {
            connection.execute(
                "INSERT INTO jobs_secret (one, secret) VALUES (1, ?1) ON CONFLICT DO NOTHING",
                params![fresh],
            )?;
            let secret = "SELECT secret FROM jobs_secret";
            Ok(connection.query_row(secret, [], |row| row.get("secret"))?)
        })
    }

    fn create_user(&self, user: NewUser) -> Write<Option<User>> {
        self.write("create_user", wakes::nobody, move |connection, now| {
            let rows = rows(
                connection,
                "INSERT INTO jobs_user
                     (id, email, password, is_superuser, is_verified, is_guest, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)
                 ON CONFLICT DO NOTHING
                 RETURNING *",
                values_of![
                    user.id,
                    user.email,
                    user.password.map(|hash| hash.0),
                    user.is_superuser,
                    user.is_verified,
                    user.is_guest,
                    now,
                ],
            )?;
            Ok(rows.first().map(User::from_row))
        })
    }

    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChangeOutcome> {
        self.write("change_user", wakes::nobody, move |connection, _| {
            if let Some(email) = &change.email {
                let sql = "SELECT EXISTS (SELECT 1 FROM jobs_user WHERE email = ?1 AND id <> ?2)";
                let is_taken: bool =
                    connection.query_row(sql, params![email, user], |row| row.get(0))?;
                let exists = "SELECT EXISTS (SELECT 1 FROM jobs_user WHERE id = ?1)";
                if is_taken && connection.query_row(exists, params![user], |row| row.get(0))? {
                    return Ok(UserChangeOutcome::EmailTaken);
                }
            }
            let rows = rows(
                connection,
                "UPDATE jobs_user SET
                     email = coalesce($2, email),
                     password = coalesce($3, password),
                     epoch = epoch + ($3 IS NOT NULL),
                     is_active = coalesce($4, is_active),
                     is_superuser = coalesce($5, is_superuser),
                     is_verified = coalesce($6, is_verified AND coalesce($2, email) = email)
                 WHERE id = $1
                 RETURNING *",
                values_of![
                    user,
                    change.email,
                    change.password.map(|hash| hash.0),
                    change.is_active,
                    change.is_superuser,
                    change.is_verified,
                ],
            )?;
            let changed = rows.first().map(User::from_row);
            Ok(changed.map_or(UserChangeOutcome::NotFound, UserChangeOutcome::Done))
        })
    }

    fn delete_user(&self, user: Uuid) -> Write<UserDeletion> {
        self.write("delete_user", wakes::nobody, move |connection, _| {
            let sql = "SELECT EXISTS (SELECT 1 FROM jobs_worker WHERE user_id = ?1)";
            if connection.query_row(sql, params![user], |row| row.get(0))? {
                return Ok(UserDeletion::HasWorkers);
            }
            let deleted =
                connection.execute("DELETE FROM jobs_user WHERE id = ?1", params![user])?;
            Ok(match deleted {
                0 => UserDeletion::NotFound,
                _ => UserDeletion::Done,
            })
        })
    }

    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64> {
        self.write("sweep_guests", wakes::nobody, move |connection, now| {
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
