//! The seed's unit tests, by its names: sessions on a real store.

use std::{cmp::Ordering, sync::Arc};

use wakeline_feed::{
    hub::Watch,
    paging::find_givens,
    stream::{EndReason, Limits, StreamEvent},
    topic,
};
use wakeline_testkit::{eventually, soon};
use wakeline_wake::{Cause, Wake};

use crate::{
    blog::{
        COMMENTS, KEPT_POSTS, POSTS, POSTS_OF, author, comment, fact, feed, post, posts,
        references, site, sorted,
    },
    client::Frame,
    database::Database,
    stream_fixture::{StreamFixture, long_limits, received, until_sync},
};

/// How many references each frame has.
fn sizes(frames: &[Frame]) -> Vec<usize> {
    let sizes = frames.iter().map(|frame| frame.references.len());
    sizes.collect()
}

/// Every page goes on; a SYNC stays where it is.
fn assert_never_back(frames: &[Frame]) {
    for pair in frames.windows(2) {
        let order = pair[0].place().compare(&pair[1].place());
        let expected: &[Ordering] = if pair[1].is_sync() {
            &[Ordering::Less, Ordering::Equal]
        } else {
            &[Ordering::Less]
        };
        assert!(expected.contains(&order), "{pair:?}");
    }
}

pub(crate) async fn backfill_to_exhaustion(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let (home, full) = (site("home"), site("full"));
    let (some, all) = (posts(&home, "some", 25), posts(&full, "all", 20));
    fixture
        .save(&[vec![home.clone(), full.clone()], some.clone(), all.clone()].concat())
        .await;
    let mut stream = fixture.stream(&feed(POSTS, &[&home]));
    let frames = until_sync(&mut stream).await;
    assert_eq!(sizes(&frames), [10, 10, 5, 0]);
    assert_eq!(received(&frames), references(&some));
    assert_never_back(&frames);
    assert_eq!(frames[2].bookmark, frames[3].bookmark);
    assert_eq!(stream.telemetry().pages, 3);
    // No page is read in vain.
    let before = fixture.store.delta_pages();
    let frames = until_sync(&mut fixture.stream(&feed(POSTS, &[&full]))).await;
    assert_eq!(sizes(&frames), [10, 10, 0]);
    assert_eq!(received(&frames), references(&all));
    assert_eq!(fixture.store.delta_pages() - before, 2);
}

pub(crate) async fn waitlist_triggers_continuation(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let home = site("home");
    fixture.save(std::slice::from_ref(&home)).await;
    let feed = feed(POSTS, &[&home]);
    let mut stream = fixture.stream(&feed);
    // A fact is saved when the last page has been read and is empty.
    fixture.store.hold_up(0);
    let reading = tokio::spawn(async move {
        let frames = until_sync(&mut stream).await;
        (stream, frames)
    });
    soon("an empty page", fixture.store.is_held_up()).await;
    let late = posts(&home, "late", 3);
    fixture.save_and_follow(&late).await;
    fixture.store.let_go();
    let (stream, frames) = soon("SYNC", reading).await.unwrap();
    assert_eq!(sizes(&frames), [3, 0]);
    assert_eq!(received(&frames), references(&late));
    let telemetry = stream.telemetry();
    assert_eq!((telemetry.cycles, telemetry.restarts), (2, 1));
    assert_eq!(telemetry.syncs, 1);
}

pub(crate) async fn no_concurrent_cycles(database: Database) {
    let fixture = StreamFixture::new(database, 3).await;
    let home = site("home");
    fixture.save(std::slice::from_ref(&home)).await;
    let feed = feed(POSTS, &[&home]);
    let all = posts(&home, "post", 60);
    let mut stream = fixture.stream(&feed);
    let count = all.len();
    let reading = tokio::spawn(async move {
        let mut frames = until_sync(&mut stream).await;
        while received(&frames).len() < count {
            frames.extend(until_sync(&mut stream).await);
        }
        frames
    });
    let wake = Wake::all(topic::stream(&feed.hash));
    for one in all.chunks(2) {
        fixture.save(one).await;
        for _ in 0..10 {
            fixture.services.engine.wake(&wake, Cause::Notify);
        }
    }
    let frames = soon("all of them", reading).await.unwrap();
    assert_eq!(fixture.store.most_under_way(), 1);
    assert_eq!(sorted(received(&frames)), sorted(references(&all)));
}

pub(crate) async fn deduplication(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let home = site("home");
    let first = post(&home, "first");
    let comments = ["a", "b", "c"].map(|name| comment(&first, name));
    let all = [&[home.clone(), first.clone()], &comments[..]].concat();
    fixture.save(&all).await;
    let mut stream = fixture.stream(&feed(COMMENTS, &[&home]));
    let frames = until_sync(&mut stream).await;
    assert_eq!(sizes(&frames), [4, 0]);
    assert_eq!(sorted(received(&frames)), sorted(references(&all[1..])));
}

pub(crate) async fn tuple_completeness(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let home = site("home");
    fixture.save(std::slice::from_ref(&home)).await;
    let mut stream = fixture.stream(&feed(COMMENTS, &[&home]));
    assert_eq!(sizes(&until_sync(&mut stream).await), [0]);
    let first = post(&home, "first");
    fixture.save_and_follow(std::slice::from_ref(&first)).await;
    let comments = ["a", "b"].map(|name| comment(&first, name));
    for one in &comments {
        fixture.save_and_follow(std::slice::from_ref(one)).await;
        // Half of a tuple is not sent before the other half.
        let frames = until_sync(&mut stream).await;
        let whole = [first.clone(), one.clone()];
        assert_eq!(received(&frames), references(&whole));
    }

    // Facts that will never be a tuple cost one cycle.
    let kept = feed(KEPT_POSTS, &[&home]);
    let mut stream = fixture.stream(&kept);
    until_sync(&mut stream).await;
    let before = stream.telemetry().cycles;
    let gone = post(&home, "gone");
    let delete = fact("Delete", "it", &[("post", &gone)]);
    fixture.save_and_follow(&[gone, delete]).await;
    assert_eq!(sizes(&until_sync(&mut stream).await), [0]);
    let last = post(&home, "last");
    fixture.save_and_follow(std::slice::from_ref(&last)).await;
    let frames = until_sync(&mut stream).await;
    assert_eq!(received(&frames), references(&[last]));
    assert_eq!(stream.telemetry().cycles, before + 2);
}

pub(crate) async fn sync_emission(database: Database) {
    let fixture = StreamFixture::new(database, 2).await;
    let home = site("home");
    fixture.save(std::slice::from_ref(&home)).await;
    let mut stream = fixture.stream(&feed(POSTS, &[&home]));
    let frames = until_sync(&mut stream).await;
    assert_eq!(sizes(&frames), [0]);
    assert_eq!(frames[0].bookmark, "");
    for (name, pages) in [("a", vec![2, 1, 0]), ("b", vec![2, 1, 0])] {
        fixture.save_and_follow(&posts(&home, name, 3)).await;
        let frames = until_sync(&mut stream).await;
        assert_eq!(sizes(&frames), pages);
    }
    assert_eq!(stream.telemetry().syncs, 3);
    // Facts that are saved between the pages are sent before SYNC.
    fixture.store.hold_up(1);
    let reading = tokio::spawn(async move { until_sync(&mut stream).await });
    fixture.save_and_follow(&posts(&home, "c", 3)).await;
    soon("a page", fixture.store.is_held_up()).await;
    fixture.save_and_follow(&posts(&home, "d", 1)).await;
    fixture.store.let_go();
    let frames = soon("SYNC", reading).await.unwrap();
    assert_eq!(sizes(&frames), [2, 1, 1, 0]);
}

pub(crate) async fn bookmark_monotonicity(database: Database) {
    let fixture = Arc::new(StreamFixture::new(database, 3).await);
    let home = site("home");
    let first = post(&home, "first");
    let mut all = vec![home.clone(), first.clone()];
    all.extend((0..20).map(|number| comment(&first, &format!("old {number}"))));
    fixture.save(&all).await;
    let mut stream = fixture.stream(&feed(COMMENTS, &[&home]));
    let writing = {
        let (fixture, home, first) = (fixture.clone(), home.clone(), first.clone());
        tokio::spawn(async move {
            let mut posts = vec![first];
            for number in 0..20 {
                let new = post(&home, &format!("{number}"));
                let on_new = comment(&new, "on a new one");
                let on_old = comment(&posts[number / 2], &format!("on an old one {number}"));
                posts.push(new.clone());
                fixture.save(&[new, on_new, on_old]).await;
            }
        })
    };
    let mut frames = Vec::new();
    let comments = |frames: &[Frame]| {
        let all = received(frames).into_iter();
        all.filter(|reference| &*reference.kind == "Comment")
            .count()
    };
    while comments(&frames) < 60 {
        frames.extend(until_sync(&mut stream).await);
    }
    writing.await.unwrap();
    assert_eq!(comments(&frames), 60);
    assert_never_back(&frames);
}

pub(crate) async fn listener_filtering(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let (home, other) = (site("home"), site("other"));
    let (anna, ben) = (author("anna"), author("ben"));
    let all = [&home, &other, &anna, &ben].map(Clone::clone);
    fixture.save(&all).await;
    let feed = feed(POSTS_OF, &[&home, &anna]);
    let given = find_givens(&*fixture.store, &feed.query, &feed.given).await;
    let registration = fixture.services.hub.register(topic::stream(&feed.hash), 10);
    fixture.services.follower.ensure_running().await.unwrap();
    let watch = Watch {
        query: feed.query.clone(),
        given: given.unwrap().expect("they are stored"),
        is_dependency: false,
    };
    registration.watch(vec![watch], Vec::new());
    let by = |site, author, name| fact("Post", name, &[("site", site), ("author", author)]);
    for other in [
        by(&home, &ben, "of another"),
        by(&other, &anna, "elsewhere"),
        post(&home, "without an author"),
    ] {
        fixture.save_and_follow(&[other]).await;
        assert!(registration.inbox().waitlist().is_empty());
    }
    fixture.save_and_follow(&[by(&home, &anna, "own")]).await;
    assert_eq!(registration.inbox().waitlist().len(), 1);
}

pub(crate) async fn lifecycle_cleanup(database: Database) {
    let fixture = StreamFixture::new(database, 5).await;
    let home = site("home");
    fixture
        .save(&[vec![home.clone()], posts(&home, "post", 20)].concat())
        .await;
    let feed = feed(POSTS, &[&home]);
    let mut live = fixture.stream(&feed);
    until_sync(&mut live).await;
    let mut halfway = fixture.stream(&feed);
    let event = soon("a page", halfway.next()).await.unwrap();
    assert!(matches!(event, StreamEvent::Page { is_synced, .. } if !is_synced));
    assert_eq!(fixture.services.hub.streams(), 2);
    drop(halfway);
    assert_eq!(fixture.services.hub.streams(), 1);
    // A stream is dropped while its page is read: the page is read to its end, for others.
    let pages = fixture.services.pages.clone();
    fixture.save_and_follow(&[site("other")]).await;
    fixture.store.hold_up(0);
    let mut reader = fixture.stream(&feed);
    let reading = tokio::spawn(async move { reader.next().await.is_some() });
    soon("a page", fixture.store.is_held_up()).await;
    reading.abort();
    assert!(reading.await.unwrap_err().is_cancelled());
    fixture.store.let_go();
    eventually("no page to be under way", async || !pages.is_busy()).await;
    assert_eq!(fixture.services.hub.streams(), 1);
    drop(live);
    let engine = &fixture.services.engine;
    eventually("no waiter", async || engine.held() == 0).await;
    assert_eq!(fixture.services.hub.streams(), 0);
    assert_eq!(engine.topic_count(), 0);
    assert_eq!(fixture.services.follower.at(), None);
    let before = fixture.store.delta_pages();
    fixture.save(&posts(&home, "more", 1)).await;
    assert_eq!(fixture.store.delta_pages(), before);
}

pub(crate) async fn limits(database: Database) {
    let narrow = Limits {
        waitlist_cap: 5,
        max_initial_pages: 2,
        ..long_limits()
    };
    let fixture = StreamFixture::with(database, 3, narrow).await;
    let home = site("home");
    let old = posts(&home, "old", 20);
    fixture
        .save(&[vec![home.clone()], old.clone()].concat())
        .await;
    let mut stream = fixture.stream(&feed(POSTS, &[&home]));
    // Cycles have a limit, and all stored posts are sent.
    let frames = until_sync(&mut stream).await;
    assert_eq!(received(&frames), references(&old));
    assert_eq!(stream.telemetry().cycles, 4);
    fixture.save_and_follow(&posts(&home, "few", 5)).await;
    assert_eq!(received(&until_sync(&mut stream).await).len(), 5);
    fixture.save_and_follow(&posts(&home, "too many", 6)).await;
    assert!(soon("the end", stream.next()).await.is_none());
    assert_eq!(stream.telemetry().ending, Some(EndReason::Overrun));
    drop(stream);
    assert_eq!(fixture.services.hub.streams(), 0);
}
