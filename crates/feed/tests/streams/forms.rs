//! The other forms of a stream, and what is asked for wrongly.

use std::time::Duration;

use wakeline_feed::query::MAX_TOGETHER;
use wakeline_testkit::{eventually, soon};

use crate::{
    client::{EVENTS, Frame, JINAGA, Stream, request},
    database::Database,
    facts::{POSTS, fact, post, posts, references, request_text, site},
    node::Node,
    stream_fixture::received,
};

/// An event's name, its id and what it carries.
async fn event(stream: &mut Stream) -> (String, String, Frame) {
    let mut lines = Vec::new();
    loop {
        let line = soon("an event", stream.line()).await.expect("it goes on");
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let field = |name: &str| {
        let found = lines.iter().find_map(|line| line.strip_prefix(name));
        found
            .unwrap_or_else(|| panic!("{name} {lines:?}"))
            .to_owned()
    };
    let frame = Frame::read(&field("data: ")).unwrap();
    (field("event: "), field("id: "), frame)
}

pub(crate) async fn events_go_on_where_they_were(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let all = posts(&home, "post", 150);
    node.save(&[vec![home.clone()], all.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
    let accept = ("Accept", EVENTS);
    let mut stream = Stream::open(node.address, &path, &[accept]).await;
    assert_eq!(stream.head.header("content-type"), Some(EVENTS));
    let (name, id, frame) = event(&mut stream).await;
    assert_eq!((&*name, frame.references.len()), ("page", 100));
    assert_eq!(id, frame.bookmark);
    drop(stream);
    let resumed = [accept, ("Last-Event-ID", &*id)];
    let mut stream = Stream::open(node.address, &path, &resumed).await;
    let (_, _, frame) = event(&mut stream).await;
    assert_eq!(frame.references, references(&all[100..]));
    let (name, id, sync) = event(&mut stream).await;
    assert_eq!((&*name, &id), ("sync", &sync.bookmark));
    assert!(sync.is_sync());
    let new = post(&home, "new");
    node.add(&new).await;
    let (name, _, frame) = event(&mut stream).await;
    assert_eq!((&*name, frame.references), ("page", references(&[new])));
}

pub(crate) async fn a_page_is_waited_for(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 2);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
    let wait = [("Prefer", "wait=30")];
    // What is there is answered at once.
    let answer = node.get(&path, &wait).await;
    assert_eq!(answer.head.header("preference-applied"), Some("wait=30"));
    let page = answer.page();
    assert_eq!(page.references, references(&old));
    node.is_left().await;
    let path = format!("{path}?b={}", page.bookmark);
    let held = node.get(&path, &wait);
    let saving = async {
        eventually("the request to be held", async || node.engine.held() == 2).await;
        node.add(&post(&home, "new")).await;
    };
    let (answer, ()) = tokio::join!(held, saving);
    let timing = answer.head.header("server-timing").unwrap();
    assert!(timing.contains("wake;desc=\"notify\""), "{timing}");
    assert!(!timing.contains("db;dur=0.0"), "{timing}");
    let page = answer.page();
    assert_eq!(page.references, references(&[post(&home, "new")]));
    node.is_left().await;
}

pub(crate) async fn a_page_is_not_waited_for_longer_than_asked(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(&[vec![home.clone()], posts(&home, "old", 2)].concat())
        .await;
    let path = node.declare(POSTS, &[&home]).await;
    let bookmark = node.get(&path, &[]).await.page().bookmark;
    let path = format!("{path}?b={bookmark}");
    let page = node.get(&path, &[("Prefer", "wait=1")]).await.page();
    assert_eq!((page.references.len(), page.bookmark), (0, bookmark));
    node.is_left().await;
}

pub(crate) async fn upstreams_bookmarks_are_the_beginning(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let all = posts(&home, "post", 3);
    node.save(&[vec![home.clone()], all.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
    for bookmark in ["254", "254.253", "99999999999999999999"] {
        let request_text = format!("{path}?b={bookmark}");
        let frames = node.stream(&request_text).await.until_sync().await;
        assert_eq!(received(&frames), references(&all), "{bookmark}");
        let page = node.get(&request_text, &[]).await.page();
        assert_eq!(page.references, references(&all), "{bookmark}");
    }
}

pub(crate) async fn a_bookmark_of_another_store_is_the_beginning(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let all = posts(&home, "post", 3);
    node.save(&[vec![home.clone()], all.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
    let request_text = format!("{path}?b=w1-1000000");
    let frames = node.stream(&request_text).await.until_sync().await;
    assert_eq!(received(&frames), references(&all));
    let page = node.get(&request_text, &[]).await.page();
    assert_eq!(page.references, references(&all));
}

pub(crate) async fn a_bad_bookmark_is_refused(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let long = "1".repeat(5_000);
    let of_others = ["w1-0-5-0-1.1.1", "w1-0-5-0-", "w1-1-5-1-1"];
    let unreadable = ["xyz", "w1-", "w1-x", "w1-3-2-0-1", "w2-3", "-1", &long];
    for bookmark in unreadable.into_iter().chain(of_others) {
        let request_text = format!("{path}?b={bookmark}");
        let answer = node.get(&request_text, &[]).await;
        assert_eq!(answer.head.status, 400, "{bookmark}: {answer:?}");
        assert!(answer.body.starts_with("b: "), "{bookmark}: {answer:?}");
        let stream = Stream::open(node.address, &request_text, &[("Accept", JINAGA)]).await;
        assert_eq!(stream.head.status, 400, "{bookmark}");
        // It is called by the name that it was sent under, as a page or as a stream.
        for form in ["application/json", EVENTS] {
            let sent = [("Last-Event-ID", bookmark), ("Accept", form)];
            let answer = node.get(&path, &sent).await;
            assert_eq!(answer.head.status, 400, "{bookmark}: {answer:?}");
            assert!(answer.body.starts_with("Last-Event-ID: "), "{answer:?}");
        }
    }
    assert_eq!(node.feeds.streams(), 0);
}

/// So many facts below a site, each under the one before.
fn chain(count: usize) -> String {
    let way = "->next: Link".repeat(count - 1);
    format!("(s: Site) {{ l: Link [l{way}->site: Site = s] }}")
}

/// The site is one of them.
pub(crate) async fn a_feed_of_as_many_facts_as_may_be_is_served(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let mut links = vec![fact("Link", "0", &[("site", &home)])];
    for number in 1..MAX_TOGETHER {
        let name = number.to_string();
        links.push(fact("Link", &name, &[("next", &links[number - 1])]));
    }
    let (old, last) = links.split_at(MAX_TOGETHER - 1);
    let other = fact("Link", "other", &[("next", &old[old.len() - 2])]);
    node.save(&[std::slice::from_ref(&home), old].concat())
        .await;
    let path = node.declare(&chain(MAX_TOGETHER - 1), &[&home]).await;
    let mut stream = node.stream(&path).await;
    let frames = stream.until_sync().await;
    assert_eq!(received(&frames), references(&old[old.len() - 1..]));
    // The first is too far below, the other is not.
    node.add(&last[0]).await;
    node.add(&other).await;
    assert_eq!(received(&stream.until_sync().await), references(&[other]));
}

pub(crate) async fn a_feed_of_more_facts_is_refused(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let within = format!(
        "(s: Site) {{ p: Post [p->site: Site = s !E {{ l: Link [l{}->post: Post = p] }}] }}",
        "->next: Link".repeat(MAX_TOGETHER)
    );
    for text in [chain(MAX_TOGETHER), within] {
        for path in ["/jinaga/feeds", "/jinaga/read"] {
            let text = request_text(&text, &[&home]);
            let what = format!("POST {path}");
            let kind = ("Content-Type", "text/plain");
            let answer = request(node.address, &what, &[kind], &text).await;
            assert_eq!(answer.head.status, 400, "{path} {answer:?}");
            let limit = format!("more than {MAX_TOGETHER} facts");
            assert!(answer.body.contains(&limit), "{answer:?}");
        }
    }
}

pub(crate) async fn an_unknown_feed_is_not_found(database: Database) {
    let node = Node::new(&database).await;
    let path = "/jinaga/feeds/unheard-of";
    let answer = node.get(path, &[]).await;
    assert_eq!((answer.head.status, &*answer.body), (404, "feed_not_found"));
    let stream = Stream::open(node.address, path, &[("Accept", JINAGA)]).await;
    assert_eq!(stream.head.status, 404);
    assert_eq!(node.feeds.streams(), 0);
}

pub(crate) async fn a_feed_is_known_after_a_restart(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 3);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
    let bookmark = node.get(&path, &[]).await.page().bookmark;
    drop(node);
    let node = Node::new(&database).await;
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
    let silent = tokio::time::timeout(Duration::from_millis(50), stream.line()).await;
    assert!(silent.is_err(), "{silent:?}");
}
