//! The files on disk: how many there may be, which go first, what a restart finds.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::AnswerBody,
    results::{Upload, UploadOutcome},
};
use wakeline_store::Error;
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    backend::{LIMIT, LONG, SHORT, TestBackend, answer, bytes, found, key, put, request, upload},
    chunks::memory,
};

const MEGABYTE: usize = 1 << 20;

fn megabyte() -> Vec<u8> {
    vec![7; MEGABYTE]
}

fn names(backend: &TestBackend) -> Vec<String> {
    let entries = fs::read_dir(backend.files()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn only_file(backend: &TestBackend) -> PathBuf {
    match &names(backend)[..] {
        [name] => backend.files().join(name),
        names => panic!("not one file: {names:?}"),
    }
}

#[tokio::test]
async fn the_answer_read_longest_ago_is_removed_first() {
    let backend = TestBackend::files_over_sqlite().await;
    // Room for three answers with their tails, and not for four.
    let node = backend.node_with_cap(4 * MEGABYTE as u64).await;
    for hash in ["a", "b", "c"] {
        put(&*node, &key(hash), megabyte(), LONG).await;
    }
    assert!(found(&*node, &key("a")).await.is_some());
    put(&*node, &key("d"), megabyte(), LONG).await;
    put(&*node, &key("e"), megabyte(), LONG).await;
    let mut there = Vec::new();
    for hash in ["a", "b", "c", "d", "e"] {
        if found(&*node, &key(hash)).await.is_some() {
            there.push(hash);
        }
    }
    assert_eq!(there, ["a", "d", "e"]);
}

#[tokio::test]
async fn the_directory_stays_within_its_cap() {
    let cap = 4 * MEGABYTE as u64;
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node_with_cap(cap).await;
    for at in 0..40_usize {
        put(&*node, &key(&at.to_string()), vec![7; at * 50_000], LONG).await;
        let sizes = names(&backend)
            .into_iter()
            .map(|name| fs::metadata(backend.files().join(name)).unwrap().len());
        assert!(sizes.sum::<u64>() <= cap);
    }
    assert!(found(&*node, &key("39")).await.is_some());
}

#[tokio::test]
async fn an_answer_larger_than_the_cap_is_refused() {
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node_with_cap(MEGABYTE as u64).await;
    let chunks = (0..2).map(|_| Ok::<_, std::io::Error>(Bytes::from(megabyte())));
    let body = Body::from_stream(stream::iter(chunks));
    let kept = node
        .put(key("a"), upload(body), LONG, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::NoRoom);
    assert_eq!(names(&backend), [""; 0]);
    put(&*node, &key("a"), "fits", LONG).await;
    assert!(found(&*node, &key("a")).await.is_some());
}

#[tokio::test]
async fn an_open_answer_stays_readable_when_it_is_removed() {
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node_with_cap(2 * MEGABYTE as u64).await;
    put(&*node, &key("a"), megabyte(), LONG).await;
    let open = answer(&*node, &key("a")).await.unwrap();
    put(&*node, &key("b"), megabyte(), LONG).await;
    assert!(found(&*node, &key("a")).await.is_none());
    assert!(bytes(&open).await == megabyte());
}

#[tokio::test]
async fn no_hash_leads_out_of_the_directory() {
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node().await;
    let long = "x".repeat(5_000);
    let hashes = [
        "../../escape",
        "/tmp/escape",
        "..",
        "a/b",
        "coming.1",
        &long,
    ];
    for hash in hashes {
        put(&*node, &key(hash), hash.to_owned(), LONG).await;
    }
    for hash in hashes {
        assert_eq!(found(&*node, &key(hash)).await.unwrap(), hash.as_bytes());
    }
    let names = names(&backend);
    assert_eq!(names.len(), hashes.len());
    let is_plain = |name: &String| {
        name.bytes()
            .all(|byte| b"0123456789abcdef.".contains(&byte))
    };
    assert!(names.iter().all(is_plain), "{names:?}");
}

#[tokio::test]
async fn a_restart_finds_the_stored_answers() {
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node().await;
    put(&*node, &key("goes"), "one", SHORT).await;
    for (age, hash) in ["newest", "older", "oldest"].iter().enumerate() {
        let before = names(&backend);
        put(&*node, &key(hash), megabyte(), LONG).await;
        let mut names = names(&backend);
        names.retain(|name| !before.contains(name));
        let file = File::options()
            .write(true)
            .open(backend.files().join(&names[0]))
            .unwrap();
        let then = SystemTime::now() - Duration::from_secs(100 * (1 + age as u64));
        let times = fs::FileTimes::new().set_modified(then).set_accessed(then);
        file.set_times(times).unwrap();
    }
    eventually("the end of an answer", async || {
        found(&*node, &key("goes")).await.is_none()
    })
    .await;
    drop(node);
    let node = backend.node_with_cap(3 * MEGABYTE as u64).await;
    // Over the cap the oldest answer is removed; the expired one is removed too.
    assert_eq!(names(&backend).len(), 2);
    assert!(found(&*node, &key("oldest")).await.is_none());
    assert!(found(&*node, &key("older")).await.unwrap() == megabyte());
    put(&*node, &key("another"), megabyte(), LONG).await;
    assert!(found(&*node, &key("newest")).await.is_none());
    assert!(found(&*node, &key("older")).await.is_some());
}

#[tokio::test]
async fn a_restart_removes_abandoned_uploads_and_no_other_files() {
    let backend = TestBackend::files_over_sqlite().await;
    drop(backend.node().await);
    let left = "coming.00000000-0000-4000-8000-000000000001";
    let written = "coming.00000000-0000-4000-8000-000000000002";
    for name in [left, written, "coming.home", "notes.txt"] {
        fs::write(backend.files().join(name), "half").unwrap();
    }
    let at_work = File::options()
        .write(true)
        .open(backend.files().join(written))
        .unwrap();
    at_work.try_lock().unwrap();
    let node = backend.node_with_cap(1).await;
    assert_eq!(names(&backend), [written, "coming.home", "notes.txt"]);
    node.sweep().done().await;
    assert_eq!(names(&backend).len(), 3);
}

#[tokio::test]
async fn an_answer_that_a_power_cut_has_torn_is_not_served() {
    for harm in 0..3_u8 {
        let backend = TestBackend::files_over_sqlite().await;
        let node = backend.node().await;
        put(&*node, &key("a"), megabyte(), LONG).await;
        drop(node);
        let path = only_file(&backend);
        let file = File::options().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        match harm {
            0 => file.set_len(0).unwrap(),
            1 => file.set_len(length - 1).unwrap(),
            _ => file.write_all_at(&[0; 4_096], 8_192).unwrap(),
        }
        let node = backend.node().await;
        assert!(found(&*node, &key("a")).await.is_none(), "{harm}");
        assert_eq!(names(&backend), [""; 0]);
    }
}

#[tokio::test]
async fn a_failure_after_the_first_write_leaves_the_outcome_unknown() {
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node().await;
    put(&*node, &key("a"), "one", LONG).await;
    let path = only_file(&backend);
    fs::remove_file(&path).unwrap();
    // A directory at the file's path can be neither replaced nor read.
    fs::create_dir(&path).unwrap();
    let put = node.put(key("a"), upload("two"), LONG, Wakes::none());
    let put = put.commit_alone().await;
    assert!(matches!(put, Err(Error::OutcomeUnknown(_))), "{put:?}");
    let begun = node.begin(request(&key("a")), LONG).commit_alone().await;
    assert!(matches!(begun, Err(Error::OutcomeUnknown(_))), "{begun:?}");
    let state = node.get(vec![key("a")]).await;
    assert!(matches!(state, Err(Error::Unavailable(_))), "{state:?}");
}

#[tokio::test]
async fn the_files_are_private_to_the_servers_user() {
    use std::os::unix::fs::PermissionsExt;
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node().await;
    put(&*node, &key("a"), "one", LONG).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(backend.files()), 0o700);
    assert_eq!(mode(only_file(&backend)), 0o600);
}

#[tokio::test]
async fn a_large_answer_is_never_in_memory_as_a_whole() {
    const MEGABYTES: usize = 160;
    let backend = TestBackend::files_over_sqlite().await;
    let node = backend.node().await;
    put(&*node, &key("small"), megabyte(), LONG).await;
    let before = memory();
    let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![7; MEGABYTE / 16]));
    let chunks = stream::iter((0..16 * MEGABYTES).map(move |_| chunk()));
    let large = Upload {
        limit: 20 * LIMIT,
        ..upload(Body::from_stream(chunks))
    };
    let kept = node
        .put(key("large"), large, LONG, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::Done);
    let found = answer(&*node, &key("large")).await.unwrap();
    let AnswerBody::File(_, length) = found.body else {
        panic!("not a file");
    };
    assert_eq!(length, (MEGABYTES * MEGABYTE) as u64);
    let grown = memory().saturating_sub(before);
    assert!(grown < MEGABYTES * MEGABYTE / 4, "{grown} bytes");
}
