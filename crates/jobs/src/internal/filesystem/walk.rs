//! Going through directories within limits.

use std::{io, path::PathBuf, time::Instant};

use cap_std::fs::{Dir, DirEntry, Metadata};
use serde::Serialize;

use super::{Limits, ListRequest, glob::GlobMatch};
use crate::internal::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    File,
    Directory,
}

impl Kind {
    /// None for other files, such as a socket or a device.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        if metadata.is_dir() {
            return Some(Self::Directory);
        }
        metadata.is_file().then_some(Self::File)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Entry {
    name: String,
    path: String,
    size: u64,
    #[serde(rename = "type")]
    kind: Kind,
}

impl Entry {
    pub(super) fn new(name: &str, path: String, size: u64, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            path,
            size: if kind == Kind::File { size } else { 0 },
            kind,
        }
    }
}

#[derive(Debug)]
pub(super) struct Walk {
    limits: Limits,
    deadline: Instant,
    looked_at: usize,
    shown: Vec<Entry>,
}

impl Walk {
    pub(super) fn new(limits: Limits, deadline: Instant) -> Self {
        Self {
            limits,
            deadline,
            looked_at: 0,
            shown: Vec::new(),
        }
    }

    pub(super) fn show(&mut self, entry: Entry) -> Result<(), Failure> {
        if self.shown.len() >= self.limits.entries {
            return Err(Failure::new(format!(
                "more than {} entries; name a directory further down or use glob",
                self.limits.entries
            )));
        }
        self.shown.push(entry);
        Ok(())
    }

    /// Lists `dir`, which is open at `place`, and below it as far as the request says. `above` are
    /// the names that a pattern sees before these.
    pub(super) fn below(
        &mut self,
        dir: &Dir,
        place: &ShownPath<'_>,
        above: &[&str],
        asked: &ListRequest,
    ) -> Result<(), Failure> {
        let entries = dir.entries().map_err(|error| place.unreachable(&error))?;
        for entry in entries {
            self.count(place)?;
            // An entry that vanishes meanwhile is not there.
            let Ok(entry) = entry else { continue };
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let names = [above, &[name.as_str()]].concat();
            let fits = wanted(asked, &names);
            let place = place.below(&name);
            if fits.here
                && let Some(metadata) = place.look_at(&entry)
                && let Some(kind) = Kind::of(&metadata)
            {
                self.show(Entry::new(&name, place.shown.clone(), metadata.len(), kind))?;
            }
            // Not through a link: it may lead back up.
            if fits.below && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if names.len() >= self.limits.depth {
                    return Err(Failure::new(format!(
                        "{}: more than {} directories within one another",
                        place.shown, self.limits.depth
                    )));
                }
                // An entry that has become a link since is resolved within `dir`, or not opened.
                if let Ok(dir) = entry.open_dir() {
                    self.below(&dir, &place, &names, asked)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, place: &ShownPath<'_>) -> Result<(), Failure> {
        self.looked_at += 1;
        if self.looked_at > self.limits.looked_at {
            return Err(Failure::new(format!(
                "{}: more than {} files and directories to look at; name one further down",
                place.shown, self.limits.looked_at
            )));
        }
        if Instant::now() > self.deadline {
            return Err(Failure::new("it took too long; ask for less"));
        }
        Ok(())
    }

    /// In the order of their paths.
    pub(super) fn answer(mut self) -> String {
        self.shown.sort_by(|one, other| one.path.cmp(&other.path));
        serde_json::to_string(&self.shown).expect("entries are plain data")
    }
}

/// Whether an entry is shown, and whether the directory is entered.
pub(super) fn wanted(asked: &ListRequest, names: &[&str]) -> GlobMatch {
    match &asked.glob {
        Some(glob) => glob.fits(names),
        None => GlobMatch {
            here: names.len() == 1 || asked.is_recursive,
            below: asked.is_recursive,
        },
    }
}

/// Where something lies in a root, and how that is shown.
#[derive(Debug)]
pub(super) struct ShownPath<'a> {
    root: &'a Dir,
    relative: PathBuf,
    pub(super) shown: String,
}

impl<'a> ShownPath<'a> {
    pub(super) fn new(root: &'a Dir, shown: String, relative: PathBuf) -> Self {
        Self {
            root,
            relative,
            shown,
        }
    }

    fn below(&self, name: &str) -> Self {
        Self {
            root: self.root,
            relative: self.relative.join(name),
            shown: format!("{}/{name}", self.shown),
        }
    }

    pub(super) fn open(&self) -> Result<Dir, Failure> {
        let dir = self.root.open_dir(&self.relative);
        dir.map_err(|error| self.unreachable(&error))
    }

    pub(super) fn metadata(&self) -> Result<Metadata, Failure> {
        let metadata = self.root.metadata(&self.relative);
        metadata.map_err(|error| self.unreachable(&error))
    }

    /// A link counts as its target within the root; a link that leads out or nowhere is not shown.
    fn look_at(&self, entry: &DirEntry) -> Option<Metadata> {
        if entry.file_type().ok()?.is_symlink() {
            return self.root.metadata(&self.relative).ok();
        }
        entry.metadata().ok()
    }

    /// Callers do not learn whether a link leads out: it leads nowhere.
    fn unreachable(&self, error: &io::Error) -> Failure {
        tracing::debug!(path = self.shown, %error, "a path is not reachable");
        Failure::new(format!(
            "'{}' is not there, or cannot be looked at",
            self.shown
        ))
    }
}

pub(super) fn no_such(parts: &[String]) -> Failure {
    Failure::new(format!("'/{}' is not there", parts.join("/")))
}
