//! Facts that a user may load.

use std::sync::Arc;

use wakeline_feed::{
    bookmark::Bookmark,
    fact::Reference,
    paging::{find_givens, page_at},
    policy::distribution::Verdict,
    query::Query,
};

use crate::case_facts::{CaseStore, distribution, specification};

/// The facts, of those named, that a user may load under a policy.
async fn loadable<'a>(
    fixture: &CaseStore,
    policy: &str,
    user: Option<&str>,
    names: &[&'a str],
) -> Vec<&'a str> {
    let user = user.map(|user| fixture.cases.reference(user));
    let (rules, facts) = (distribution(policy), fixture.cases.references(names));
    let may = rules.may_load(&*fixture.store, user.as_ref(), &facts).await;
    let allowed = names.iter().zip(may.unwrap()).filter(|(_, may)| *may);
    allowed.map(|(name, _)| *name).collect()
}

pub(crate) async fn the_tuples_of_a_granted_feed_may_be_loaded(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let mut delivered = 0;
    for case in cases.distribution() {
        let decision = case.decide(&*store).await;
        if decision.verdict != Verdict::Authorized {
            continue;
        }
        for feed in decision.feeds {
            let query = Arc::new(Query::of_specification(&feed.specification).unwrap());
            let givens = find_givens(&*store, &query, &feed.given).await;
            let givens = givens.unwrap().unwrap();
            let (start, to) = (Bookmark::Start, store.horizon().await.unwrap().settled);
            let page = page_at(&*store, &query, &givens, &start, to, 1_000);
            let facts: Vec<Reference> = page.await.unwrap().tuples.concat();
            // One by one: the ancestors of a fact would be allowed beside it.
            for fact in facts {
                let user = case.user.as_ref();
                let may = case
                    .rules
                    .may_load(&*store, user, std::slice::from_ref(&fact));
                assert_eq!(may.await.unwrap(), [true], "{}: {fact}", case.name);
                delivered += 1;
            }
        }
    }
    assert!(delivered > 20, "{delivered}");
}

const TO_ALL: &str =
    "distribution { share (s: Site) { p: Post [p->site: Site = s] } with everyone }";

pub(crate) async fn facts_shared_with_everyone_may_be_loaded_by_all(fixture: CaseStore) {
    let names = ["post", "site", "comment", "published", "office", "alice"];
    for user in [None, Some("carol")] {
        let may = loadable(&fixture, TO_ALL, user, &names).await;
        // The author and the creator are ancestors.
        assert_eq!(may, ["post", "site", "alice"]);
        let may = loadable(&fixture, TO_ALL, user, &["alice"]).await;
        assert!(may.is_empty());
    }
    let may = loadable(&fixture, TO_ALL, Some("alice"), &["alice", "bob"]).await;
    assert_eq!(may, ["alice"]);
}

pub(crate) async fn facts_shared_with_some_may_be_loaded_by_them(fixture: CaseStore) {
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
        let may = loadable(&fixture, policy, user, &names).await;
        assert_eq!(may, expected, "{user:?}");
    }
}

pub(crate) async fn facts_that_a_rule_excludes_may_not_be_loaded(fixture: CaseStore) {
    let published = "distribution { share (s: Site) { p: Post [p->site: Site = s
        E { x: Publish [x->post: Post = p] }] } with everyone }";
    let names = ["post", "draft", "published"];
    let may = loadable(&fixture, published, None, &names).await;
    assert_eq!(may, ["post", "published"]);
    let unpublished = "distribution { share (c: Company) { o: Office [o->company: Company = c
        !E { x: Office.Closure [x->office: Office = o] }] } with everyone }";
    let may = loadable(&fixture, unpublished, None, &["office"]).await;
    assert_eq!(may, ["office"]);
    // The closure proves that the branch is excluded, so both are shared.
    let may = loadable(&fixture, unpublished, None, &["branch", "closed"]).await;
    assert_eq!(may, ["branch", "closed"]);
}

pub(crate) async fn a_missing_predecessor_does_not_matter(fixture: CaseStore) {
    let policy = "distribution { share (s: Site) { p: Post [p->site: Site = s]
        b: Blog [b = p->blog: Blog] n: Blog.Name [n->blog: Blog = b] } with everyone }";
    let posts = specification("(s: Site) { p: Post [p->site: Site = s] }");
    let (rules, given) = (distribution(policy), [fixture.cases.reference("site")]);
    let decision = rules.decide(&*fixture.store, &posts, &given, None).await;
    assert_eq!(decision.unwrap().verdict, Verdict::Authorized);
    let may = loadable(&fixture, policy, None, &["post", "draft", "comment"]).await;
    assert_eq!(may, ["post", "draft"]);
}

pub(crate) async fn ancestors_may_be_loaded_beside_their_descendants(fixture: CaseStore) {
    let may = loadable(&fixture, TO_ALL, None, &["bob", "post"]).await;
    assert_eq!(may, ["bob", "post"]);
    let may = loadable(&fixture, TO_ALL, None, &["carol", "post"]).await;
    assert_eq!(may, ["post"]);
}

pub(crate) async fn a_fact_that_is_not_stored_may_be_loaded(fixture: CaseStore) {
    let may = loadable(&fixture, TO_ALL, None, &["unknown", "office"]).await;
    assert_eq!(may, ["unknown"]);
}
