//! The steps of users.

use std::time::Duration;

use uuid::Uuid;
use wakeline_bus::Write;

use super::Step;
use crate::user::{Login, NewUser, User, UserChange, UserChanged, UserDeleted};

/// Each method is one atomic step.
pub trait Users: Send + Sync + std::fmt::Debug {
    /// What all nodes sign tokens with: `fresh`, if there is nothing yet.
    fn secret(&self, fresh: Vec<u8>) -> Write<Vec<u8>>;

    /// `None`: the id or the email is somebody's already.
    fn create_user(&self, user: NewUser) -> Write<Option<User>>;

    fn user(&self, user: Uuid) -> Step<'_, Option<User>>;

    fn login(&self, email: String) -> Step<'_, Option<Login>>;

    /// Another password is another epoch, and another email is not a verified one.
    fn change_user(&self, user: Uuid, change: UserChange) -> Write<UserChanged>;

    fn workers_of_user(&self, user: Uuid) -> Step<'_, Vec<Uuid>>;

    /// Only one without workers.
    fn delete_user(&self, user: Uuid) -> Write<UserDeleted>;

    /// Removes guests without workers that came longer ago than `kept`, the oldest first and at
    /// most `limit`. How many.
    fn sweep_guests(&self, kept: Duration, limit: i64) -> Write<i64>;
}
