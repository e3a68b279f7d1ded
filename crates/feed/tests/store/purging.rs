//! A purge, while saves are under way that have found what it removes: PostgreSQL only, as SQLite
//! has one writer.

use std::sync::Arc;

use wakeline_feed::{
    fact::{Fact, Reference},
    policy::Policies,
    policy_file::PolicyFile,
    store::{SaveOutcome, Seq},
};
use wakeline_testkit::{CommitAlone, eventually, local_bus};

use crate::{
    database::Database,
    fixture::{Fixture, fact, one},
};

const RULES: &str = "purge { (s: Site) { x: Site.Deleted [x->site: Site = s] } }";
/// Saves that are done, or have to wait, before they look for anything: a lock says so.
const BEGUN: &str = "SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 1717921124 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

struct Blog {
    fixture: Fixture,
    site: Fact,
    post: Fact,
}

impl Blog {
    async fn new() -> Self {
        let fixture = Fixture::new(Database::postgres().await).await;
        let site = fact("Site", "site", &[]);
        let post = fact("Post", "post", &[("site", one(&site))]);
        let comment = fact("Comment", "old", &[("post", one(&post))]);
        fixture.save(&[&site, &post, &comment]).await;
        Self {
            fixture,
            site,
            post,
        }
    }

    async fn delete(&self) -> Vec<(Reference, Seq)> {
        let deleted = fact("Site.Deleted", "x", &[("site", one(&self.site))]);
        let SaveOutcome::Stored { new } = self.fixture.save(&[&deleted]).await else {
            panic!("it is not saved");
        };
        let new = new.into_iter();
        new.map(|(_, at)| (deleted.reference.clone(), at)).collect()
    }

    async fn count(&self, table: &str) -> i64 {
        self.fixture.database.count(table).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_saved_onto_what_a_purge_removes_is_removed() {
    let blog = Blog::new().await;
    let new = blog.delete().await;
    let post = blog.fixture.at(&blog.post).await;
    let session = blog.fixture.database.session().await;
    // What a save does first. It finds the post then, and has drawn no seq yet.
    session
        .batch_execute(
            "BEGIN;
             SELECT pg_advisory_xact_lock_shared(1717921124, CAST(last_value AS integer))
             FROM wakeline.feed_seq",
        )
        .await
        .unwrap();
    let policies = Policies::new(&PolicyFile::parse(RULES).unwrap()).unwrap();
    let store = blog.fixture.store.clone();
    let purge = tokio::spawn(async move {
        policies
            .purge
            .saved(&*store, &local_bus(), &new)
            .await
            .unwrap()
    });
    eventually("the post to be purged", async || {
        blog.fixture.find(&blog.post).await.is_none()
    })
    .await;
    let late = format!(
        "INSERT INTO wakeline.feed_fact (seq, type_id, hash, fields, predecessors, saved_at)
         SELECT nextval('wakeline.feed_seq'), id, 'late', '{{}}', '{{}}', 0
         FROM wakeline.feed_type WHERE name = 'Comment';
         INSERT INTO wakeline.feed_edge (predecessor, role_id, successor)
         SELECT {post}, r.id, f.seq FROM wakeline.feed_role r, wakeline.feed_fact f
         WHERE r.name = 'post' AND f.hash = 'late'"
    );
    session.batch_execute(&late).await.unwrap();
    assert!(!purge.is_finished());
    session.batch_execute("COMMIT").await.unwrap();
    assert_eq!(purge.await.unwrap(), 3, "the post and both comments");
    assert_eq!(blog.count("feed_fact WHERE hash = 'late'").await, 0);
    let edges = format!("feed_edge WHERE predecessor = {post}");
    assert_eq!(blog.count(&edges).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_can_be_waited_for_before_it_looks_for_anything() {
    let blog = Blog::new().await;
    let session = blog.fixture.database.session().await;
    session
        .batch_execute("BEGIN; LOCK TABLE wakeline.feed_fact")
        .await
        .unwrap();
    let store = blog.fixture.store.clone();
    let comment = fact("Comment", "new", &[("post", one(&blog.post))]);
    let envelope = crate::fixture::envelope(&comment);
    let save = tokio::spawn(async move {
        store
            .save(Arc::from([envelope]))
            .commit_alone()
            .await
            .unwrap()
    });
    eventually("the save to begin", async || {
        blog.fixture.database.number(BEGUN).await == 1
    })
    .await;
    session.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(save.await.unwrap(), SaveOutcome::Stored { .. }));
}
