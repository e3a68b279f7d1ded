//! The delays of streams.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use wakeline_feed::{service::Settings, stream::Limits};
use wakeline_testkit::soon;

use crate::{
    blog::{POSTS, feed, post, posts, references, site},
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::{StreamFixture, long_limits, received, until_sync},
};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);
const MOMENT: Duration = Duration::from_millis(100);

fn delayed(sync_delay: Duration) -> Settings {
    Settings {
        stream: Limits {
            sync_delay,
            ..long_limits()
        },
        ..settings()
    }
}

/// The first SYNC comes with the backfill, later ones not before their delay, however many pages
/// come.
pub(crate) async fn a_live_page_is_not_synced_at_once(database: Database) {
    let node = Node::with(&database, delayed(NEVER)).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    for name in ["one", "two", "three"] {
        let new = post(&home, name);
        node.add(&new).await;
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.references, references(&[new]));
    }
}

/// The client may still be loading the last page, however long pages have been coming.
pub(crate) async fn sync_comes_long_after_the_last_of_many_pages(database: Database) {
    let delay = MOMENT * 6;
    let node = Node::with(&database, delayed(delay)).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    let began = Instant::now();
    while began.elapsed() < delay * 5 {
        node.add(&post(&home, &format!("{:?}", began.elapsed())))
            .await;
        // If the save took long, the SYNC of the last page comes first.
        while stream.next().await.unwrap().references.is_empty() {}
        let sync = timeout(delay / 6, stream.next()).await;
        assert!(sync.is_err(), "SYNC came right after a page");
    }
}

pub(crate) async fn sync_comes_after_its_delay(database: Database) {
    let node = Node::with(&database, delayed(MOMENT)).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    let new = post(&home, "new");
    node.add(&new).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), received(&frames)), (2, references(&[new])));
    assert_eq!(frames[0].bookmark, frames[1].bookmark);
}

/// After every page, if there are other streams.
pub(crate) async fn a_long_backfill_lets_other_streams_go_first(database: Database) {
    let polite = Limits {
        page_delay_every: 1,
        page_delay: NEVER,
        ..long_limits()
    };
    let fixture = StreamFixture::with(database, 10, polite).await;
    let [home, other] = ["home", "other"].map(site);
    for site in [&home, &other] {
        fixture
            .save(&[vec![site.clone()], posts(site, "post", 25)].concat())
            .await;
    }
    // The only stream goes on at once.
    let mut alone = fixture.stream(&feed(POSTS, &[&home]));
    assert_eq!(received(&until_sync(&mut alone).await).len(), 25);
    fixture.store.hold_up_next();
    let mut reader = fixture.stream(&feed(POSTS, &[&other]));
    let reading = tokio::spawn(async move {
        let _ = reader.next().await;
    });
    soon("a page under way", fixture.store.is_held_up()).await;
    // With a new horizon the page is not in the cache.
    fixture.save(&[site("third")]).await;
    let mut waiting = fixture.stream(&feed(POSTS, &[&home]));
    let page = timeout(MOMENT * 5, waiting.next()).await;
    assert!(page.is_err(), "{page:?}");
    reading.abort();
    fixture.store.let_go();
}
