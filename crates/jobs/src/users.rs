//! The users: how a caller is identified, and what users may do with one another.

mod accounts;
mod cache;
mod external;
mod failed_logins;
mod passwords;
mod refresh;
mod token;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};
use uuid::Uuid;
use wakeline_bus::Bus;
use wakeline_web::{Identity, Role};

use self::{cache::UserCache, failed_logins::FailedLogins, passwords::Passwords, token::TokenKey};
use crate::{
    caller::Caller,
    error::Error,
    store,
    user::{NewUser, User},
};

pub use self::{
    accounts::{Credentials, UserChanges},
    passwords::MAX_PASSWORD,
    refresh::{REFRESHED_TOKEN, refreshing},
};
pub(crate) use self::{refresh::TokenAccepted, token::Claims};

/// Bytes of a secret that is generated here.
const SECRET: usize = 32;

#[derive(Clone)]
pub struct Settings {
    /// The secret that signs tokens. Without one, one is generated and stored in the database.
    pub secret: Option<String>,
    pub token_lifetime: Duration,
    /// For one machine: every new user is a superuser, and so is a request without a token.
    pub is_dev: bool,
    /// Email and password of a superuser that exists after the start.
    pub admin: Option<(String, String)>,
    /// Whether everyone may be a guest, or register; in dev mode they may.
    pub guests: bool,
    pub registration: bool,
    /// Characters that a password has at least.
    pub min_password: usize,
    /// How long a guest without workers is kept.
    pub keep_guests: Duration,
    /// Whether lists can be read without a token, as in zndraw-joblib; in dev mode they can.
    pub open_lists: bool,
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admin = self.admin.as_ref().map(|(email, _)| email);
        out.debug_struct("Settings")
            .field("has_secret", &self.secret.is_some())
            .field("token_lifetime", &self.token_lifetime)
            .field("is_dev", &self.is_dev)
            .field("admin", &admin)
            .field("guests", &self.guests)
            .field("registration", &self.registration)
            .field("keep_guests", &self.keep_guests)
            .field("open_lists", &self.open_lists)
            .finish()
    }
}

/// Removes the workers of a user who is deleted.
pub trait WorkerRemover: Send + Sync + fmt::Debug {
    /// Removes the worker with everything that it has, and wakes the requests that wait for that.
    fn remove_worker_of_user(&self, worker: Uuid) -> BoxFuture<'_, ()>;
}

#[derive(Debug)]
pub struct Users {
    store: Arc<dyn store::Users>,
    bus: Arc<Bus>,
    settings: Settings,
    key: TokenKey,
    passwords: Passwords,
    failed_logins: FailedLogins,
    cache: Arc<UserCache>,
    worker_remover: OnceLock<Arc<dyn WorkerRemover>>,
}

/// Why a caller was not identified.
#[derive(Debug)]
pub(crate) enum IdentifyError {
    NoToken,
    /// Forged, expired, or of a user who was deleted or is not active.
    BadToken,
    Failed(Error),
}

impl From<IdentifyError> for Error {
    fn from(identify_error: IdentifyError) -> Self {
        match identify_error {
            IdentifyError::NoToken | IdentifyError::BadToken => Self::unauthorized(),
            IdentifyError::Failed(error) => error,
        }
    }
}

impl From<wakeline_store::Error> for IdentifyError {
    fn from(error: wakeline_store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Users {
    /// Opens the users with the secret that all nodes share, and creates the admin of the settings.
    pub async fn open(
        store: Arc<dyn store::Users>,
        bus: Arc<Bus>,
        settings: Settings,
    ) -> Result<Self, Error> {
        let key = match &settings.secret {
            Some(secret) => TokenKey::new(secret.as_bytes()),
            None => {
                let fresh: [u8; SECRET] = rand::random();
                TokenKey::new(&store.secret(fresh.to_vec()).commit(&bus).await?)
            }
        };
        let users = Self {
            store,
            bus,
            settings,
            key,
            passwords: Passwords::new(),
            failed_logins: FailedLogins::default(),
            cache: Arc::default(),
            worker_remover: OnceLock::new(),
        };
        if let Some((email, password)) = users.settings.admin.clone() {
            users.keep_admin(Credentials { email, password }).await?;
        }
        Ok(users)
    }

    /// Called once, before the first request.
    pub fn set_worker_remover(&self, worker_remover: Arc<dyn WorkerRemover>) {
        let _ = self.worker_remover.set(worker_remover);
    }

    /// The user of a request. `identity` is what the server's own login has found.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
    ) -> Result<Caller, Error> {
        Ok(self.recognise(headers, identity, None).await?)
    }

    /// The user of a connection with this token.
    pub async fn identify_token(&self, token: Option<&str>) -> Result<Caller, Error> {
        let caller = match token {
            Some(token) => self.of_token(token).await,
            None => self.of_no_token().await,
        };
        Ok(caller?)
    }

    /// The user who reads a list; `None`: an unknown caller, where the settings allow it.
    pub(crate) async fn may_list(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
        claims: Option<&Claims>,
    ) -> Result<Option<Caller>, Error> {
        match self.recognise(headers, identity, claims).await {
            Ok(caller) => Ok(Some(caller)),
            Err(IdentifyError::NoToken | IdentifyError::BadToken) if self.settings.open_lists => {
                Ok(None)
            }
            Err(identify_error) => Err(identify_error.into()),
        }
    }

    /// `claims` are those of the token in these headers, if they were checked already.
    pub(crate) async fn recognise(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
        claims: Option<&Claims>,
    ) -> Result<Caller, IdentifyError> {
        if let Some(identity) = identity {
            let caller = self.external_user(external::of_identity(identity)).await?;
            return Ok(Caller {
                is_superuser: caller.is_superuser || identity.role == Role::Admin,
                ..caller
            });
        }
        if let Some(claims) = claims {
            return self.of_claims(*claims).await;
        }
        match headers.get(header::AUTHORIZATION) {
            None => self.of_no_token().await,
            Some(given) => match bearer(given) {
                Some(token) => self.of_token(token).await,
                None => Err(IdentifyError::BadToken),
            },
        }
    }

    async fn of_no_token(&self) -> Result<Caller, IdentifyError> {
        if !self.settings.is_dev {
            return Err(IdentifyError::NoToken);
        }
        self.external_user(external::local()).await
    }

    async fn of_token(&self, token: &str) -> Result<Caller, IdentifyError> {
        let claims = self.claims(token).ok_or(IdentifyError::BadToken)?;
        self.of_claims(claims).await
    }

    async fn of_claims(&self, claims: Claims) -> Result<Caller, IdentifyError> {
        match self.cache.find(&*self.store, claims.user).await? {
            Some(user) if user.epoch == claims.epoch => caller(&user),
            _ => Err(IdentifyError::BadToken),
        }
    }

    /// An external user, created at its first call.
    async fn external_user(&self, external_user: NewUser) -> Result<Caller, IdentifyError> {
        let id = external_user.id;
        if let Some(user) = self.cache.find(&*self.store, id).await? {
            return caller(&user);
        }
        // The id is taken if another call, or another node, was first.
        let forget = self.cache.forget_after(id);
        let created = self.store.create_user(external_user).map(|_| drop(forget));
        created.commit(&self.bus).await?;
        match self.cache.find(&*self.store, id).await? {
            Some(user) => caller(&user),
            None => Err(IdentifyError::BadToken),
        }
    }

    fn claims(&self, token: &str) -> Option<Claims> {
        self.key.read(token, token::now())
    }

    fn token(&self, user: Uuid, epoch: i32) -> String {
        let end = token::now().saturating_add(self.settings.token_lifetime.as_secs());
        self.key.sign(Claims { user, epoch, end })
    }
}

fn caller(user: &User) -> Result<Caller, IdentifyError> {
    if !user.is_active {
        return Err(IdentifyError::BadToken);
    }
    Ok(Caller {
        id: user.id,
        is_superuser: user.is_superuser,
    })
}

/// The token after `Bearer`.
fn bearer(given: &HeaderValue) -> Option<&str> {
    let (scheme, token) = given.to_str().ok()?.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}
