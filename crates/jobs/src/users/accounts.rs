//! Users are created, log in, are changed and deleted.

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, StatusCode};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_web::{Identity, Problem};

use super::{IdentifyError, MAX_PASSWORD, Users, failed_logins::LoginSource};
use crate::{
    caller::Caller,
    error::{Error, InvalidField},
    topic,
    user::{self, NewUser, User, UserChange, UserChangeOutcome, UserDeletion},
    wakes,
};

/// How often the deletion of a user is tried who keeps getting workers.
const DELETE_ROUNDS: usize = 5;
/// How often another address is tried for a guest.
const GUEST_ROUNDS: usize = 3;
/// The interval of the sweep of guests, and how many it removes in one step.
const SWEEP: Duration = Duration::from_secs(60 * 60);
const SWEPT_AT_ONCE: i64 = 500;

#[derive(Clone)]
pub struct Credentials {
    pub email: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Credentials");
        out.field("email", &self.email).finish_non_exhaustive()
    }
}

/// What a request changes of a user.
#[derive(Clone, Default)]
pub struct UserChanges {
    pub email: Option<String>,
    pub password: Option<String>,
    pub is_active: Option<bool>,
    pub is_superuser: Option<bool>,
    pub is_verified: Option<bool>,
}

impl fmt::Debug for UserChanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("UserChanges");
        out.field("email", &self.email).finish_non_exhaustive()
    }
}

impl Users {
    /// Creates the admin of the settings, or resets it to them.
    pub(super) async fn keep_admin(&self, admin: Credentials) -> Result<(), Error> {
        let (email, password) = self.checked(&admin)?;
        let found = self.store.login(email.clone()).await?;
        let Some(login) = found else {
            let new = NewUser {
                id: Uuid::new_v4(),
                email,
                password: Some(
                    self.passwords
                        .hash(self.passwords.slot()?, password)
                        .await?,
                ),
                is_superuser: true,
                is_verified: true,
                is_guest: false,
            };
            // Another node that was first has created the same.
            self.store.create_user(new).commit(&self.bus).await?;
            return Ok(());
        };
        // A password that is still the same is left as it is: its change would end all tokens.
        let slot = self.passwords.slot()?;
        let kept = login.password.clone();
        let is_same = kept.is_some() && self.passwords.check(slot, password.clone(), kept).await?;
        let password = if is_same {
            None
        } else {
            Some(
                self.passwords
                    .hash(self.passwords.slot()?, password)
                    .await?,
            )
        };
        let change = UserChange {
            password,
            is_active: Some(true),
            is_superuser: Some(true),
            is_verified: Some(true),
            ..UserChange::default()
        };
        let changed = self.store.change_user(login.user.id, change);
        changed.commit(&self.bus).await?;
        Ok(())
    }

    fn checked(&self, given: &Credentials) -> Result<(String, String), Error> {
        let email = checked_email(&given.email)?;
        self.check_password(&given.password)?;
        Ok((email, given.password.clone()))
    }

    fn check_password(&self, password: &str) -> Result<(), Error> {
        check_password(password, self.settings.min_password)
    }

    /// Creates a guest. Returns it with its token.
    pub async fn guest(&self) -> Result<(User, String), Error> {
        if !(self.settings.is_dev || self.settings.guests) {
            return Err(Error::forbidden(
                "Guests are not let in here (jobs.guests); log in instead",
            ));
        }
        for _ in 0..GUEST_ROUNDS {
            let new = NewUser {
                id: Uuid::new_v4(),
                email: format!("{:08x}@guest.user", rand::random::<u32>()),
                password: None,
                is_superuser: self.settings.is_dev,
                is_verified: false,
                is_guest: true,
            };
            if let Some(user) = self.store.create_user(new).commit(&self.bus).await? {
                let token = self.token(user.id, user.epoch);
                return Ok((user, token));
            }
        }
        Err(Error::Web(Problem::unavailable(
            "guests",
            "no free address was found for a guest; nothing was done, try again",
        )))
    }

    /// Removes old guests, for ever. Guests with workers stay, so it looks at an interval and not
    /// at a due time.
    pub async fn sweep_guests(self: Arc<Self>) {
        // The first token of a guest is valid for as long as it says.
        let kept = self.settings.keep_guests.max(self.settings.token_lifetime);
        loop {
            let swept = self.store.sweep_guests(kept, SWEPT_AT_ONCE);
            match swept.commit(&self.bus).await {
                Ok(SWEPT_AT_ONCE) => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "guests could not be swept; trying again"),
            }
            tokio::time::sleep(kept.min(SWEEP)).await;
        }
    }

    /// Everyone, where the settings say so; and always a superuser, for others.
    pub async fn may_register(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
    ) -> Result<(), Error> {
        if self.settings.is_dev || self.settings.registration {
            return Ok(());
        }
        match self.recognise(headers, identity, None).await {
            Ok(caller) if caller.is_superuser => Ok(()),
            Err(IdentifyError::Failed(error)) => Err(error),
            Ok(_) | Err(IdentifyError::NoToken | IdentifyError::BadToken) => Err(Error::forbidden(
                "Nobody registers here (jobs.registration); a superuser may do it for you",
            )),
        }
    }

    pub async fn register(&self, wanted: Credentials) -> Result<User, Error> {
        let (email, password) = self.checked(&wanted)?;
        let slot = self.passwords.slot()?;
        let new = NewUser {
            id: Uuid::new_v4(),
            email,
            password: Some(self.passwords.hash(slot, password).await?),
            is_superuser: self.settings.is_dev,
            is_verified: false,
            is_guest: false,
        };
        let made = self.store.create_user(new).commit(&self.bus).await?;
        made.ok_or(Error::Detail(
            StatusCode::BAD_REQUEST,
            "REGISTER_USER_ALREADY_EXISTS",
        ))
    }

    /// Returns a token if the password is right. Neither the answer nor its time reveals whether
    /// the user exists. After several failures at this account from this address, the next login
    /// has to wait.
    pub async fn login(
        &self,
        given: Credentials,
        address: Option<IpAddr>,
    ) -> Result<String, Error> {
        let bad = Error::Detail(StatusCode::BAD_REQUEST, "LOGIN_BAD_CREDENTIALS");
        if given.password.len() > MAX_PASSWORD {
            return Err(bad);
        }
        let email = given.email.trim().to_lowercase();
        let source = LoginSource::new(&email, address);
        // Before a slot is taken: a caller who guesses takes none from others.
        self.failed_logins.check(&source, Instant::now())?;
        let slot = self.passwords.slot()?;
        let attempt = self.failed_logins.begin(source, Instant::now).await?;
        let shown: String = email.chars().take(user::MAX_EMAIL).collect();
        // PostgreSQL refuses a NUL, and no address has one.
        let found = if email.contains('\0') {
            None
        } else {
            self.store.login(email).await?
        };
        let (user, kept) = found.map_or((None, None), |login| (Some(login.user), login.password));
        let has_password = kept.is_some();
        let is_right = self.passwords.check(slot, given.password, kept).await?;
        match user {
            Some(user) if is_right && has_password && user.is_active => {
                attempt.succeeded();
                Ok(self.token(user.id, user.epoch))
            }
            _ => {
                let failures = attempt.failed(Instant::now());
                let address = address.map(tracing::field::display);
                // Without the password: it may be the right one but for a letter.
                tracing::info!(account = ?shown, address, failures, "a login failed");
                Err(bad)
            }
        }
    }

    /// The user that a caller is.
    pub async fn me(&self, caller: Caller) -> Result<User, Error> {
        let found = self.cache.find(&*self.store, caller.id).await?;
        let user = found.ok_or_else(Error::unauthorized)?;
        Ok(User {
            is_superuser: caller.is_superuser,
            ..user
        })
    }

    pub async fn user(&self, id: Uuid) -> Result<User, Error> {
        self.store.user(id).await?.ok_or_else(not_found)
    }

    pub async fn change(&self, id: Uuid, changes: UserChanges) -> Result<User, Error> {
        let email = match &changes.email {
            Some(text) => Some(checked_email(text)?),
            None => None,
        };
        let password = match changes.password {
            Some(password) => {
                self.check_password(&password)?;
                Some(
                    self.passwords
                        .hash(self.passwords.slot()?, password)
                        .await?,
                )
            }
            None => None,
        };
        let change = UserChange {
            email,
            password,
            is_active: changes.is_active,
            is_superuser: changes.is_superuser,
            is_verified: changes.is_verified,
        };
        let forget = self.cache.forget_after(id);
        let changed = self.store.change_user(id, change).map(|changed| {
            drop(forget);
            changed
        });
        match changed.commit(&self.bus).await? {
            UserChangeOutcome::Done(user) => Ok(user),
            UserChangeOutcome::NotFound => Err(not_found()),
            UserChangeOutcome::EmailTaken => Err(Error::Detail(
                StatusCode::BAD_REQUEST,
                "UPDATE_USER_EMAIL_ALREADY_EXISTS",
            )),
        }
    }

    /// Deletes a user with everything of theirs, in one write that outlives the caller: a request
    /// that ends half way has deleted the user all the same.
    pub async fn delete(self: &Arc<Self>, id: Uuid) -> Result<(), Error> {
        let this = self.clone();
        // Each step of it wakes its waiters itself.
        let deleting = Write::new(
            topic::DOOR,
            async move { Ok(this.delete_in_steps(id).await) },
            wakes::nobody,
        );
        deleting.commit(&self.bus).await?
    }

    /// The workers leave one by one, so that the waiters of each are woken. A process that dies half
    /// way leaves a user who can do nothing any more; a second call completes the deletion.
    async fn delete_in_steps(&self, id: Uuid) -> Result<(), Error> {
        // First of all, so that no more workers come.
        let off = UserChanges {
            is_active: Some(false),
            ..UserChanges::default()
        };
        self.change(id, off).await?;
        for _ in 0..DELETE_ROUNDS {
            for worker in self.store.workers_of_user(id).await? {
                if let Some(worker_remover) = self.worker_remover.get() {
                    worker_remover.remove_worker_of_user(worker).await;
                }
            }
            let forget = self.cache.forget_after(id);
            let deleted = self.store.delete_user(id).map(|deleted| {
                drop(forget);
                deleted
            });
            match deleted.commit(&self.bus).await? {
                UserDeletion::Done => return Ok(()),
                UserDeletion::NotFound => return Err(not_found()),
                UserDeletion::HasWorkers => {}
            }
        }
        Err(Error::Web(Problem::unavailable(
            "workers-left",
            "the user is not active any more, but still has workers; delete it again",
        )))
    }
}

fn not_found() -> Error {
    Error::Detail(StatusCode::NOT_FOUND, "Not Found")
}

fn checked_email(text: &str) -> Result<String, Error> {
    user::email(text).map_err(|reason| {
        let message = format!("value is not a valid email address: {reason}");
        let shown: String = text.chars().take(user::MAX_EMAIL).collect();
        InvalidField::new("value_error", &["body", "email"], message, shown)
            .with_context(serde_json::json!({ "reason": reason }))
            .into()
    })
}

/// A refusal does not repeat the password: answers are logged more often than requests.
fn check_password(password: &str, min_password: usize) -> Result<(), Error> {
    let at = &["body", "password"];
    let invalid = |kind, message: String, context| {
        Err(
            InvalidField::new(kind, at, message, serde_json::Value::Null)
                .with_context(context)
                .into(),
        )
    };
    if password.chars().count() < min_password {
        return invalid(
            "string_too_short",
            format!("String should have at least {min_password} characters"),
            serde_json::json!({ "min_length": min_password }),
        );
    }
    if password.len() > MAX_PASSWORD {
        return invalid(
            "string_too_long",
            format!("String should have at most {MAX_PASSWORD} bytes"),
            serde_json::json!({ "max_length": MAX_PASSWORD }),
        );
    }
    Ok(())
}
