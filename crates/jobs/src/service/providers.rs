//! Providers are registered, answer, and are removed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::body::Body;
use uuid::Uuid;
use wakeline_store::Error as StoreError;

use super::{
    Jobs,
    jobs::{Offer, allowed, no_worker},
};
use crate::{
    caller::Caller,
    error::Error,
    name::{FullName, GLOBAL, INTERNAL, check_room, scopes},
    page::{ListPage, Page},
    problem::{self, PROVIDER_EXECUTION_FAILED},
    provider::{AnswerKey, NewProvider, Provider, ProviderFilter, ProviderRegistration},
    results::{Upload, UploadOutcome},
    topic::Wait,
    worker::OwnerOutcome,
};

/// An answer that is not to be stored is kept so long for the readers that wait now, on every node.
const NOT_KEPT: Duration = Duration::from_secs(2);
/// The category whose providers have the frames of rooms.
pub(super) const FRAMES: &str = "frames";

impl Jobs {
    /// Returns the provider, and whether it is new.
    pub async fn register_provider(
        self: &Arc<Self>,
        caller: Caller,
        room: &str,
        offer: Offer,
        content_type: String,
        ttl: Option<Duration>,
    ) -> Result<(Provider, bool), Error> {
        check_room(room)?;
        if room == INTERNAL {
            let text = "Providers of @internal are the server's own";
            return Err(Error::forbidden(text));
        }
        if room == GLOBAL && !caller.is_superuser {
            return Err(Error::forbidden(
                "Admin required for @global provider registration",
            ));
        }
        if !self.settings.provider_categories.is_empty() {
            allowed(&offer.category, &self.settings.provider_categories)?;
        }
        self.check_offer(room, &offer)?;
        let new = NewProvider {
            name: FullName::new(room, &offer.category, &offer.name),
            schema: offer.schema.to_string(),
            content_type,
            user: caller.id,
            is_superuser: caller.is_superuser,
            worker: offer.worker,
            ttl,
        };
        match self.put_provider(new).await? {
            ProviderRegistration::NoWorker => Err(no_worker(offer.worker)),
            ProviderRegistration::NotOwner => Err(Error::forbidden(
                "Provider already registered by another user",
            )),
            ProviderRegistration::Done { provider, is_new } => Ok((provider, is_new)),
        }
    }

    pub(super) async fn put_provider(
        self: &Arc<Self>,
        new: NewProvider,
    ) -> Result<ProviderRegistration, StoreError> {
        let door = self.clone();
        let registered = self.store.register_provider(new);
        let registered = registered.then(async move |registered| {
            if let ProviderRegistration::Done { provider, .. } = &registered {
                let (name, version) = (&provider.name, Some(provider.version));
                door.forget(name, provider.id, version).await;
                door.events.providers_changed(&name.room);
            }
            registered
        });
        registered.commit(&self.bus).await
    }

    /// The answers of a provider before `version`, or all.
    async fn forget(&self, name: &FullName, provider: Uuid, version: Option<i64>) {
        let forgotten = self.results.of(&name.category).forget(provider, version);
        if let Err(error) = forgotten.commit(&self.bus).await {
            tracing::debug!(%error, "the answers of a provider stay until they expire");
        }
    }

    pub(super) async fn providers_gone(&self, gone: &[(FullName, Uuid)]) {
        for (name, id) in gone {
            self.forget(name, *id, None).await;
        }
        let rooms: BTreeSet<&str> = gone.iter().map(|(name, _)| name.room.as_str()).collect();
        for room in rooms {
            self.events.providers_changed(room);
        }
        let mounted = gone.iter().filter(|(name, _)| name.category == FRAMES);
        let mounted: BTreeSet<&str> = mounted.map(|(name, _)| name.room.as_str()).collect();
        for room in mounted {
            if let Some(frames) = self.frames.get()
                && let Err(error) = frames.provider_gone(room.to_owned()).await
            {
                tracing::warn!(%error, room, "a room whose provider is gone could not be unmounted");
            }
        }
    }

    pub async fn providers(
        &self,
        caller: Option<Caller>,
        room: &str,
        page: Page,
    ) -> Result<ListPage<Provider>, Error> {
        check_room(room)?;
        let is_superuser = caller.is_some_and(|caller| caller.is_superuser);
        let internal = (!is_superuser).then(|| self.internal.for_everybody());
        if room == INTERNAL && internal.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::forbidden("Superusers only"));
        }
        let filter = ProviderFilter {
            rooms: scopes(room, true),
            internal,
        };
        Ok(self.store.providers(filter, page).await?)
    }

    /// The provider that `name` names from `room`: a full name, or `category/name`.
    pub(super) fn name_in(&self, room: &str, name: &str) -> Result<Vec<FullName>, Error> {
        check_room(room)?;
        if let Some(full) = FullName::parse(name) {
            if room != GLOBAL && full.room != room && full.room != GLOBAL && full.room != INTERNAL {
                let text = format!("Provider '{name}' not accessible from room '{room}'");
                return Err(Error::problem(&problem::PROVIDER_NOT_FOUND, text));
            }
            return Ok(vec![full]);
        }
        let short = name
            .split_once('/')
            .filter(|(category, called)| !category.is_empty() && !called.is_empty());
        let names = short.and_then(|(category, called)| {
            let rooms = scopes(room, false);
            let names = rooms
                .iter()
                .map(|room| FullName::fitting(room, category, called));
            names.collect()
        });
        names.ok_or_else(|| {
            let text = format!("Invalid provider name format: {name}");
            Error::problem(&problem::PROVIDER_NOT_FOUND, text)
        })
    }

    pub async fn provider(
        &self,
        caller: Option<Caller>,
        room: &str,
        name: &str,
    ) -> Result<Provider, Error> {
        let names = self.name_in(room, name)?;
        let found = self.store.find_providers(names).await?;
        let provider = found.into_iter().flatten().next();
        let provider = provider.ok_or_else(|| not_found(name))?;
        self.may_read(caller, &provider)?;
        Ok(provider)
    }

    /// The server's own providers are for superusers, unless they say otherwise.
    pub(super) fn may_read(
        &self,
        caller: Option<Caller>,
        provider: &Provider,
    ) -> Result<(), Error> {
        if !provider.name.is_internal() || caller.is_some_and(|caller| caller.is_superuser) {
            return Ok(());
        }
        match self.internal.provider(&provider.name) {
            Some(internal) if !internal.superusers_only() => Ok(()),
            _ => Err(Error::forbidden("Superusers only")),
        }
    }

    /// Only the owner sends heartbeats, as for workers.
    pub async fn touch_provider(&self, caller: Caller, provider: Uuid) -> Result<Provider, Error> {
        let touched = self.store.touch_provider(provider, Some(caller.id));
        owner_only(touched.commit(&self.bus).await?, provider)
    }

    pub async fn remove_provider(
        self: &Arc<Self>,
        caller: Caller,
        provider: Uuid,
    ) -> Result<(), Error> {
        if let Some(known) = self.store.provider(provider).await?
            && known.name.is_internal()
        {
            let text = "Providers of @internal are the server's own";
            return Err(Error::forbidden(text));
        }
        let door = self.clone();
        let removed = self.store.remove_provider(provider, caller.own());
        let removed = removed.then(async move |removed| {
            if let OwnerOutcome::Done(gone) = &removed {
                door.providers_gone(&[(gone.name.clone(), gone.id)]).await;
            }
            removed
        });
        owner_only(removed.commit(&self.bus).await?, provider).map(drop)
    }

    /// Stores an uploaded answer and wakes the readers that wait for it. `ttl` is how long the
    /// answer itself says that it may be kept.
    pub async fn upload(
        self: &Arc<Self>,
        caller: Caller,
        provider: Uuid,
        hash: String,
        body: Body,
        is_error: bool,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        let known = self.store.provider(provider).await?;
        let known = known.ok_or_else(|| not_found(&provider.to_string()))?;
        if caller.own().is_some_and(|user| user != known.user) {
            let text = "Not authorized to upload results for this provider";
            return Err(Error::forbidden(text));
        }
        let upload = self.coming(body, is_error);
        self.answered(&known, hash, upload, ttl).await
    }

    /// An answer within the limits of this server.
    pub(super) fn coming(&self, body: Body, is_error: bool) -> Upload {
        Upload {
            is_error,
            body,
            limit: self.settings.max_result,
            patience: self.settings.upload_patience,
            memory: self.memory.clone(),
        }
    }

    /// Stores an answer and wakes its readers.
    pub(super) async fn answered(
        self: &Arc<Self>,
        provider: &Provider,
        hash: String,
        upload: Upload,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        let ttl = ttl.or(provider.ttl).unwrap_or(self.settings.result_ttl);
        let ttl = if upload.is_error {
            ttl.min(self.settings.error_ttl)
        } else {
            ttl
        };
        let key = AnswerKey {
            provider: provider.id,
            version: provider.version,
            hash: hash.clone(),
        };
        let (door, name) = (self.clone(), provider.name.clone());
        let readers = Wait::Result(name.clone(), hash.clone()).wake().into();
        let results = self.results.of(&name.category);
        let kept = results.put(key, upload, ttl.max(NOT_KEPT), readers);
        let kept = kept.map(move |kept| {
            if kept == UploadOutcome::Done {
                door.events.result_ready(&name, &hash);
            }
            kept
        });
        judge(kept.commit(&self.bus).await?, self.settings.max_result)
    }

    /// A read of a provider failed, and its client said so in the room's chat: the waiting readers
    /// get the failure.
    pub(super) async fn failed(
        self: &Arc<Self>,
        caller: Caller,
        name: &FullName,
        hash: &str,
        detail: &str,
    ) -> Result<(), Error> {
        let found = self.store.find_providers(vec![name.clone()]).await?;
        let Some(provider) = found.into_iter().flatten().next() else {
            return Ok(());
        };
        if caller.own().is_some_and(|user| user != provider.user) {
            return Ok(());
        }
        let document = Error::document(&PROVIDER_EXECUTION_FAILED, detail);
        let upload = self.coming(Body::from(document.text()), true);
        self.answered(&provider, hash.to_owned(), upload, None)
            .await
    }
}

fn judge(kept: UploadOutcome, limit: u64) -> Result<(), Error> {
    use http::StatusCode;
    use wakeline_web::Problem;
    let problem = match kept {
        UploadOutcome::Done => return Ok(()),
        UploadOutcome::TooLarge => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            format!("body: longer than {limit} bytes, the limit for an answer (jobs.max_result)"),
        ),
        UploadOutcome::NoRoom => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "body: it does not fit into what answers on disk may take up (jobs.files_size)",
        ),
        UploadOutcome::NoMemory => Problem::unavailable(
            "overloaded",
            "body: too many answers come in at once (jobs.upload_memory); nothing was kept, try \
             again later",
        ),
        UploadOutcome::TooSlow => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body-too-slow",
            "body: it stopped coming (http.body_timeout); nothing was kept, try again",
        ),
        UploadOutcome::BrokenOff => Problem::invalid("body", "it broke off; nothing was kept"),
    };
    Err(problem.into())
}

pub(super) fn not_found(name: &str) -> Error {
    let text = format!("Provider '{name}' not found");
    Error::problem(&problem::PROVIDER_NOT_FOUND, text)
}

fn owner_only<T>(outcome: OwnerOutcome<T>, provider: Uuid) -> Result<T, Error> {
    outcome.done_or(
        not_found(&provider.to_string()),
        "Provider belongs to different user",
    )
}
