//! Users on SQLite.

use std::time::Duration;

use rusqlite::params;
use uuid::Uuid;
use wakeline_bus::Write;

use super::SqliteStore;
use crate::{
    store::{Users, in_micros, values_of},
    user::{User, UserChange, UserChangeOutcome, UserDeletion},
    wakes,
};

impl Users for SqliteStore {
    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChangeOutcome> {
        self.write("change_user", wakes::nobody, move |session| {
            let sql = "SELECT EXISTS (SELECT 1 FROM jobs_user WHERE email = ?1 AND id <> ?2)
                AND EXISTS (SELECT 1 FROM jobs_user WHERE id = ?2)";
            if session.value(sql, params![change.email, user])? {
                return Ok(UserChangeOutcome::EmailTaken);
            }
            let rows = session.rows(
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
        self.write("delete_user", wakes::nobody, move |session| {
            let sql = "SELECT EXISTS (SELECT 1 FROM jobs_worker WHERE user_id = ?1)";
            if session.value(sql, [user])? {
                return Ok(UserDeletion::HasWorkers);
            }
            let deleted = session.execute("DELETE FROM jobs_user WHERE id = ?1", [user])?;
            Ok(match deleted {
                0 => UserDeletion::NotFound,
                _ => UserDeletion::Done,
            })
        })
    }

    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64> {
        self.write("sweep_guests", wakes::nobody, move |session| {
            let sql = "DELETE FROM jobs_user WHERE id IN (
                    SELECT id FROM jobs_user u
                    WHERE is_guest AND password IS NULL AND created_at <= ?1
                        AND NOT EXISTS (SELECT 1 FROM jobs_worker WHERE user_id = u.id)
                    ORDER BY created_at LIMIT ?2
                )";
            let deleted = session.execute(sql, [session.now - in_micros(kept), limit])?;
            Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
        })
    }
}
