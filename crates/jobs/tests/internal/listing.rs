use std::{os::unix::net::UnixListener, time::Duration};

use wakeline_jobs::internal::filesystem::{BadRoots, FilesystemRead, Limits};

use crate::tree::{TestTree, read, refusal, seen};

fn house() -> TestTree {
    TestTree::with(&[
        "root/b.xyz",
        "root/a.xyz",
        "root/notes.txt",
        "root/.hidden",
        "root/sub/c.xyz",
        "root/sub/deep/d.xyz",
        "root/sub/deep/e.txt",
        "root/empty/",
        "outside/secret.xyz",
    ])
}

#[tokio::test]
async fn a_directory_is_listed_in_order() {
    let house = house();
    let provider = house.provider(&["root"]);
    let all = read(&provider, &[]).await.unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&all).unwrap(), @r#"
    [
      {
        "name": ".hidden",
        "path": "/.hidden",
        "size": 7,
        "type": "file"
      },
      {
        "name": "a.xyz",
        "path": "/a.xyz",
        "size": 5,
        "type": "file"
      },
      {
        "name": "b.xyz",
        "path": "/b.xyz",
        "size": 5,
        "type": "file"
      },
      {
        "name": "empty",
        "path": "/empty",
        "size": 0,
        "type": "directory"
      },
      {
        "name": "notes.txt",
        "path": "/notes.txt",
        "size": 9,
        "type": "file"
      },
      {
        "name": "sub",
        "path": "/sub",
        "size": 0,
        "type": "directory"
      }
    ]
    "#);
    let expected = "/.hidden /a.xyz /b.xyz /empty/ /notes.txt /sub/";
    assert_eq!(seen(&provider, &[("path", "/")]).await, expected);
    assert_eq!(seen(&provider, &[("path", "")]).await, expected);
}

#[tokio::test]
async fn a_path_lists_the_directory_below_the_root() {
    let house = house();
    let provider = house.provider(&["root"]);
    assert_eq!(
        seen(&provider, &[("path", "/sub")]).await,
        "/sub/c.xyz /sub/deep/"
    );
    assert_eq!(
        seen(&provider, &[("path", "sub/./deep//")]).await,
        "/sub/deep/d.xyz /sub/deep/e.txt"
    );
    assert_eq!(seen(&provider, &[("path", "/empty")]).await, "");
    assert_eq!(
        seen(&provider, &[("path", "/sub/c.xyz")]).await,
        "/sub/c.xyz"
    );
    let none = refusal(&provider, &[("path", "/nowhere")]).await;
    assert_eq!(none, "'/nowhere' is not there, or cannot be looked at");
}

#[tokio::test]
async fn a_glob_pattern_filters_the_entries() {
    let house = house();
    let provider = house.provider(&["root"]);
    let glob = async |path, glob| seen(&provider, &[("path", path), ("glob", glob)]).await;
    assert_eq!(glob("/", "*.xyz").await, "/a.xyz /b.xyz");
    assert_eq!(glob("/sub", "*.xyz").await, "/sub/c.xyz");
    assert_eq!(glob("/", "sub/*").await, "/sub/c.xyz /sub/deep/");
    assert_eq!(
        glob("/", "**/*.xyz").await,
        "/a.xyz /b.xyz /sub/c.xyz /sub/deep/d.xyz"
    );
    assert_eq!(
        glob("/", "sub/**/?.xyz").await,
        "/sub/c.xyz /sub/deep/d.xyz"
    );
    assert_eq!(glob("/", "[ab].*").await, "/a.xyz /b.xyz");
    assert_eq!(glob("/", "").await, seen(&provider, &[]).await);
    assert_eq!(
        refusal(&provider, &[("glob", "../*")]).await,
        "glob: '..' is no part of a pattern"
    );
}

#[tokio::test]
async fn a_recursive_listing_has_all_entries_below() {
    let house = house();
    let provider = house.provider(&["root"]);
    let sub = seen(&provider, &[("path", "/sub"), ("recursive", "true")]).await;
    assert_eq!(sub, "/sub/c.xyz /sub/deep/ /sub/deep/d.xyz /sub/deep/e.txt");
    let some = seen(&provider, &[("glob", "*.txt"), ("recursive", "1")]).await;
    assert_eq!(some, "/notes.txt /sub/deep/e.txt");
    let flat = seen(&provider, &[("path", "/sub"), ("recursive", "false")]).await;
    assert_eq!(flat, "/sub/c.xyz /sub/deep/");
    let refused = refusal(&provider, &[("recursive", "maybe")]).await;
    assert_eq!(refused, "recursive: 'maybe' is neither true nor false");
}

#[tokio::test]
async fn several_roots_are_listed_by_their_names() {
    let house = house();
    let provider = house.provider(&["root", "outside"]);
    assert_eq!(seen(&provider, &[]).await, "/outside/ /root/");
    assert_eq!(
        seen(&provider, &[("path", "/outside")]).await,
        "/outside/secret.xyz"
    );
    assert_eq!(
        seen(&provider, &[("path", "/root/sub")]).await,
        "/root/sub/c.xyz /root/sub/deep/"
    );
    let all = seen(&provider, &[("glob", "**/*.xyz")]).await;
    assert_eq!(
        all,
        "/outside/secret.xyz /root/a.xyz /root/b.xyz /root/sub/c.xyz /root/sub/deep/d.xyz"
    );
    assert_eq!(seen(&provider, &[("glob", "o*")]).await, "/outside/");
    assert_eq!(
        refusal(&provider, &[("path", "/other/x")]).await,
        "'/other/x' is not there"
    );
}

#[tokio::test]
async fn links_within_the_root_are_listed_as_their_targets() {
    let house = house();
    house.link("root/sub/up.xyz", "../a.xyz");
    house.link("root/again", "sub");
    house.link("root/sub/loop", "..");
    house.link("root/nowhere", "not-there");
    let provider = house.provider(&["root"]);
    let sub = seen(&provider, &[("path", "/sub")]).await;
    assert_eq!(sub, "/sub/c.xyz /sub/deep/ /sub/loop/ /sub/up.xyz");
    assert_eq!(
        seen(&provider, &[("path", "/again")]).await,
        "/again/c.xyz /again/deep/ /again/loop/ /again/up.xyz"
    );
    // A link that leads back up is not followed.
    let all = seen(&provider, &[("path", "/sub"), ("recursive", "true")]).await;
    assert_eq!(
        all,
        "/sub/c.xyz /sub/deep/ /sub/deep/d.xyz /sub/deep/e.txt /sub/loop/ /sub/up.xyz"
    );
}

#[tokio::test]
async fn sockets_and_devices_are_not_listed() {
    let house = house();
    let _socket = UnixListener::bind(house.at("root/empty/socket")).unwrap();
    let provider = house.provider(&["root"]);
    assert_eq!(seen(&provider, &[("path", "/empty")]).await, "");
    assert_eq!(
        refusal(&provider, &[("path", "/empty/socket")]).await,
        "'/empty/socket' is not there"
    );
}

#[tokio::test]
async fn a_listing_over_a_limit_is_refused_with_the_limit() {
    let house = house();
    let within = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        house.provider_within(&["root"], limits)
    };
    let recursive = [("recursive", "true")];
    let texts = [
        refusal(&within(|limits| limits.entries = 5), &[]).await,
        refusal(&within(|limits| limits.looked_at = 5), &[("glob", "none*")]).await,
        refusal(&within(|limits| limits.depth = 2), &recursive).await,
        refusal(&within(|limits| limits.time = Duration::ZERO), &recursive).await,
    ];
    // Directories are read in no fixed order, so the position of the first two may differ.
    assert_eq!(
        texts[0],
        "more than 5 entries; name a directory further down or use glob"
    );
    assert_eq!(
        texts[1],
        ": more than 5 files and directories to look at; name one further down"
    );
    assert_eq!(
        texts[2],
        "/sub/deep: more than 2 directories within one another"
    );
    assert!(texts[3].contains("took"), "{}", texts[3]);
    assert_eq!(
        seen(&within(|limits| limits.entries = 6), &[])
            .await
            .split(' ')
            .count(),
        6
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_listings_run_a_few_at_a_time() {
    let house = house();
    let limits = Limits {
        at_once: 1,
        ..Limits::default()
    };
    let provider = house.provider_within(&["root"], limits);
    let reading = (0..50).map(|_| seen(&provider, &[("recursive", "true")]));
    let all = futures_util::future::join_all(reading).await;
    assert!(all.iter().all(|one| *one == all[0]));
}

#[test]
fn unusable_roots_are_named_at_the_start() {
    let house = TestTree::with(&["one/data/", "two/data/", "file"]);
    let bad = |roots: &[&str]| {
        let roots = roots.iter().map(|root| house.at(root)).collect();
        FilesystemRead::new(roots, Limits::default()).unwrap_err()
    };
    assert!(matches!(bad(&[]), BadRoots::None));
    assert!(matches!(bad(&["one/data", "two/data"]), BadRoots::Twice(name) if name == "data"));
    assert!(matches!(bad(&["nowhere"]), BadRoots::Closed(path, _) if path == house.at("nowhere")));
    assert!(matches!(bad(&["file"]), BadRoots::Closed(..)));
    assert!(matches!(bad(&["one", "two/.."]), BadRoots::Unnamed(_)));
}
