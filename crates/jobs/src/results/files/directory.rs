//! The directory and its index. Everything here blocks its thread.

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

use super::{incoming_file, index::FileIndex, name::FileName, trailer::Trailer};
use crate::{
    provider::{Answer, AnswerBody, MAX_PROBLEM},
    results::SWEPT_AT_ONCE,
};

/// How old the knowledge of other nodes' files may be when a sweep is due.
const WALK_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    index: Mutex<FileIndex>,
    walked: Mutex<Instant>,
}

impl Directory {
    pub(super) fn open(path: &Path, cap: u64) -> io::Result<Self> {
        // Only this user may read it.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let directory = Self {
            path: path.canonicalize()?,
            index: Mutex::new(FileIndex::new(cap)),
            walked: Mutex::new(Instant::now()),
        };
        directory.walk(now())?;
        Ok(directory)
    }

    pub(super) fn path(&self, name: impl Display) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// Held while a file is moved into place or removed, so that the index is right about it.
    fn index(&self) -> MutexGuard<'_, FileIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer that has not expired. An open file stays readable when it is removed.
    pub(super) fn find(&self, name: FileName) -> io::Result<Option<Answer>> {
        let Some(file) = open(&self.path(name))? else {
            // Another node may have removed it.
            self.forget_if_gone(&mut self.index(), &name);
            return Ok(None);
        };
        let Some((trailer, length)) = Trailer::read(&file)? else {
            self.remove(&mut self.index(), &name)?;
            return Ok(None);
        };
        if trailer.expires_at <= now() {
            return Ok(None);
        }
        // Another process has written it, perhaps before a power cut.
        let is_sound = self.index().is_sound(&name);
        if !is_sound && !trailer.fits(&file, length)? {
            tracing::warn!(file = %name, "an answer on disk is damaged; it is removed");
            self.remove(&mut self.index(), &name)?;
            return Ok(None);
        }
        let bytes = length + Trailer::BYTES as u64;
        self.index().place(name, bytes, trailer.expires_at, true);
        Ok(Some(Answer {
            is_error: trailer.is_error,
            etag: trailer.etag.to_string(),
            body: body(file, length, trailer.is_error)?,
        }))
    }

    /// Makes room for an incoming file by removing the files that were read longest ago. Returns
    /// whether there is enough.
    pub(super) fn take(&self, size: u64) -> bool {
        let mut index = self.index();
        index.take(size);
        self.make_room(&mut index);
        !index.is_over_full()
    }

    pub(super) fn give_back(&self, size: u64) {
        self.index().give_back(size);
    }

    /// Moves a file into place, for which `taken` bytes were reserved.
    pub(super) fn keep(
        &self,
        coming: &Path,
        taken: u64,
        name: FileName,
        (bytes, expires_at): (u64, i64),
    ) -> io::Result<()> {
        let mut index = self.index();
        index.give_back(taken);
        fs::rename(coming, self.path(name))?;
        index.place(name, bytes, expires_at, true);
        Ok(())
    }

    fn make_room(&self, index: &mut FileIndex) {
        while index.is_over_full()
            && let Some(name) = index.stalest()
        {
            tracing::debug!(file = %name, "an answer on disk was removed to make room");
            if let Err(error) = self.remove(index, &name) {
                tracing::warn!(file = %name, %error, "an answer on disk cannot be removed");
            }
        }
    }

    fn remove(&self, index: &mut FileIndex, name: &FileName) -> io::Result<()> {
        index.remove(name);
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn forget_if_gone(&self, index: &mut FileIndex, name: &FileName) {
        if index.contains(name) && !self.path(name).exists() {
            index.remove(name);
        }
    }

    /// The files of every node: from the directory, not from the index.
    pub(super) fn forget(&self, provider: Uuid, version: Option<i64>) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            if let Some(name) = entry?.file_name().to_str().and_then(FileName::parse)
                && name.provider == provider
                && version.is_none_or(|version| name.version < version)
            {
                self.remove(&mut self.index(), &name)?;
            }
        }
        Ok(())
    }

    /// Removes a slice of what has expired. Returns the microseconds until more expires.
    pub(super) fn sweep(&self) -> io::Result<Option<i64>> {
        let now = now();
        let mut walked = self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        if walked.elapsed() >= WALK_EVERY {
            self.walk(now)?;
            *walked = Instant::now();
        }
        drop(walked);
        for _ in 0..SWEPT_AT_ONCE {
            let mut index = self.index();
            let Some((_, name)) = index.first_to_end().filter(|(end, _)| *end <= now) else {
                break;
            };
            // Another node may have replaced it.
            match newer(&self.path(name), now)? {
                Some((trailer, bytes)) => index.place(name, bytes, trailer.expires_at, false),
                None => self.remove(&mut index, &name)?,
            }
        }
        let next = self.index().first_to_end();
        Ok(next.map(|(end, _)| end - now))
    }

    /// Updates the index: files that other nodes have written or removed, and files that a process
    /// that has ended left behind.
    fn walk(&self, now: i64) -> io::Result<()> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(text) = name.to_str() else { continue };
            if incoming_file::is_name(text) {
                incoming_file::remove_if_left(&entry.path())?;
            } else if let Some(name) = FileName::parse(text) {
                seen.insert(name);
                let is_known = self.index().contains(&name);
                // A file that has gone since is not there.
                if !is_known && let Ok(metadata) = entry.metadata() {
                    found.push((last_used(&metadata), name));
                }
            }
        }
        found.sort();
        for (_, name) in found {
            let mut index = self.index();
            match newer(&self.path(name), now)? {
                // The file may have been read meanwhile, which adds it to the index.
                Some(_) if index.contains(&name) => {}
                Some((trailer, bytes)) => index.place(name, bytes, trailer.expires_at, false),
                None => self.remove(&mut index, &name)?,
            }
        }
        let mut index = self.index();
        for name in index.names() {
            if !seen.contains(&name) {
                self.forget_if_gone(&mut index, &name);
            }
        }
        self.make_room(&mut index);
        Ok(())
    }
}

/// A problem is read at once, because its status is in it.
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

/// The file's trailer and length, unless it has expired, is torn or gone.
fn newer(path: &Path, now: i64) -> io::Result<Option<(Trailer, u64)>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    let trailer = Trailer::read(&file)?.filter(|(trailer, _)| trailer.expires_at > now);
    Ok(trailer.map(|(trailer, length)| (trailer, length + Trailer::BYTES as u64)))
}

/// As far as the file system records it: many do not record when a file was read.
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
    use super::{super::incoming_file::IncomingFile, *};
    use crate::provider::AnswerKey;

    const LATE: i64 = i64::MAX;

    fn name(hash: &str) -> FileName {
        FileName::of(&AnswerKey {
            provider: Uuid::nil(),
            version: 1,
            hash: hash.to_owned(),
        })
    }

    fn keep(directory: &Arc<Directory>, hash: &str, expires_at: i64) {
        let mut incoming_file = IncomingFile::create(directory).unwrap();
        assert!(incoming_file.write(&["one".into()]).unwrap());
        incoming_file.keep(name(hash), false, expires_at).unwrap();
    }

    #[test]
    fn a_walk_finds_the_changes_of_other_nodes() {
        let place = tempfile::tempdir().unwrap();
        let open = || Arc::new(Directory::open(place.path(), 1 << 20).unwrap());
        let (here, there) = (open(), open());
        keep(&here, "a", LATE);
        keep(&there, "b", LATE);
        keep(&there, "over", 0);
        here.walk(now()).unwrap();
        let mut known = here.index().names();
        known.sort();
        let mut expected = [name("a"), name("b")];
        expected.sort();
        assert_eq!(known, expected);
        there.forget(Uuid::nil(), None).unwrap();
        here.walk(now()).unwrap();
        assert_eq!(here.index().names(), []);
    }

    #[test]
    fn a_file_that_another_node_replaced_is_not_swept() {
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
