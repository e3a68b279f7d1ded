//! There is no way out of a root.

use std::{
    fs,
    os::unix::fs::symlink,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use futures_util::FutureExt;

use crate::tree::{TestTree, read, refusal, seen};

fn house() -> TestTree {
    TestTree::with(&[
        "root/inside",
        "root/sub/below",
        "outside/secret",
        "outside/deep/secret",
    ])
}

#[tokio::test]
async fn dots_do_not_lead_out_of_the_root() {
    let house = house();
    let provider = house.provider(&["root"]);
    for path in [
        "..",
        "/..",
        "/../outside",
        "/sub/../../outside",
        "sub/..",
        "/root/../../outside",
    ] {
        let refused = refusal(&provider, &[("path", path)]).await;
        assert_eq!(refused, format!("path: '{path}' leads out of here"));
    }
    let refused = refusal(&provider, &[("path", "/sub\0")]).await;
    assert!(refused.ends_with("leads out of here"), "{refused}");
    // An absolute path is one from the root.
    let outside = house.at("outside");
    let refused = refusal(&provider, &[("path", outside.to_str().unwrap())]).await;
    assert!(
        refused.ends_with("is not there, or cannot be looked at"),
        "{refused}"
    );
    let provider = house.provider(&["root", "outside"]);
    let refused = refusal(&provider, &[("path", "/root/../outside")]).await;
    assert!(refused.ends_with("leads out of here"), "{refused}");
}

#[tokio::test]
async fn links_out_of_the_root_are_refused() {
    let house = house();
    house.link("root/absolute", house.at("outside"));
    house.link("root/absolute-file", house.at("outside/secret"));
    house.link("root/relative", "../outside");
    house.link("root/sub/relative", "../../outside/deep");
    house.link("root/through", "sub/relative");
    house.link("root/slash", "/");
    // Even a link that leads back inside is refused: `openat2` follows none out of the root.
    house.link("root/around", "../root/sub");
    let provider = house.provider(&["root"]);
    assert_eq!(seen(&provider, &[]).await, "/inside /sub/");
    let all = seen(&provider, &[("recursive", "true")]).await;
    assert_eq!(all, "/inside /sub/ /sub/below");
    assert_eq!(seen(&provider, &[("glob", "**/secret")]).await, "");
    for path in [
        "/absolute",
        "/absolute/secret",
        "/absolute-file",
        "/relative",
        "/relative/secret",
        "/sub/relative",
        "/through",
        "/through/secret",
        "/slash",
        "/slash/etc",
        "/around",
    ] {
        let refused = refusal(&provider, &[("path", path)]).await;
        assert_eq!(
            refused,
            format!("'{path}' is not there, or cannot be looked at")
        );
    }
}

#[tokio::test]
async fn the_root_itself_may_be_a_link() {
    let house = house();
    house.link("link", "root");
    let provider = house.provider(&["link"]);
    assert_eq!(seen(&provider, &[]).await, "/inside /sub/");
    assert_eq!(seen(&provider, &[("path", "/sub")]).await, "/sub/below");
}

/// A directory that becomes a link to the outside and a directory again, and a link that leads
/// inside and outside in turn, as fast as they can, under reads that go through both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_swapped_in_during_a_read_do_not_lead_out_of_the_root() {
    const READS: usize = 6_000;
    let house = house();
    house.link("root/link", "sub-of-link");
    house.put("root/sub-of-link/below");
    let provider = house.provider(&["root"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| until(&is_over, || house.swap_directory()));
        scope.spawn(|| until(&is_over, || house.swap_link()));
        let mut below = 0;
        let reading = async {
            for turn in 0..READS {
                let params: &[_] = match turn % 4 {
                    0 => &[("recursive", "true")],
                    1 => &[("path", "/sub")],
                    2 => &[("path", "/link")],
                    _ => &[("glob", "**/*e*")],
                };
                for entry in read(&provider, params).await.unwrap_or_default() {
                    assert!(
                        !entry["name"].as_str().unwrap().contains("secret"),
                        "{entry}"
                    );
                    below += usize::from(entry["name"] == "below");
                }
            }
        };
        let reading = AssertUnwindSafe(reading).catch_unwind();
        let read =
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(reading));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = read {
            resume_unwind(panic);
        }
        // The real directory was listed too.
        assert!(below > 0);
    });
}

fn until(is_over: &AtomicBool, swap: impl Fn()) {
    while !is_over.load(Ordering::Relaxed) {
        swap();
    }
}

impl TestTree {
    fn swap_directory(&self) {
        let (swapped, aside) = (self.at("root/sub"), self.at("aside"));
        fs::rename(&swapped, &aside).unwrap();
        symlink(self.at("outside"), &swapped).unwrap();
        fs::remove_file(&swapped).unwrap();
        fs::rename(&aside, &swapped).unwrap();
    }

    fn swap_link(&self) {
        let new = self.at("new-link");
        for target in ["../outside", "sub-of-link"] {
            symlink(target, &new).unwrap();
            // Replaced atomically.
            fs::rename(&new, self.at("root/link")).unwrap();
        }
    }
}
