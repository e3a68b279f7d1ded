//! Answers as files in a directory, for those that are too large for a database. The locks on
//! requests are in another backend.
//!
//! Several nodes may share the directory: an answer whose file is gone is not there. Each node
//! keeps to the cap with the files that it knows: its own, those that it has read, and those that
//! it found on its last walk through the directory, which is at most a minute old when a sweep is
//! due.

mod directory;
mod incoming_file;
mod index;
mod name;
mod trailer;

use std::{io, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_store::Error;

use self::{directory::Directory, incoming_file::IncomingFile, name::FileName};
use super::{
    AnswerState, ReadyCheck, ResultBackend, Upload, UploadBody, UploadOutcome, lasting, left,
    outcome_unknown,
};
use crate::{
    provider::{Answer, AnswerKey, ProviderRequest},
    store::StoreFuture,
    topic, wakes,
};

/// Bytes of an answer that are collected before they are written.
const WRITTEN_AT_ONCE: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub struct Files {
    directory: Arc<Directory>,
    locks: Arc<dyn ResultBackend>,
    bus: Arc<Bus>,
}

impl Files {
    /// `cap`: bytes that the files may take up together. Blocks while it walks through the
    /// directory.
    pub fn open(
        directory: &Path,
        cap: u64,
        locks: Arc<dyn ResultBackend>,
        bus: Arc<Bus>,
    ) -> io::Result<Self> {
        Ok(Self {
            directory: Arc::new(Directory::open(directory, cap)?),
            locks,
            bus,
        })
    }

    /// Runs work on files on a thread that may block. After a panic it is not known how far the
    /// work came.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Directory>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || work(&directory))
            .await
            .map_err(|error| Error::OutcomeUnknown(format!("answers on disk: {error}")))?
            .map_err(|error| unavailable(&error))
    }

    /// A part of another write, which wakes the readers.
    async fn unlock(&self, key: AnswerKey, token: Option<Uuid>) -> Result<(), Error> {
        let locks = self.locks.end(key, token, Wakes::none());
        locks.commit(&self.bus).await
    }

    async fn find(&self, names: Vec<FileName>) -> Result<Vec<Option<Answer>>, Error> {
        let found = self
            .blocking(|directory| names.into_iter().map(|name| directory.find(name)).collect())
            .await;
        found.map_err(|error| match error {
            // A read changes nothing.
            Error::OutcomeUnknown(reason) => Error::Failed(reason),
            error => error,
        })
    }

    /// On a blocking thread, because removing a large file takes a while.
    async fn discard(&self, incoming_file: IncomingFile) -> Result<(), Error> {
        self.blocking(move |_| {
            drop(incoming_file);
            Ok(())
        })
        .await
    }

    /// The file with the upload, or why it was refused.
    async fn receive(&self, upload: Upload) -> Result<Result<IncomingFile, UploadOutcome>, Error> {
        let mut body_reader = match UploadBody::new(upload) {
            Ok(body_reader) => body_reader,
            Err(kept) => return Ok(Err(kept)),
        };
        let mut incoming_file = self.blocking(IncomingFile::create).await?;
        loop {
            let (chunks, is_end) = match next_chunks(&mut body_reader).await {
                Ok(gathered) => gathered,
                Err(kept) => {
                    self.discard(incoming_file).await?;
                    return Ok(Err(kept));
                }
            };
            let (written, has_room) = self
                .blocking(move |_| {
                    let has_room = incoming_file.write(&chunks)?;
                    Ok((incoming_file, has_room))
                })
                .await?;
            incoming_file = written;
            if !has_room {
                self.discard(incoming_file).await?;
                return Ok(Err(body_reader.refuse(UploadOutcome::NoRoom)));
            }
            if is_end {
                return Ok(Ok(incoming_file));
            }
        }
    }
}

/// Collects as much as is written at once. Also returns whether it is the end.
async fn next_chunks(body_reader: &mut UploadBody) -> Result<(Vec<Bytes>, bool), UploadOutcome> {
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    while bytes < WRITTEN_AT_ONCE {
        let Some(chunk) = body_reader.next().await? else {
            return Ok((chunks, true));
        };
        bytes += chunk.len();
        chunks.push(chunk);
    }
    Ok((chunks, false))
}

impl ResultBackend for Files {
    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        async move {
            let names = keys.iter().map(FileName::of).collect();
            let answers = self.find(names).await?;
            let missing: Vec<AnswerKey> = keys
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| answer.is_none())
                .map(|(key, _)| key.clone())
                .collect();
            let mut marked = if missing.is_empty() {
                Vec::new().into_iter()
            } else {
                self.locks.get(missing).await?.into_iter()
            };
            let looks = answers.into_iter().map(|answer| match answer {
                // A request with an answer is not in flight.
                Some(answer) => AnswerState {
                    answer: Some(answer),
                    in_flight: None,
                },
                None => marked.next().unwrap_or_default(),
            });
            Ok(looks.collect())
        }
        .boxed()
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        async move {
            let hashed = at.iter().filter_map(ReadyCheck::key);
            let answers = self
                .find(hashed.map(|key| FileName::of(&key)).collect())
                .await?;
            let mut answers = answers.into_iter();
            let mut is_there = |check: &ReadyCheck| {
                let answer = check.hash.as_ref().and_then(|_| answers.next());
                answer.flatten().is_some()
            };
            let there: Vec<bool> = at.iter().map(&mut is_there).collect();
            let marked = self.locks.are_ready(at).await?;
            let both = there.into_iter().zip(marked);
            Ok(both.map(|(is_there, marked)| is_there || marked).collect())
        }
        .boxed()
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        let this = self.clone();
        let run = async move {
            let is_error = upload.is_error;
            let incoming_file = match this.receive(upload).await? {
                Ok(incoming_file) => incoming_file,
                Err(kept) => return Ok(kept),
            };
            let name = FileName::of(&key);
            let keep =
                move |_: &_| incoming_file.keep(name, is_error, directory::now() + lasting(ttl));
            // From here on the answer may be stored, so its readers must be rechecked, whatever
            // comes next.
            this.blocking(keep).await.map_err(outcome_unknown)?;
            this.unlock(key, None).await.map_err(outcome_unknown)?;
            Ok(UploadOutcome::Done)
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        let this = self.clone();
        let run = async move {
            let (key, token) = (request.key.clone(), request.token);
            if !this.locks.begin(request, ttl).commit(&this.bus).await? {
                return Ok(false);
            }
            // After the lock: an answer whose put has released an earlier lock is visible now.
            let found = this.find(vec![FileName::of(&key)]).await;
            let is_there = found.map_err(outcome_unknown)?[0].is_some();
            if is_there {
                let unmarked = this.unlock(key, Some(token)).await;
                unmarked.map_err(outcome_unknown)?;
            }
            Ok(!is_there)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.locks.end(key, token, readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        self.locks.in_flight(provider, version)
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let forgotten = this.blocking(move |directory| directory.forget(provider, version));
            // Some of the files may be removed.
            forgotten.await.map_err(outcome_unknown)?;
            let locks = this.locks.forget(provider, version);
            locks.commit(&this.bus).await
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        let this = self.clone();
        let run = async move {
            let files = this
                .blocking(|directory| directory.sweep())
                .await?
                .map(left);
            let locks = this.locks.sweep().commit(&this.bus).await?;
            Ok(files.into_iter().chain(locks).min())
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }
}

fn unavailable(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::disk_full(error),
        _ => Error::Unavailable(format!("answers on disk: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use wakeline_testkit::SqliteDatabase;
    use wakeline_wake::Engine;

    use super::*;
    use crate::store::sqlite::{MIGRATIONS, SqliteStore, system_clock};

    #[tokio::test]
    async fn after_a_panic_the_outcome_is_unknown() {
        let (directory, file) = (tempfile::tempdir().unwrap(), SqliteDatabase::new());
        let locks = SqliteStore::new(file.open(&[MIGRATIONS]), system_clock());
        let bus = Bus::local(Engine::new(wakeline_wake::Limits::default()));
        let files = Files::open(directory.path(), 1 << 20, Arc::new(locks), bus).unwrap();
        let ended = files.blocking::<()>(|_| panic!("a test")).await;
        assert!(matches!(ended, Err(Error::OutcomeUnknown(_))), "{ended:?}");
    }
}
