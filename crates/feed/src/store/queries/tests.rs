//! A read costs what it is asked for, not what is before, after or beside that. The cost is counted
//! in steps of SQLite's machine, or in the rows and index entries that PostgreSQL reads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rusqlite::Connection;
use wakeline_testkit::{CommitAlone, DatabaseKind, OpenStore};

use crate::{
    bookmark::Bookmark,
    fact::Fact,
    paging::page_at,
    query::Query,
    reading::{Plan, Reading},
    specification::{Specification, parser},
    store::{
        ConcernQuery, DeltaQuery, Seq, Store, TupleRow,
        names::NameTables,
        queries,
        sqlite::{SqliteStore, system_clock},
    },
    test_database::Database,
    test_facts::fact,
    test_saving::save,
};

const MANY: usize = 10_000;
const PAGE: usize = 100;
const POSTS: &str = "(s: Site) { p: Post [p->site: Site = s] }";
const COMMENTS: &str = "(s: Site) { p: Post [p->site: Site = s] c: Comment [c->post: Post = p] }";

fn specification(text: &str) -> Specification {
    parser::parse(text).unwrap()
}

fn query(text: &str) -> Arc<Query> {
    Arc::new(Query::of_specification(&specification(text)).unwrap())
}

/// From the first fact of the store on.
fn delta(text: &str, from: Seq, to: Seq) -> DeltaQuery {
    DeltaQuery {
        query: query(text),
        given: vec![1],
        from,
        to,
        first_new_output: 0,
        cursor: None,
        limit: PAGE,
    }
}

fn posts(site: &Fact, count: usize) -> Vec<Fact> {
    (0..count)
        .map(|n| fact("Post", n, &[("site", site)]))
        .collect()
}

fn comments(post: &Fact, count: usize) -> Vec<Fact> {
    (0..count)
        .map(|n| fact("Comment", n, &[("post", post)]))
        .collect()
}

/// The seq of the last of them.
async fn save_all(database: &Database, facts: &[Fact]) -> Seq {
    save(&*database.store().await, facts).await.pop().unwrap()
}

/// Rows and index entries that PostgreSQL reads. No other store is open.
async fn rows_read<T>(
    database: &Database,
    read: impl AsyncFnOnce(Arc<dyn Store>) -> T,
) -> (T, u64) {
    let count = async || {
        database.all_sessions_ended().await;
        let sum = |column: &str, relation: &str| {
            format!(
                "coalesce((SELECT sum({column}) FROM pg_stat_user_{relation}
                 WHERE relname IN ('feed_fact', 'feed_edge')), 0)"
            )
        };
        let (tables, indexes) = (
            sum("seq_tup_read", "tables"),
            sum("idx_tup_read", "indexes"),
        );
        let sql = format!("SELECT CAST({tables} + {indexes} AS bigint)");
        u64::try_from(database.number(&sql).await).unwrap()
    };
    let before = count().await;
    let answer = read(database.store().await).await;
    (answer, count().await - before)
}

/// Rows of a delta, and what they cost.
async fn cost(database: &Database, delta: &DeltaQuery) -> (Vec<TupleRow>, u64) {
    let OpenStore::Sqlite(sqlite) = database.0.open().await else {
        let read = async |store: Arc<dyn Store>| store.delta_page(delta.clone()).await.unwrap();
        return rows_read(database, read).await;
    };
    let mut connection = Connection::open(sqlite.path()).unwrap();
    let store = SqliteStore::new(sqlite, system_clock());
    let ids = store.ids_of(&delta.query).await.unwrap();
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

/// So much for each of a page's tuples, and so much for a page whatever is on it.
fn assert_small(database: &Database, cost: u64, each: u64) {
    let (each, always) = match database.is_postgres() {
        true => (each, 200),
        false => (10 * each, 1_000),
    };
    eprintln!("{PAGE} among {MANY} cost {cost}");
    let most = always + each * PAGE as u64;
    assert!(cost < most, "{cost} is more than {most}");
}

const EACH: u64 = 6;

/// On PostgreSQL the whole page too, from a bookmark to the tuples.
async fn assert_small_page(database: &Database, text: &str, bookmark: &Bookmark, to: Seq) {
    if database.is_postgres() {
        let query = query(text);
        let read = async |store: Arc<dyn Store>| {
            let page = page_at(&*store, &query, &[1], bookmark, to, PAGE).await;
            page.unwrap()
        };
        let (page, cost) = rows_read(database, read).await;
        assert_eq!(page.tuples.len(), PAGE);
        assert_small(database, cost, EACH);
    }
}

/// A page in the middle of all.
async fn middle_page(database: &Database, text: &str, facts: &[Fact]) {
    let to = save_all(database, facts).await;
    let mut delta = delta(text, 0, to);
    delta.limit = MANY / 2 + 7;
    let (mut page, _) = cost(database, &delta).await;
    let before = page.pop().unwrap().at;
    delta.cursor = Some(before.clone());
    delta.limit = PAGE;
    let (page, cost) = cost(database, &delta).await;
    assert_eq!(page.len(), PAGE);
    assert!(before < page[0].at);
    assert_small(database, cost, EACH);
    let store = database.store().await;
    let first = page_at(
        &*store,
        &delta.query,
        &[1],
        &Bookmark::Start,
        to,
        MANY / 2 + 7,
    )
    .await;
    drop(store);
    assert_small_page(database, text, &first.unwrap().reached, to).await;
}

pub(super) async fn a_page_of_one_level_costs_the_page(database: Database) {
    let site = fact("Site", 1, &[]);
    let facts = [vec![site.clone()], posts(&site, MANY)].concat();
    middle_page(&database, POSTS, &facts).await;
}

pub(super) async fn a_page_of_two_levels_costs_the_page(database: Database) {
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    for post in posts(&site, MANY / 100) {
        facts.push(post.clone());
        facts.extend(comments(&post, 100));
    }
    middle_page(&database, COMMENTS, &facts).await;
}

pub(super) async fn a_page_inside_a_crowded_parent_costs_the_page(database: Database) {
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    let facts = [vec![site, post.clone()], comments(&post, MANY)].concat();
    middle_page(&database, COMMENTS, &facts).await;
}

/// A page of new comments on a site with so many posts, where `between` came before them.
async fn new_page(database: &Database, old: usize, between: &[Fact]) {
    let site = fact("Site", 1, &[]);
    let posts = posts(&site, old);
    let from = save_all(database, &[vec![site], posts.clone()].concat()).await;
    let new = (0..PAGE).map(|n| fact("Comment", n, &[("post", &posts[n * old / PAGE])]));
    let new: Vec<Fact> = new.collect();
    let to = save_all(database, &[between, &new].concat()).await;
    let mut delta = delta(COMMENTS, from, to);
    let (no_posts, first) = cost(database, &delta).await;
    assert!(no_posts.is_empty());
    delta.first_new_output = 1;
    let (page, second) = cost(database, &delta).await;
    assert_eq!(page.len(), PAGE);
    assert_small(database, first + second, EACH);
    assert_small_page(database, COMMENTS, &Bookmark::Finished(from), to).await;
}

pub(super) async fn new_facts_below_many_old_ones_cost_the_new_ones(database: Database) {
    new_page(&database, MANY, &[]).await;
}

pub(super) async fn new_facts_below_many_old_ones_and_after_many_others_cost_the_new_ones(
    database: Database,
) {
    let others: Vec<Fact> = (0..MANY / 2).map(|n| fact("Other", n, &[])).collect();
    new_page(&database, MANY, &others).await;
}

pub(super) async fn new_facts_below_few_old_ones_and_after_many_of_their_type_cost_the_new_ones(
    database: Database,
) {
    let site = fact("Site", 2, &[]);
    let post = fact("Post", 2, &[("site", &site)]);
    let others = [vec![site, post.clone()], comments(&post, MANY)].concat();
    new_page(&database, 3, &others).await;
}

/// A site with many posts, and another with a page of them, each with a comment.
struct TwoSites {
    database: Database,
    site: Seq,
    posts: Vec<Seq>,
    comments: Vec<Seq>,
}

impl TwoSites {
    async fn on_postgres() -> Self {
        let database = Database::open(DatabaseKind::Postgres).await;
        let [crowded, site] = [1, 2].map(|n| fact("Site", n, &[]));
        let with_comments = |posts: Vec<Fact>| {
            let on = |(n, post): (usize, &Fact)| fact("Comment", n, &[("post", post)]);
            let comments: Vec<Fact> = posts.iter().enumerate().map(on).collect();
            [posts, comments].concat()
        };
        let many = with_comments(posts(&crowded, MANY));
        let few = with_comments(posts(&site, PAGE));
        let facts = [vec![crowded, site], many, few].concat();
        let seqs = save(&*database.store().await, &facts).await;
        let (posts, comments) = seqs[2 + 2 * MANY..].split_at(PAGE);
        Self {
            database,
            site: seqs[1],
            posts: posts.to_vec(),
            comments: comments.to_vec(),
        }
    }
}

#[tokio::test]
async fn a_check_costs_the_facts_that_it_is_about() {
    let two = TwoSites::on_postgres().await;
    let from_post = query("(p: Post) { c: Comment [c->post: Post = p] }");
    let from_comment = query("(c: Comment) { s: Site [s = c->post: Post->site: Site] }");
    for (query, seqs) in [(from_post, &two.posts), (from_comment, &two.comments)] {
        let givens: Vec<Vec<Seq>> = seqs.iter().map(|seq| vec![*seq]).collect();
        let check = async |store: Arc<dyn Store>| store.matches(query, givens).await.unwrap();
        let (matches, cost) = rows_read(&two.database, check).await;
        assert_eq!(matches, [true; PAGE]);
        assert_small(&two.database, cost, EACH);
    }
}

#[tokio::test]
async fn finding_the_givens_that_new_facts_concern_costs_the_new_facts() {
    let two = TwoSites::on_postgres().await;
    let query = query(COMMENTS);
    let concerns = ConcernQuery {
        variable: query.outputs[1],
        query,
        facts: two.comments.clone(),
        watched: Vec::new(),
    };
    let find = async |store: Arc<dyn Store>| store.concerns(concerns).await.unwrap();
    let (concerns, cost) = rows_read(&two.database, find).await;
    assert_eq!(concerns.len(), PAGE);
    assert!(concerns.iter().all(|one| one.given == [Some(two.site)]));
    assert_small(&two.database, cost, EACH);
}

#[tokio::test]
async fn a_purge_costs_what_it_removes() {
    let two = TwoSites::on_postgres().await;
    let keep = vec![two.comments[0]];
    let purge = async |store: Arc<dyn Store>| store.purge(two.site, keep, MANY).done().await;
    let (removed, cost) = rows_read(&two.database, purge).await;
    assert_eq!(removed.len(), 2 * PAGE - 2);
    // Two facts for each of the page, which are found from above and deleted from two tables.
    assert_small(&two.database, cost, 4 * EACH);
}

#[tokio::test]
async fn reading_all_results_costs_the_results() {
    let database = Database::open(DatabaseKind::Postgres).await;
    for (site, count) in [(1, MANY / 10), (2, MANY)] {
        let site = fact("Site", site, &[]);
        save_all(
            &database,
            &[vec![site.clone()], posts(&site, count)].concat(),
        )
        .await;
        let plan = Plan::of(&specification(&format!("{POSTS} => #p"))).unwrap();
        let read_all = async |store: Arc<dyn Store>| {
            let reading = Reading::start(store, Arc::new(plan), vec![site.reference]).await;
            let (mut reading, mut read) = (reading.unwrap(), 0);
            while let Some(chunk) = reading.next().await.unwrap() {
                read += chunk.len();
            }
            read
        };
        let (read, cost) = rows_read(&database, read_all).await;
        assert_eq!(read, count);
        let each = cost / count as u64;
        assert!(each <= EACH, "{each} for each of {count}");
    }
}
