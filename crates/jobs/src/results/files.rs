//! Answers as files in a directory, for those that are too large for a database. What has been
//! asked is marked elsewhere.
//!
//! Several nodes may share the directory: a file that is gone is an answer that is not there. Each
//! keeps to the cap with the files that it knows: its own, those that it has read, and what it saw
//! on its last walk through the directory, which is a minute old at most when a sweep is due.

mod arriving;
mod directory;
mod name;
mod shelf;
mod tail;

use std::{io, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_store::Error;

use self::{arriving::Arriving, directory::Directory, name::Name};
use super::{Glance, Incoming, Kept, Look, Results, Upload, lasting, left, outcome_unknown};
use crate::{
    provider::{Answer, Key, Request},
    store::Step,
    topic, wakes,
};

/// What is gathered of an answer before it is written.
const WRITTEN_AT_ONCE: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub struct Files {
    directory: Arc<Directory>,
    marks: Arc<dyn Results>,
    bus: Arc<Bus>,
}

impl Files {
    /// `cap`: bytes that the files may take up together. Blocks while it walks through what is there.
    pub fn open(
        directory: &Path,
        cap: u64,
        marks: Arc<dyn Results>,
        bus: Arc<Bus>,
    ) -> io::Result<Self> {
        Ok(Self {
            directory: Arc::new(Directory::open(directory, cap)?),
            marks,
            bus,
        })
    }

    /// Work on files, on a thread that may wait for them. After a panic it is not known how far the
    /// work came.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Directory>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || work(&directory))
            .await
            .map_err(|error| Error::OutcomeUnknown(format!("answers on disk: {error}")))?
            .map_err(|error| Error::Unavailable(format!("answers on disk: {error}")))
    }

    /// A part of another write, which wakes the readers.
    async fn unmark(&self, key: Key, token: Option<Uuid>) -> Result<(), Error> {
        let marks = self.marks.end(key, token, Wakes::none());
        marks.commit(&self.bus).await
    }

    async fn find(&self, names: Vec<Name>) -> Result<Vec<Option<Answer>>, Error> {
        let found = self
            .apart(|directory| names.into_iter().map(|name| directory.find(name)).collect())
            .await;
        found.map_err(|error| match error {
            // Nothing is done by a look.
            Error::OutcomeUnknown(reason) => Error::Failed(reason),
            error => error,
        })
    }

    /// A large file is not removed in a moment.
    async fn discard(&self, arriving: Arriving) -> Result<(), Error> {
        self.apart(move |_| {
            drop(arriving);
            Ok(())
        })
        .await
    }

    /// The file as it came, or why it did not.
    async fn receive(&self, upload: Upload) -> Result<Result<Arriving, Kept>, Error> {
        let mut incoming = match Incoming::new(upload) {
            Ok(incoming) => incoming,
            Err(kept) => return Ok(Err(kept)),
        };
        let mut arriving = self.apart(Arriving::create).await?;
        loop {
            let (chunks, is_end) = match gather(&mut incoming).await {
                Ok(gathered) => gathered,
                Err(kept) => {
                    self.discard(arriving).await?;
                    return Ok(Err(kept));
                }
            };
            let (written, has_room) = self
                .apart(move |_| {
                    let has_room = arriving.write(&chunks)?;
                    Ok((arriving, has_room))
                })
                .await?;
            arriving = written;
            if !has_room {
                self.discard(arriving).await?;
                return Ok(Err(incoming.refuse(Kept::NoRoom)));
            }
            if is_end {
                return Ok(Ok(arriving));
            }
        }
    }
}

/// As much as is written at once, and whether it is the end.
async fn gather(incoming: &mut Incoming) -> Result<(Vec<Bytes>, bool), Kept> {
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    while bytes < WRITTEN_AT_ONCE {
        let Some(chunk) = incoming.next().await? else {
            return Ok((chunks, true));
        };
        bytes += chunk.len();
        chunks.push(chunk);
    }
    Ok((chunks, false))
}

impl Results for Files {
    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        async move {
            let names = keys.iter().map(Name::of).collect();
            let answers = self.find(names).await?;
            let missing: Vec<Key> = keys
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| answer.is_none())
                .map(|(key, _)| key.clone())
                .collect();
            let mut marked = if missing.is_empty() {
                Vec::new().into_iter()
            } else {
                self.marks.look(missing).await?.into_iter()
            };
            let looks = answers.into_iter().map(|answer| match answer {
                // What is there has been answered.
                Some(answer) => Look {
                    answer: Some(answer),
                    in_flight: None,
                },
                None => marked.next().unwrap_or_default(),
            });
            Ok(looks.collect())
        }
        .boxed()
    }

    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>> {
        async move {
            let hashed = at.iter().filter_map(Glance::key);
            let answers = self
                .find(hashed.map(|key| Name::of(&key)).collect())
                .await?;
            let mut answers = answers.into_iter();
            let mut is_there = |glance: &Glance| {
                let answer = glance.hash.as_ref().and_then(|_| answers.next());
                answer.flatten().is_some()
            };
            let there: Vec<bool> = at.iter().map(&mut is_there).collect();
            let marked = self.marks.glance(at).await?;
            let both = there.into_iter().zip(marked);
            Ok(both.map(|(is_there, marked)| is_there || marked).collect())
        }
        .boxed()
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept> {
        let this = self.clone();
        let run = async move {
            let is_error = upload.is_error;
            let arriving = match this.receive(upload).await? {
                Ok(arriving) => arriving,
                Err(kept) => return Ok(kept),
            };
            let name = Name::of(&key);
            let keep = move |_: &_| arriving.keep(name, is_error, directory::now() + lasting(ttl));
            // From here on the answer may be there, so its readers must look, whatever comes next.
            this.apart(keep).await.map_err(outcome_unknown)?;
            this.unmark(key, None).await.map_err(outcome_unknown)?;
            Ok(Kept::Done)
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: Request, ttl: Duration) -> Write<bool> {
        let this = self.clone();
        let run = async move {
            let (key, token) = (request.key.clone(), request.token);
            if !this.marks.begin(request, ttl).commit(&this.bus).await? {
                return Ok(false);
            }
            // After the mark: an answer that took the last one off is seen now.
            let found = this.find(vec![Name::of(&key)]).await;
            let is_there = found.map_err(outcome_unknown)?[0].is_some();
            if is_there {
                let unmarked = this.unmark(key, Some(token)).await;
                unmarked.map_err(outcome_unknown)?;
            }
            Ok(!is_there)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.marks.end(key, token, readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        self.marks.in_flight(provider, version)
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        let this = self.clone();
        let run = async move {
            let forgotten = this.apart(move |directory| directory.forget(provider, version));
            // Some of the files may be gone.
            forgotten.await.map_err(outcome_unknown)?;
            let marks = this.marks.forget(provider, version);
            marks.commit(&this.bus).await
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        let this = self.clone();
        let run = async move {
            let files = this.apart(|directory| directory.sweep()).await?.map(left);
            let marks = this.marks.sweep().commit(&this.bus).await?;
            Ok(files.into_iter().chain(marks).min())
        };
        Write::new(topic::DOOR, run, wakes::nobody)
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
        let marks = SqliteStore::new(file.open(&[MIGRATIONS]), system_clock());
        let bus = Bus::local(Engine::new(wakeline_wake::Limits::default()));
        let files = Files::open(directory.path(), 1 << 20, Arc::new(marks), bus).unwrap();
        let ended = files.apart::<()>(|_| panic!("a test")).await;
        assert!(matches!(ended, Err(Error::OutcomeUnknown(_))), "{ended:?}");
    }
}
