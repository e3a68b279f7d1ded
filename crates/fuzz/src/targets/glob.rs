//! Paths and patterns of the provider `FilesystemRead`, on a directory with a few files. The input
//! is the query of a read.

use std::{fs, sync::LazyLock};

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use wakeline_jobs::{
    internal::{
        InternalProvider,
        filesystem::{FilesystemRead, Limits},
    },
    params::Params,
};

struct Directory {
    provider: FilesystemRead,
    runtime: Runtime,
    _root: TempDir,
}

static DIRECTORY: LazyLock<Directory> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a directory");
    for name in [
        "a.xyz",
        ".hidden",
        "sub/b.xyz",
        "sub/deep/c-[1].txt",
        "sub/ä",
    ] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, "").expect("a file");
    }
    Directory {
        provider: FilesystemRead::new(vec![root.path().to_owned()], Limits::default())
            .expect("a root"),
        runtime: Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime"),
        _root: root,
    }
});

pub fn run(input: &[u8]) {
    let Ok(query) = str::from_utf8(input) else {
        return;
    };
    let Ok(params) = Params::from_query(query) else {
        return;
    };
    let directory = &*DIRECTORY;
    let read = directory.provider.read(params.into_map());
    match directory.runtime.block_on(read) {
        Ok(listed) => {
            let listed: Vec<serde_json::Value> =
                serde_json::from_slice(&listed).expect("a list of entries");
            assert!(listed.len() <= 10, "more than there is");
        }
        Err(failure) => assert!(!failure.0.is_empty()),
    }
}
