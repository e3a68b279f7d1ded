//! Who is known here, by what they are recognised, and what they may do to one another.

mod accounts;
mod known;
mod outside;
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

use self::{known::Known, passwords::Passwords, token::Key};
use crate::{
    caller::Caller,
    error::Error,
    store,
    user::{NewUser, User},
};

pub use self::{
    accounts::{Changes, Credentials},
    passwords::{MAX_PASSWORD, MIN_PASSWORD},
    refresh::{REFRESHED_TOKEN, refreshing},
};
pub(crate) use self::{refresh::Accepted, token::Claims};

/// Bytes of a secret that is made here.
const SECRET: usize = 32;

#[derive(Clone)]
pub struct Settings {
    /// With what tokens are signed. Without one, one is made and kept in the database.
    pub secret: Option<String>,
    pub token_lifetime: Duration,
    /// For one machine: every new user is a superuser, and so is whoever sends no token.
    pub is_dev: bool,
    /// Email and password of a superuser that is there after the start.
    pub admin: Option<(String, String)>,
    /// Whether anybody may be a guest, or register; in dev mode they may.
    pub guests: bool,
    pub registration: bool,
    /// How long a guest without workers is known.
    pub keep_guests: Duration,
    /// Whether lists are read without a token, as zndraw-joblib lets them be; in dev mode they are.
    pub open_lists: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            secret: None,
            token_lifetime: Duration::from_secs(60 * 60),
            is_dev: false,
            admin: None,
            guests: false,
            registration: false,
            keep_guests: Duration::from_secs(30 * 86_400),
            open_lists: false,
        }
    }
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

/// What is done with each worker of a user who is deleted.
pub trait Leaving: Send + Sync + fmt::Debug {
    /// The worker is removed with everything that it has, and who waits for that is told.
    fn leaving(&self, worker: Uuid) -> BoxFuture<'_, ()>;
}

#[derive(Debug)]
pub struct Users {
    store: Arc<dyn store::Users>,
    bus: Arc<Bus>,
    settings: Settings,
    key: Key,
    passwords: Passwords,
    known: Arc<Known>,
    leaving: OnceLock<Arc<dyn Leaving>>,
}

/// Why a caller is nobody.
#[derive(Debug)]
pub(crate) enum Nobody {
    NoToken,
    /// Forged, over, or of a user who is gone or not active.
    BadToken,
    Failed(Error),
}

impl From<Nobody> for Error {
    fn from(nobody: Nobody) -> Self {
        match nobody {
            Nobody::NoToken | Nobody::BadToken => Self::unauthorized(),
            Nobody::Failed(error) => error,
        }
    }
}

impl From<wakeline_store::Error> for Nobody {
    fn from(error: wakeline_store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Users {
    /// With the secret that all nodes share, and with the admin of the settings.
    pub async fn open(
        store: Arc<dyn store::Users>,
        bus: Arc<Bus>,
        settings: Settings,
    ) -> Result<Self, Error> {
        let key = match &settings.secret {
            Some(secret) => Key::new(secret.as_bytes()),
            None => {
                let fresh: [u8; SECRET] = rand::random();
                Key::new(&store.secret(fresh.to_vec()).commit(&bus).await?)
            }
        };
        let users = Self {
            store,
            bus,
            settings,
            key,
            passwords: Passwords::new(),
            known: Arc::default(),
            leaving: OnceLock::new(),
        };
        if let Some((email, password)) = users.settings.admin.clone() {
            users.keep_admin(Credentials { email, password }).await?;
        }
        Ok(users)
    }

    /// Whom to tell of the workers of a deleted user. Said once, before anybody is served.
    pub fn on_leaving(&self, leaving: Arc<dyn Leaving>) {
        let _ = self.leaving.set(leaving);
    }

    /// Who sends this. `identity` is whom the server's own login has found.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
    ) -> Result<Caller, Error> {
        Ok(self.recognise(headers, identity, None).await?)
    }

    /// Who connects with this token.
    pub async fn identify_token(&self, token: Option<&str>) -> Result<Caller, Error> {
        let caller = match token {
            Some(token) => self.of_token(token).await,
            None => self.of_no_token().await,
        };
        Ok(caller?)
    }

    /// Who reads a list; `None` is somebody unknown who may.
    pub(crate) async fn may_list(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
        claims: Option<&Claims>,
    ) -> Result<Option<Caller>, Error> {
        match self.recognise(headers, identity, claims).await {
            Ok(caller) => Ok(Some(caller)),
            Err(Nobody::NoToken | Nobody::BadToken) if self.settings.open_lists => Ok(None),
            Err(nobody) => Err(nobody.into()),
        }
    }

    /// `claims` are what the token in these headers says, where that has been checked already.
    pub(crate) async fn recognise(
        &self,
        headers: &HeaderMap,
        identity: Option<&Identity>,
        claims: Option<&Claims>,
    ) -> Result<Caller, Nobody> {
        if let Some(identity) = identity {
            let caller = self.outsider(outside::of_identity(identity)).await?;
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
                None => Err(Nobody::BadToken),
            },
        }
    }

    async fn of_no_token(&self) -> Result<Caller, Nobody> {
        if !self.settings.is_dev {
            return Err(Nobody::NoToken);
        }
        self.outsider(outside::local()).await
    }

    async fn of_token(&self, token: &str) -> Result<Caller, Nobody> {
        let claims = self.claims(token).ok_or(Nobody::BadToken)?;
        self.of_claims(claims).await
    }

    async fn of_claims(&self, claims: Claims) -> Result<Caller, Nobody> {
        match self.known.find(&*self.store, claims.user).await? {
            Some(user) if user.epoch == claims.epoch => caller(&user),
            _ => Err(Nobody::BadToken),
        }
    }

    /// Somebody who was not made here, and is on first need.
    async fn outsider(&self, outsider: NewUser) -> Result<Caller, Nobody> {
        let id = outsider.id;
        if let Some(user) = self.known.find(&*self.store, id).await? {
            return caller(&user);
        }
        // Nothing comes of it where another call, or another node, was first.
        let forget = self.known.forget_after(id);
        let created = self.store.create_user(outsider).map(|_| drop(forget));
        created.commit(&self.bus).await?;
        match self.known.find(&*self.store, id).await? {
            Some(user) => caller(&user),
            None => Err(Nobody::BadToken),
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

fn caller(user: &User) -> Result<Caller, Nobody> {
    if !user.is_active {
        return Err(Nobody::BadToken);
    }
    Ok(Caller {
        id: user.id,
        is_superuser: user.is_superuser,
    })
}

/// What follows `Bearer`.
fn bearer(given: &HeaderValue) -> Option<&str> {
    let (scheme, token) = given.to_str().ok()?.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}
