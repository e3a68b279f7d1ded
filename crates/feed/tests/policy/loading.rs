//! What may be loaded.

use std::sync::Arc;

use wakeline_feed::{
    bookmark::Bookmark,
    fact::Reference,
    paging::{find_givens, page_at},
    policy::distribution::Verdict,
    query::Query,
    store::Store,
};

use crate::{
    case_facts::{CaseFacts, distribution, specification},
    database::Database,
};

async fn loadable(
    cases: &CaseFacts,
    store: &dyn Store,
    policy: &str,
    user: Option<&str>,
    names: &[&str],
) -> Vec<String> {
    let user: Option<Reference> = user.map(|user| cases.reference(user));
    let references = cases.references(names);
    let rules = distribution(policy);
    let may = rules
        .may_load(store, user.as_ref(), &references)
        .await
        .unwrap();
    let allowed = names.iter().zip(may).filter(|(_, may)| *may);
    allowed.map(|(name, _)| (*name).to_owned()).collect()
}

pub(crate) async fn what_a_granted_feed_delivers_may_be_loaded(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let mut delivered = 0;
    for case in cases.cases["distribution"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let rules = distribution(case["policy"].as_str().unwrap());
        let wanted = specification(case["specification"].as_str().unwrap());
        let given = case["given"].as_array().unwrap().iter();
        let given: Vec<_> = given
            .map(|one| cases.reference(one.as_str().unwrap()))
            .collect();
        let user = case["user"].as_str().map(|user| cases.reference(user));
        let decided = rules
            .decide(&*store, &wanted, &given, user.as_ref())
            .await
            .unwrap();
        if decided.verdict != Verdict::Authorized {
            continue;
        }
        for feed in decided.feeds {
            let query = Arc::new(Query::of_specification(&feed.specification).unwrap());
            let givens = find_givens(&*store, &query, &feed.given).await;
            let givens = givens.unwrap().unwrap();
            let (start, to) = (Bookmark::Start, store.horizon().await.unwrap().settled);
            let page = page_at(&*store, &query, &givens, &start, to, 1_000);
            let facts: Vec<Reference> = page.await.unwrap().tuples.concat();
            // One by one: nothing is allowed because something else is.
            for fact in facts {
                let may = rules
                    .may_load(&*store, user.as_ref(), std::slice::from_ref(&fact))
                    .await;
                assert_eq!(may.unwrap(), [true], "{name}: {fact}");
                delivered += 1;
            }
        }
    }
    assert!(delivered > 20, "{delivered}");
}

const TO_ALL: &str =
    "distribution { share (s: Site) { p: Post [p->site: Site = s] } with everyone }";

pub(crate) async fn what_is_shared_with_everyone_may_be_loaded_by_all(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let names = ["post", "site", "comment", "published", "office", "alice"];
    for user in [None, Some("carol")] {
        let may = loadable(&cases, &*store, TO_ALL, user, &names).await;
        assert_eq!(
            may,
            ["post", "site", "alice"],
            "the author and the creator come along"
        );
        let may = loadable(&cases, &*store, TO_ALL, user, &["alice"]).await;
        assert!(may.is_empty());
    }
    assert_eq!(
        loadable(&cases, &*store, TO_ALL, Some("alice"), &["alice", "bob"]).await,
        ["alice"]
    );
}

pub(crate) async fn what_is_shared_with_some_may_be_loaded_by_them(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let policy = "distribution {
        share (c: Company) { o: Office [o->company: Company = c] }
        with (c: Company) { a: Administrator [a->company: Company = c
            !E { r: Administrator.Revoked [r->administrator: Administrator = a] }]
            u: Jinaga.User [u = a->user: Jinaga.User] } => u
        share (u: Jinaga.User) { p: Post [p->author: Jinaga.User = u] } with (u: Jinaga.User) { } => u
    }";
    let names = ["office", "branch", "post", "draft", "admin", "comment"];
    for (user, expected) in [
        (Some("bob"), &["office", "branch", "post"][..]),
        (Some("alice"), &["draft"]),
        (Some("carol"), &[]),
        (Some("dave"), &[]),
        (None, &[]),
    ] {
        let may = loadable(&cases, &*store, policy, user, &names).await;
        assert_eq!(may, expected, "{user:?}");
    }
}

pub(crate) async fn what_a_rule_leaves_out_may_not_be_loaded(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let published = "distribution { share (s: Site) { p: Post [p->site: Site = s
        E { x: Publish [x->post: Post = p] }] } with everyone }";
    let may = loadable(
        &cases,
        &*store,
        published,
        None,
        &["post", "draft", "published"],
    )
    .await;
    assert_eq!(may, ["post", "published"]);
    let unpublished = "distribution { share (c: Company) { o: Office [o->company: Company = c
        !E { x: Office.Closure [x->office: Office = o] }] } with everyone }";
    let may = loadable(&cases, &*store, unpublished, None, &["office"]).await;
    assert_eq!(may, ["office"]);
    // The closure proves that the branch is left out, so both are shared.
    let may = loadable(&cases, &*store, unpublished, None, &["branch", "closed"]).await;
    assert_eq!(may, ["branch", "closed"]);
}

pub(crate) async fn a_predecessor_that_is_not_there_does_not_matter(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let policy = "distribution { share (s: Site) { p: Post [p->site: Site = s]
        b: Blog [b = p->blog: Blog] n: Blog.Name [n->blog: Blog = b] } with everyone }";
    let posts = specification("(s: Site) { p: Post [p->site: Site = s] }");
    let decided = distribution(policy)
        .decide(&*store, &posts, &[cases.reference("site")], None)
        .await;
    assert_eq!(decided.unwrap().verdict, Verdict::Authorized);
    let may = loadable(&cases, &*store, policy, None, &["post", "draft", "comment"]).await;
    assert_eq!(may, ["post", "draft"]);
}

pub(crate) async fn ancestors_may_be_loaded_beside_what_brings_them(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let may = loadable(&cases, &*store, TO_ALL, None, &["bob", "post"]).await;
    assert_eq!(may, ["bob", "post"]);
    let may = loadable(&cases, &*store, TO_ALL, None, &["carol", "post"]).await;
    assert_eq!(may, ["post"]);
}

pub(crate) async fn what_is_not_stored_may_be_asked_for(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let may = loadable(&cases, &*store, TO_ALL, None, &["unknown", "office"]).await;
    assert_eq!(may, ["unknown"]);
}
