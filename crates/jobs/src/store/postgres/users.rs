//! Users on PostgreSQL.

use std::time::Duration;

use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    store::{Users, in_micros, only, values_of},
    user::{User, UserChange, UserChangeOutcome, UserDeletion},
    wakes,
};

impl Users for PostgresStore {
    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChangeOutcome> {
        self.call(
            "SELECT state, (changed).* FROM wakeline.jobs_change_user($1, $2, $3, $4, $5, $6)",
            values_of![
                user,
                change.email,
                change.password.map(|hash| hash.0),
                change.is_active,
                change.is_superuser,
                change.is_verified,
            ],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                match row.get("state") {
                    0 => Ok(UserChangeOutcome::NotFound),
                    1 => Ok(UserChangeOutcome::EmailTaken),
                    2 => Ok(UserChangeOutcome::Done(User::from_row(row))),
                    other => Err(unknown(other)),
                }
            },
        )
    }

    fn delete_user(&self, user: Uuid) -> Write<UserDeletion> {
        self.call(
            "SELECT wakeline.jobs_delete_user($1) AS state",
            values_of![user],
            wakes::nobody,
            |rows| match only(rows)?.get("state") {
                0 => Ok(UserDeletion::NotFound),
                1 => Ok(UserDeletion::HasWorkers),
                2 => Ok(UserDeletion::Done),
                other => Err(unknown(other)),
            },
        )
    }

    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64> {
        self.call(
            "SELECT wakeline.jobs_sweep_guests($1, $2) AS removed",
            values_of![in_micros(kept), limit],
            wakes::nobody,
            |rows| Ok(only(rows)?.get("removed")),
        )
    }
}

fn unknown(state: i64) -> Error {
    Error::OutcomeUnknown(format!("an answer of the unknown state {state}"))
}
