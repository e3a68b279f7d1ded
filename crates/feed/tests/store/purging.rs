//! A purge while saves are under way that have found the facts it removes: PostgreSQL only, as SQLite
//! has one writer.

use std::sync::Arc;

use wakeline_feed::{
    fact::{Envelope, Fact, Reference},
    policy::Policies,
    policy_file::PolicyFile,
    store::{SaveOutcome, Seq},
};
use wakeline_testkit::{CommitAlone, eventually, local_bus};

use crate::{
    facts::fact,
    fixture::{Fixture, new_facts},
};

const RULES: &str = "purge { (s: Site) { x: Site.Deleted [x->site: Site = s] } }";
/// Saves under way, which hold their lock before they look anything up.
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
        let fixture = Fixture::postgres().await;
        let site = fact("Site", "site", &[]);
        let post = fact("Post", "post", &[("site", &site)]);
        let comment = fact("Comment", "old", &[("post", &post)]);
        fixture.save(&[&site, &post, &comment]).await;
        Self {
            fixture,
            site,
            post,
        }
    }

    async fn delete(&self) -> Vec<(Reference, Seq)> {
        let deleted = fact("Site.Deleted", "x", &[("site", &self.site)]);
        let new = new_facts(self.fixture.save(&[&deleted]).await).into_iter();
        new.map(|(_, seq)| (deleted.reference.clone(), seq))
            .collect()
    }

    async fn count(&self, table: &str) -> i64 {
        self.fixture.database.count(table).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn successors_saved_during_a_purge_are_purged() {
    let blog = Blog::new().await;
    let new = blog.delete().await;
    let post = blog.fixture.seq(&blog.post).await;
    let session = blog.fixture.database.session().await;
    // A save does this first. Then it finds the post, and has drawn no seq yet.
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
async fn a_save_can_be_waited_for_before_its_first_look_up() {
    let blog = Blog::new().await;
    let session = blog.fixture.database.session().await;
    session
        .batch_execute("BEGIN; LOCK TABLE wakeline.feed_fact")
        .await
        .unwrap();
    let store = blog.fixture.store.clone();
    let comment = fact("Comment", "new", &[("post", &blog.post)]);
    let envelope = Envelope::unsigned(comment);
    let save = tokio::spawn(async move { store.save(Arc::from([envelope])).done().await });
    eventually("the save to begin", async || {
        blog.fixture.database.number(BEGUN).await == 1
    })
    .await;
    session.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(save.await.unwrap(), SaveOutcome::Stored { .. }));
}
