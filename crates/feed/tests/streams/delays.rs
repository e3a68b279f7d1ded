//! What a stream waits for on purpose.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use wakeline_feed::{service::Settings, stream::Limits};
use wakeline_testkit::soon;

use crate::{
    database::Database,
    facts::{POSTS, feed, post, posts, references, site},
    node::{Node, settings},
    stream_fixture::{StreamFixture, long_limits, received, until_sync},
};

/// What takes so long does not come in a test.
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

/// The first SYNC comes with the backfill; later ones not before their time, however many pages
/// come.
pub(crate) async fn a_live_page_is_not_synced_at_once(database: Database) {
    let node = Node::with(&database, delayed(NEVER)).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    for name in ["one", "two", "three"] {
        let new = post(&home, name);
        node.add(&new).await;
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.references, references(&[new]));
    }
}

/// The client may still be loading the page before it, even when pages have been coming for long.
pub(crate) async fn sync_comes_long_after_the_last_of_many_pages(database: Database) {
    let delay = MOMENT * 6;
    let node = Node::with(&database, delayed(delay)).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    let began = Instant::now();
    while began.elapsed() < delay * 5 {
        node.add(&post(&home, &format!("{:?}", began.elapsed())))
            .await;
        // If the save took long, the SYNC of the page before comes first.
        while stream.next().await.unwrap().references.is_empty() {}
        let sync = timeout(delay / 6, stream.next()).await;
        assert!(sync.is_err(), "SYNC came right after a page");
    }
}

pub(crate) async fn sync_comes_after_its_delay(database: Database) {
    let node = Node::with(&database, delayed(MOMENT)).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    let new = post(&home, "new");
    node.add(&new).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), received(&frames)), (2, references(&[new])));
    assert_eq!(frames[0].bookmark, frames[1].bookmark);
}

/// After every page it lets others go first, if there are any.
pub(crate) async fn a_long_backfill_lets_others_go_first(database: Database) {
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
    // Nobody else: it goes on at once.
    let mut alone = fixture.stream(&feed(POSTS, &[&home]));
    assert_eq!(received(&until_sync(&mut alone).await).len(), 25);
    fixture.store.hold_up_next();
    let mut reader = fixture.stream(&feed(POSTS, &[&other]));
    let reading = tokio::spawn(async move {
        let _ = reader.next().await;
    });
    soon("a page under way", fixture.store.is_held_up()).await;
    // Not a page that is known already.
    fixture.save(&[site("third")]).await;
    let mut waiting = fixture.stream(&feed(POSTS, &[&home]));
    let page = timeout(MOMENT * 5, waiting.next()).await;
    assert!(page.is_err(), "{page:?}");
    reading.abort();
    fixture.store.let_go();
}
