//! Whether feeds are served.

use serde_json::json;
use wakeline_feed::{
    feeds,
    policy::distribution::{Answer, Code, Verdict},
    store::{Concern, ConcernQuery},
};

use crate::{
    case_facts::{CaseStore, distribution, made, specification},
    saving::save,
};

const OFFICES: &str = "(c: Company) { o: Office [o->company: Company = c] }";
const TO_ADMINS: &str = "distribution { share (c: Company) { o: Office [o->company: Company = c] }
    with (c: Company) { a: Administrator [a->company: Company = c]
        u: Jinaga.User [u = a->user: Jinaga.User] } => u }";

pub(crate) async fn decisions_are_those_of_the_real_library(
    CaseStore { cases, store, .. }: CaseStore,
) {
    for case in cases.distribution() {
        let (name, user) = (&case.name, &case.user);
        let decision = case.decide(&*store).await;
        let expected = &case.value["expected"];
        let ours = case.value.get("ours").unwrap_or(expected);
        assert_eq!(decision.verdict.as_str(), ours["verdict"], "{name}");
        let code = decision.code.map(Code::as_str);
        assert_eq!(code, ours["code"].as_str(), "{name}");
        if expected["reason"].is_string() && ours["reason"] != false {
            assert_eq!(decision.reason, expected["reason"], "{name}");
        }
        let feeds = &decision.feeds;
        let hashes: Vec<&str> = feeds.iter().map(|feed| &*feed.hash).collect();
        if decision.verdict == Verdict::Reactive {
            assert!(!feeds.is_empty(), "{name}");
            assert!(feeds.iter().all(|feed| feed.owner == *user), "{name}");
            // Upstream has more where something must not exist: what proves that it does.
            if let Some(theirs) = expected["feeds"].as_array() {
                let are_theirs = hashes.iter().all(|hash| theirs.contains(&json!(hash)));
                assert!(are_theirs, "{name}");
            }
        } else if expected["verdict"] == decision.verdict.as_str() {
            assert_eq!(json!(hashes), expected["feeds"], "{name}");
        }
        // Each feed by itself is granted if all were; else at least one is denied.
        let mut denied = 0;
        for feed in feeds {
            let (rules, user) = (&case.rules, user.as_ref());
            let answer = rules.answer(&*store, &feed.specification, &feed.given, user);
            denied += usize::from(answer.await.unwrap() != Answer::Granted);
        }
        let is_authorized = decision.verdict == Verdict::Authorized;
        assert_eq!(denied == 0, is_authorized, "{name}");
    }
}

pub(crate) async fn a_feed_is_served_once_its_user_is_admitted(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let rules = distribution(TO_ADMINS);
    let given = [cases.reference("acme")];
    let carol = cases.reference("carol");
    let wanted = specification(OFFICES);
    let decide = || rules.decide(&*store, &wanted, &given, Some(&carol));
    let decision = decide().await.unwrap();
    assert_eq!(decision.verdict, Verdict::Reactive);
    let feed = &decision.feeds[0];
    let whole = &feeds::of(&wanted, &given).unwrap()[0];
    assert_eq!(feed.specification, whole.specification);
    let answer = || rules.answer(&*store, &feed.specification, &feed.given, Some(&carol));
    let Answer::Denied { code, .. } = answer().await.unwrap() else {
        panic!("it is granted");
    };
    assert_eq!(code, Code::PrincipalExcluded);
    let predecessors = [("company", given[0].clone()), ("user", carol.clone())];
    save(&*store, &[made("Administrator", &predecessors)]).await;
    assert_eq!(answer().await.unwrap(), Answer::Granted);
    assert_eq!(decide().await.unwrap().verdict, Verdict::Authorized);
}

pub(crate) async fn a_denied_feed_has_the_gates_it_waits_for(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let rules = distribution(TO_ADMINS);
    let (given, carol) = ([cases.reference("acme")], cases.reference("carol"));
    let gates = rules.gates(&specification(OFFICES), &given);
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].given, given);
    // A new administrator concerns the company that it is of.
    let company = store.find(given.to_vec()).await.unwrap()[0];
    let predecessors = [("company", given[0].clone()), ("user", carol)];
    let new = made("Administrator", &predecessors);
    let fact = save(&*store, &[new]).await[0];
    let query = gates[0].query.clone();
    let concerns = store.concerns(ConcernQuery {
        variable: query.arrivals()[0],
        query,
        facts: vec![fact],
        watched: Vec::new(),
    });
    let given = vec![company];
    assert_eq!(concerns.await.unwrap(), [Concern { fact, given }]);
    let posts = specification("(s: Site) { p: Post [p->site: Site = s] }");
    assert_eq!(rules.gates(&posts, &[cases.reference("site")]), []);
}

pub(crate) async fn a_given_that_a_feed_does_not_use_can_be_any_fact(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let share = "(c: Company, u: Jinaga.User) { o: Office [o->company: Company = c] }
        => { mine = { m: Manager [m->office: Office = o m->user: Jinaga.User = u] } }";
    let rules = distribution(&format!(
        "distribution {{ share {share} with (c: Company, u: Jinaga.User) {{ }} => u }}"
    ));
    let given = cases.references(&["acme", "carol"]);
    for (user, verdict) in [("carol", Verdict::Authorized), ("bob", Verdict::Denied)] {
        let user = cases.reference(user);
        let wanted = specification(share);
        let decision = rules.decide(&*store, &wanted, &given, Some(&user)).await;
        assert_eq!(decision.unwrap().verdict, verdict);
    }
}

pub(crate) async fn a_user_who_is_a_given_can_have_conditions(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let share = "(c: Company, u: Jinaga.User) { a: Administrator [a->company: Company = c a->user: Jinaga.User = u] }";
    let with = "(c: Company, u: Jinaga.User) { a: Administrator [a->company: Company = c a->user: Jinaga.User = u
        !E { r: Administrator.Revoked [r->administrator: Administrator = a] }] } => u";
    let rules = distribution(&format!("distribution {{ share {share} with {with} }}"));
    let admissions = [
        ("bob", "bob", true),
        ("bob", "dave", false),
        ("dave", "dave", false),
        ("carol", "carol", false),
    ];
    for (given, user, is_admitted) in admissions {
        let given = cases.references(&["acme", given]);
        let feed = &feeds::of(&specification(share), &given).unwrap()[0];
        let user = cases.reference(user);
        let answer = rules
            .answer(&*store, &feed.specification, &feed.given, Some(&user))
            .await;
        assert_eq!(answer.unwrap() == Answer::Granted, is_admitted, "{user}");
    }
}

/// A given that the feed does not have, and that only a condition speaks of.
pub(crate) async fn a_condition_on_a_given_that_a_feed_does_not_use_is_checked(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let share = "(c: Company, s: Shop) { o: Office [o->company: Company = c] }";
    let with = "(c: Company, s: Shop) { a: Administrator [a->company: Company = c]
        u: Jinaga.User [u = a->user: Jinaga.User
            !E { x: Closed [x->user: Jinaga.User = u x->shop: Shop = s] }] } => u";
    let rules = distribution(&format!("distribution {{ share {share} with {with} }}"));
    let (given, bob) = ([cases.reference("acme")], cases.reference("bob"));
    let feed = &feeds::of(&specification(OFFICES), &given).unwrap()[0];
    let is_granted = async || {
        let answer = rules.answer(&*store, &feed.specification, &feed.given, Some(&bob));
        answer.await.unwrap() == Answer::Granted
    };
    let shop = made("Shop", &[]);
    let predecessors = [("shop", shop.reference.clone()), ("user", bob.clone())];
    let closed = made("Closed", &predecessors);
    assert!(!is_granted().await);
    save(&*store, &[shop]).await;
    assert!(is_granted().await);
    save(&*store, &[closed]).await;
    assert!(!is_granted().await);
}
