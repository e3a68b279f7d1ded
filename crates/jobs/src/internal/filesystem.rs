//! Lists some directories of the server; files are never opened.
//!
//! Everything is looked up from an open directory, part by part, by the kernel where it can
//! (`openat2`): neither a path, nor a symbolic link, nor a link that is created meanwhile leads out
//! of the root.

mod glob;
mod walk;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cap_std::{ambient_authority, fs::Dir};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use self::{
    glob::Glob,
    walk::{Entry, Kind, ShownPath, Walk},
};
use super::{Failure, InternalProvider};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Entries of one answer.
    pub entries: usize,
    /// Entries that are read for it.
    pub looked_at: usize,
    /// Directories within one another.
    pub depth: usize,
    /// Reads at once; each has a thread of its own.
    pub at_once: usize,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 10_000,
            looked_at: 100_000,
            depth: 32,
            at_once: 4,
            time: Duration::from_secs(10),
        }
    }
}

/// The provider `@internal:filesystem:FilesystemRead`.
#[derive(Debug)]
pub struct FilesystemRead {
    roots: Arc<[Root]>,
    superusers_only: bool,
    limits: Limits,
    permits: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
struct Root {
    name: String,
    path: PathBuf,
}

/// Why the roots cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadRoots {
    #[error("there is none")]
    None,
    #[error("{0} has no name to be shown under; name a directory")]
    Unnamed(PathBuf),
    #[error("two are called {0}; with several, each needs a name of its own")]
    Twice(String),
    #[error("{0} cannot be opened ({1})")]
    Closed(PathBuf, std::io::Error),
}

impl FilesystemRead {
    /// With one root, `/` is that; with several, the first part of a path is the name of one.
    pub fn new(roots: Vec<PathBuf>, limits: Limits) -> Result<Self, BadRoots> {
        if roots.is_empty() {
            return Err(BadRoots::None);
        }
        let is_alone = roots.len() == 1;
        let mut named: Vec<Root> = Vec::new();
        for path in roots {
            if let Err(error) = Dir::open_ambient_dir(&path, ambient_authority()) {
                return Err(BadRoots::Closed(path, error));
            }
            let name = path.file_name().and_then(|name| name.to_str());
            let name = match name {
                Some(name) => name.to_owned(),
                None if is_alone => String::new(),
                None => return Err(BadRoots::Unnamed(path)),
            };
            if named.iter().any(|root| root.name == name) {
                return Err(BadRoots::Twice(name));
            }
            named.push(Root { name, path });
        }
        Ok(Self {
            roots: named.into(),
            superusers_only: true,
            limits,
            permits: Arc::new(Semaphore::new(limits.at_once.max(1))),
        })
    }

    /// All users may read it.
    #[must_use]
    pub fn for_everybody(self) -> Self {
        Self {
            superusers_only: false,
            ..self
        }
    }

    async fn list(&self, params: BTreeMap<String, String>) -> Result<Bytes, Failure> {
        let asked = ListRequest::read(&params)?;
        let deadline = Instant::now() + self.limits.time;
        let slow = |_| {
            Failure::new(format!(
                "it took longer than {} s; ask for less",
                self.limits.time.as_secs()
            ))
        };
        let permit = timeout(self.limits.time, self.permits.clone().acquire_owned());
        let permit = permit.await.map_err(slow)?;
        let (roots, limits) = (self.roots.clone(), self.limits);
        let listing = tokio::task::spawn_blocking(move || {
            // Held by the thread and not by the waiting read: a disk that hangs gets no more reads.
            let _permit = permit;
            let walk = Walk::new(limits, deadline);
            list(&roots, &asked, walk)
        });
        let left = deadline.saturating_duration_since(Instant::now());
        let listed = timeout(left, listing).await.map_err(slow)?;
        listed.map_err(|error| Failure::new(error.to_string()))?
    }
}

impl InternalProvider for FilesystemRead {
    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn name(&self) -> &'static str {
        "FilesystemRead"
    }

    fn schema(&self) -> Value {
        json!({
            "title": "FilesystemRead",
            "description": "What lies in a directory of the server.",
            "type": "object",
            "properties": {
                "path": {"title": "Path", "type": "string", "default": "/"},
                "glob": {
                    "title": "Glob",
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": null,
                },
                "recursive": {"title": "Recursive", "type": "boolean", "default": false},
            },
        })
    }

    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn superusers_only(&self) -> bool {
        self.superusers_only
    }

    fn read(&self, params: BTreeMap<String, String>) -> BoxFuture<'_, Result<Bytes, Failure>> {
        self.list(params).boxed()
    }
}

#[derive(Debug)]
struct ListRequest {
    /// Without `.` and `..`.
    parts: Vec<String>,
    glob: Option<Glob>,
    is_recursive: bool,
}

impl ListRequest {
    fn read(params: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let path = params.get("path").map_or("/", String::as_str);
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        let parts: Vec<_> = parts.map(str::to_owned).collect();
        if parts.iter().any(|part| part == "..") || path.contains('\0') {
            return Err(Failure::new(format!("path: '{path}' leads out of here")));
        }
        let is_recursive = match params.get("recursive").map(String::as_str) {
            None | Some("" | "false" | "False" | "0") => false,
            Some("true" | "True" | "1") => true,
            Some(other) => {
                let detail = format!("recursive: '{other}' is neither true nor false");
                return Err(Failure::new(detail));
            }
        };
        let glob = params.get("glob").filter(|glob| !glob.is_empty());
        let glob = glob.map(|glob| Glob::parse(glob).map_err(Failure));
        let glob = glob.transpose()?;
        Ok(Self {
            parts,
            glob: match glob {
                Some(glob) if is_recursive => Some(glob.anywhere()),
                glob => glob,
            },
            is_recursive,
        })
    }
}

fn list(roots: &[Root], asked: &ListRequest, mut walk: Walk) -> Result<Bytes, Failure> {
    match roots {
        [root] => look(root, "", &asked.parts, asked, &mut walk)?,
        roots => match asked.parts.split_first() {
            Some((name, parts)) => {
                let root = roots.iter().find(|root| root.name == *name);
                let root = root.ok_or_else(|| walk::no_such(&asked.parts))?;
                look(root, &format!("/{name}"), parts, asked, &mut walk)?;
            }
            None => among(roots, asked, &mut walk)?,
        },
    }
    Ok(Bytes::from(walk.answer()))
}

/// `/` of several roots: their names, and the entries below them that were asked for.
fn among(roots: &[Root], asked: &ListRequest, walk: &mut Walk) -> Result<(), Failure> {
    for root in roots {
        let names = [root.name.as_str()];
        let fits = walk::wanted(asked, &names);
        let shown = format!("/{}", root.name);
        if fits.here {
            walk.show(Entry::new(&root.name, shown.clone(), 0, Kind::Directory))?;
        }
        if fits.below {
            let dir = open(root)?;
            let place = ShownPath::new(&dir, shown, PathBuf::new());
            walk.below(&dir, &place, &names, asked)?;
        }
    }
    Ok(())
}

fn look(
    root: &Root,
    above: &str,
    parts: &[String],
    asked: &ListRequest,
    walk: &mut Walk,
) -> Result<(), Failure> {
    let dir = open(root)?;
    let Some(name) = parts.last() else {
        let place = ShownPath::new(&dir, above.to_owned(), PathBuf::new());
        return walk.below(&dir, &place, &[], asked);
    };
    let relative: PathBuf = parts.iter().collect();
    let place = ShownPath::new(&dir, format!("{above}/{}", parts.join("/")), relative);
    let metadata = place.metadata()?;
    match Kind::of(&metadata) {
        Some(Kind::Directory) => walk.below(&place.open()?, &place, &[], asked),
        Some(kind) => walk.show(Entry::new(name, place.shown, metadata.len(), kind)),
        None => Err(walk::no_such(&asked.parts)),
    }
}

/// Opened at the time of the read: a directory that is mounted or replaced later is seen.
fn open(root: &Root) -> Result<Dir, Failure> {
    Dir::open_ambient_dir(&root.path, ambient_authority()).map_err(|error| {
        tracing::warn!(%error, root = %Path::display(&root.path), "a root cannot be opened");
        Failure::new(format!("'/{}' cannot be opened at the moment", root.name))
    })
}
