//! What a page costs, in steps of SQLite's machine. PostgreSQL's rows are counted in
//! `tests/asking`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rusqlite::Connection;
use wakeline_bus::Bus;
use wakeline_testkit::SqliteDatabase;
use wakeline_wake::{Engine, Limits};

use crate::{
    fact::{Envelope, Fact, Predecessors},
    json,
    query::Query,
    specification::parser,
    store::{
        DeltaQuery, Facts, Seq, TupleRow,
        names::NameTables,
        queries,
        sqlite::{MIGRATIONS, SqliteStore, system_clock},
    },
};

const MANY: usize = 10_000;
const PAGE: usize = 100;
/// Steps for each tuple of a page, and for a page whatever is on it.
const EACH: u64 = 60;
const ALWAYS: u64 = 1_000;

struct Fixture {
    database: SqliteDatabase,
    store: SqliteStore,
}

impl Fixture {
    async fn with(facts: &[Fact]) -> Self {
        let database = SqliteDatabase::new();
        let store = SqliteStore::new(database.open(&[MIGRATIONS]), system_clock());
        let fixture = Self { database, store };
        fixture.save(facts).await;
        fixture
    }

    async fn save(&self, facts: &[Fact]) {
        let envelopes = facts.iter().map(|fact| Envelope {
            fact: fact.clone(),
            signatures: Vec::new(),
        });
        let bus = Bus::local(Engine::new(Limits::default()));
        let saved = self.store.save(envelopes.collect()).commit(&bus).await;
        saved.unwrap();
    }

    /// With the steps that it took.
    async fn rows(&self, delta: &DeltaQuery) -> (Vec<TupleRow>, u64) {
        let ids = self.store.ids_of(&delta.query).await.unwrap();
        let mut connection = Connection::open(self.database.path()).unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let counted = steps.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count)).unwrap();
        let rows = queries::delta_page(&connection, &ids, delta).await.unwrap();
        (rows, steps.load(Ordering::Relaxed))
    }

    async fn last(&self) -> Seq {
        self.store.horizon().await.unwrap().last
    }

    /// A page in the middle of all.
    async fn middle(&self, query: Query) {
        let mut delta = DeltaQuery {
            query: Arc::new(query),
            given: vec![1],
            from: 0,
            to: self.last().await,
            first_new_output: 0,
            after: None,
            limit: MANY / 2 + 7,
        };
        let (before, _) = self.rows(&delta).await;
        delta.after = before.last().map(|row| row.at.clone());
        delta.limit = PAGE;
        let (page, steps) = self.rows(&delta).await;
        assert!(before.last().unwrap().at < page[0].at);
        assert_small(&page, steps);
    }
}

fn assert_small(page: &[TupleRow], steps: u64) {
    assert_eq!(page.len(), PAGE);
    eprintln!("a page of {PAGE} among {MANY} took {steps} steps");
    let most = ALWAYS + EACH * PAGE as u64;
    assert!(steps < most, "{steps} are more than {most}");
}

fn fact(kind: &str, n: usize, of: Option<(&str, &Fact)>) -> Fact {
    let roles = of.map(|(role, fact)| {
        let one = Predecessors::One(fact.reference.clone());
        (role.into(), one)
    });
    let fields = format!("{{\"n\":{n}}}");
    let fields = json::parse(&fields).unwrap();
    Fact::new(kind.into(), roles.into_iter().collect(), &fields).unwrap()
}

fn query(text: &str) -> Query {
    Query::of_specification(&parser::parse(text).unwrap()).unwrap()
}

fn posts() -> Query {
    query("(s: Site) { p: Post [p->site: Site = s] }")
}

fn comments() -> Query {
    query("(s: Site) { p: Post [p->site: Site = s] c: Comment [c->post: Post = p] }")
}

#[tokio::test]
async fn a_page_of_one_level_takes_steps_for_the_page() {
    let site = fact("Site", 1, None);
    let mut facts = vec![site.clone()];
    facts.extend((0..MANY).map(|n| fact("Post", n, Some(("site", &site)))));
    Fixture::with(&facts).await.middle(posts()).await;
}

#[tokio::test]
async fn a_page_of_two_levels_takes_steps_for_the_page() {
    let site = fact("Site", 1, None);
    let mut facts = vec![site.clone()];
    for n in 0..MANY / 100 {
        let post = fact("Post", n, Some(("site", &site)));
        facts.push(post.clone());
        facts.extend((0..100).map(|n| fact("Comment", n, Some(("post", &post)))));
    }
    Fixture::with(&facts).await.middle(comments()).await;
}

#[tokio::test]
async fn a_page_inside_a_crowded_parent_takes_steps_for_the_page() {
    let site = fact("Site", 1, None);
    let post = fact("Post", 1, Some(("site", &site)));
    let mut facts = vec![site, post.clone()];
    facts.extend((0..MANY).map(|n| fact("Comment", n, Some(("post", &post)))));
    Fixture::with(&facts).await.middle(comments()).await;
}

/// A page of new comments on a site with so many posts, where `between` came before them.
async fn new_page(old: usize, between: &[Fact]) {
    let site = fact("Site", 1, None);
    let posts: Vec<Fact> = (0..old)
        .map(|n| fact("Post", n, Some(("site", &site))))
        .collect();
    let mut facts = vec![site];
    facts.extend(posts.iter().cloned());
    let fixture = Fixture::with(&facts).await;
    let from = fixture.last().await;
    fixture.save(between).await;
    let new: Vec<Fact> = (0..PAGE)
        .map(|n| fact("Comment", n, Some(("post", &posts[n * old / PAGE]))))
        .collect();
    fixture.save(&new).await;
    let delta = DeltaQuery {
        query: Arc::new(comments()),
        given: vec![1],
        from,
        to: fixture.last().await,
        first_new_output: 1,
        after: None,
        limit: PAGE,
    };
    let (page, steps) = fixture.rows(&delta).await;
    assert_small(&page, steps);
}

#[tokio::test]
async fn new_facts_below_many_old_ones_take_steps_for_the_new_ones() {
    new_page(MANY, &[]).await;
}

#[tokio::test]
async fn new_facts_below_many_old_ones_and_after_many_others_take_steps_for_the_new_ones() {
    let others: Vec<Fact> = (0..MANY / 2).map(|n| fact("Other", n, None)).collect();
    new_page(MANY, &others).await;
}

#[tokio::test]
async fn new_facts_below_few_old_ones_and_after_many_of_their_type_take_steps_for_the_new_ones() {
    let site = fact("Site", 2, None);
    let post = fact("Post", 2, Some(("site", &site)));
    let mut others = vec![site, post.clone()];
    others.extend((0..MANY).map(|n| fact("Comment", n, Some(("post", &post)))));
    new_page(3, &others).await;
}
