//! The directory, and what is known of it. Everything here blocks its thread.

use std::{
    collections::HashSet,
    fmt::Display,
    fs::{self, DirBuilder, File, Metadata},
    io,
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use uuid::Uuid;

use super::{arriving, name::Name, shelf::Shelf, tail::Tail};
use crate::{
    provider::{Answer, AnswerBody, MAX_PROBLEM},
    results::SWEPT_AT_ONCE,
};

/// How old what is known of other nodes' files may be when a sweep is due.
const WALK_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    shelf: Mutex<Shelf>,
    walked: Mutex<Instant>,
}

impl Directory {
    pub(super) fn open(path: &Path, cap: u64) -> io::Result<Self> {
        // Nobody else's business.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let directory = Self {
            path: path.canonicalize()?,
            shelf: Mutex::new(Shelf::new(cap)),
            walked: Mutex::new(Instant::now()),
        };
        directory.walk(now())?;
        Ok(directory)
    }

    pub(super) fn path(&self, name: impl Display) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// Held while a file is put in its place or removed, so that the shelf is right about it.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer that is not over. What is open stays readable when its file is removed.
    pub(super) fn find(&self, name: Name) -> io::Result<Option<Answer>> {
        let Some(file) = open(&self.path(name))? else {
            // Another node may have removed it.
            self.forget_if_gone(&mut self.shelf(), &name);
            return Ok(None);
        };
        let Some((tail, length)) = Tail::read(&file)? else {
            self.remove(&mut self.shelf(), &name)?;
            return Ok(None);
        };
        if tail.expires_at <= now() {
            return Ok(None);
        }
        // Written by another process, perhaps before a power cut.
        let is_sound = self.shelf().is_sound(&name);
        if !is_sound && !tail.fits(&file, length)? {
            tracing::warn!(file = %name, "an answer on disk is damaged; it is removed");
            self.remove(&mut self.shelf(), &name)?;
            return Ok(None);
        }
        let bytes = length + Tail::BYTES as u64;
        self.shelf().place(name, bytes, tail.expires_at, true);
        Ok(Some(Answer {
            is_error: tail.is_error,
            etag: tail.etag.to_string(),
            body: body(file, length, tail.is_error)?,
        }))
    }

    /// Room for what is coming in, by removing what was read longest ago. Whether there is enough.
    pub(super) fn take(&self, size: u64) -> bool {
        let mut shelf = self.shelf();
        shelf.take(size);
        self.make_room(&mut shelf);
        !shelf.is_over_full()
    }

    pub(super) fn give_back(&self, size: u64) {
        self.shelf().give_back(size);
    }

    /// Puts a file in its place, for which so much was taken.
    pub(super) fn keep(
        &self,
        coming: &Path,
        taken: u64,
        name: Name,
        (bytes, expires_at): (u64, i64),
    ) -> io::Result<()> {
        let mut shelf = self.shelf();
        shelf.give_back(taken);
        fs::rename(coming, self.path(name))?;
        shelf.place(name, bytes, expires_at, true);
        Ok(())
    }

    fn make_room(&self, shelf: &mut Shelf) {
        while shelf.is_over_full()
            && let Some(name) = shelf.stalest()
        {
            tracing::debug!(file = %name, "removed to make room");
            if let Err(error) = self.remove(shelf, &name) {
                tracing::warn!(file = %name, %error, "an answer on disk cannot be removed");
            }
        }
    }

    fn remove(&self, shelf: &mut Shelf, name: &Name) -> io::Result<()> {
        shelf.remove(name);
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn forget_if_gone(&self, shelf: &mut Shelf, name: &Name) {
        if shelf.contains(name) && !self.path(name).exists() {
            shelf.remove(name);
        }
    }

    /// Of every node: the directory is asked, not the shelf.
    pub(super) fn forget(&self, provider: Uuid, version: Option<i64>) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            if let Some(name) = entry?.file_name().to_str().and_then(Name::parse)
                && name.provider == provider
                && version.is_none_or(|version| name.version < version)
            {
                self.remove(&mut self.shelf(), &name)?;
            }
        }
        Ok(())
    }

    /// Removes a slice of what is over. Microseconds until more is.
    pub(super) fn sweep(&self) -> io::Result<Option<i64>> {
        let now = now();
        let mut walked = self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        if walked.elapsed() >= WALK_EVERY {
            self.walk(now)?;
            *walked = Instant::now();
        }
        drop(walked);
        for _ in 0..SWEPT_AT_ONCE {
            let mut shelf = self.shelf();
            let Some((_, name)) = shelf.first_to_end().filter(|(end, _)| *end <= now) else {
                break;
            };
            // Another node may have put a newer one in its place.
            match newer(&self.path(name), now)? {
                Some((tail, bytes)) => shelf.place(name, bytes, tail.expires_at, false),
                None => self.remove(&mut shelf, &name)?,
            }
        }
        let next = self.shelf().first_to_end();
        Ok(next.map(|(end, _)| end - now))
    }

    /// Makes the shelf what the directory is: what other nodes have put there, what they have
    /// removed, and what a process that has ended left behind.
    fn walk(&self, now: i64) -> io::Result<()> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(text) = name.to_str() else { continue };
            if arriving::is_name(text) {
                arriving::remove_if_left(&entry.path())?;
            } else if let Some(name) = Name::parse(text) {
                seen.insert(name);
                let is_known = self.shelf().contains(&name);
                // One that has gone since is not there.
                if !is_known && let Ok(metadata) = entry.metadata() {
                    found.push((last_used(&metadata), name));
                }
            }
        }
        found.sort();
        for (_, name) in found {
            let mut shelf = self.shelf();
            match newer(&self.path(name), now)? {
                // Meanwhile it may have been read, and be known.
                Some(_) if shelf.contains(&name) => {}
                Some((tail, bytes)) => shelf.place(name, bytes, tail.expires_at, false),
                None => self.remove(&mut shelf, &name)?,
            }
        }
        let mut shelf = self.shelf();
        for name in shelf.names() {
            if !seen.contains(&name) {
                self.forget_if_gone(&mut shelf, &name);
            }
        }
        self.make_room(&mut shelf);
        Ok(())
    }
}

/// A problem is read at once, for its status is in it.
fn body(file: File, length: u64, is_error: bool) -> io::Result<AnswerBody> {
    if !is_error || length > MAX_PROBLEM {
        return Ok(AnswerBody::File(Arc::new(file), length));
    }
    let mut problem = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut problem, 0)?;
    Ok(AnswerBody::Bytes(problem.into()))
}

/// `None`: there is no such file.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// The file's tail and length, unless it is over, torn or gone.
fn newer(path: &Path, now: i64) -> io::Result<Option<(Tail, u64)>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    let tail = Tail::read(&file)?.filter(|(tail, _)| tail.expires_at > now);
    Ok(tail.map(|(tail, length)| (tail, length + Tail::BYTES as u64)))
}

/// As far as the file system knows: many do not say when a file was read.
fn last_used(metadata: &Metadata) -> SystemTime {
    let times = [metadata.modified(), metadata.accessed()];
    let known = times.into_iter().flatten();
    known.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Microseconds since 1970, by the process' own clock: nodes that share the directory are within
/// seconds of each other, as their answers are kept for minutes.
pub(super) fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

#[cfg(test)]
mod tests {
    use super::{super::arriving::Arriving, *};
    use crate::provider::Key;

    const LATE: i64 = i64::MAX;

    fn name(hash: &str) -> Name {
        Name::of(&Key {
            provider: Uuid::nil(),
            version: 1,
            hash: hash.to_owned(),
        })
    }

    fn keep(directory: &Arc<Directory>, hash: &str, expires_at: i64) {
        let mut arriving = Arriving::create(directory).unwrap();
        assert!(arriving.write(&["one".into()]).unwrap());
        arriving.keep(name(hash), false, expires_at).unwrap();
    }

    #[test]
    fn a_walk_sees_what_other_nodes_have_done() {
        let place = tempfile::tempdir().unwrap();
        let open = || Arc::new(Directory::open(place.path(), 1 << 20).unwrap());
        let (here, there) = (open(), open());
        keep(&here, "a", LATE);
        keep(&there, "b", LATE);
        keep(&there, "over", 0);
        here.walk(now()).unwrap();
        let mut known = here.shelf().names();
        known.sort();
        let mut expected = [name("a"), name("b")];
        expected.sort();
        assert_eq!(known, expected);
        there.forget(Uuid::nil(), None).unwrap();
        here.walk(now()).unwrap();
        assert_eq!(here.shelf().names(), []);
    }

    #[test]
    fn what_another_node_has_replaced_is_not_swept() {
        let place = tempfile::tempdir().unwrap();
        let open = || Arc::new(Directory::open(place.path(), 1 << 20).unwrap());
        let (here, there) = (open(), open());
        keep(&here, "a", 0);
        keep(&here, "over", 0);
        keep(&there, "a", LATE);
        let next = here.sweep().unwrap().unwrap();
        assert!(next > 0, "{next}");
        assert!(there.find(name("a")).unwrap().is_some());
        assert!(!here.path(name("over")).exists());
    }
}
