//! Whether feeds are served.

use serde_json::json;
use wakeline_feed::{
    feeds,
    policy::distribution::{Answer, Code, Distribution, Verdict},
    store::{Concern, ConcernQuery, Store},
};

use crate::{
    case_facts::{CaseFacts, distribution, made, save, specification},
    database::Database,
};

const OFFICES: &str = "(c: Company) { o: Office [o->company: Company = c] }";
const TO_ADMINS: &str = "distribution { share (c: Company) { o: Office [o->company: Company = c] }
    with (c: Company) { a: Administrator [a->company: Company = c]
        u: Jinaga.User [u = a->user: Jinaga.User] } => u }";

pub(crate) async fn decisions_are_those_of_the_real_library(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
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
        let expected = &case["expected"];
        let ours = case.get("ours").unwrap_or(expected);
        assert_eq!(decided.verdict.as_str(), ours["verdict"], "{name}");
        assert_eq!(
            decided.code.map(Code::as_str),
            ours["code"].as_str(),
            "{name}"
        );
        if expected["reason"].is_string() && ours["reason"] != false {
            assert_eq!(
                decided.reason,
                expected["reason"].as_str().unwrap(),
                "{name}"
            );
        }
        let hashes: Vec<&str> = decided.feeds.iter().map(|feed| &*feed.hash).collect();
        if decided.verdict == Verdict::Reactive {
            assert!(!decided.feeds.is_empty(), "{name}");
            assert!(
                decided.feeds.iter().all(|feed| feed.owner == user),
                "{name}"
            );
            // Upstream has more where something must not exist: what proves that it does.
            if let Some(theirs) = expected["feeds"].as_array() {
                assert!(
                    hashes.iter().all(|hash| theirs.contains(&json!(hash))),
                    "{name}"
                );
            }
        } else if expected["verdict"] == decided.verdict.as_str() {
            assert_eq!(json!(hashes), expected["feeds"], "{name}");
        }
        is_answered_alike(
            &rules,
            &*store,
            &decided.feeds,
            user.as_ref(),
            decided.verdict,
            name,
        )
        .await;
    }
}

/// Each feed by itself is granted if all were; else at least one is denied.
async fn is_answered_alike(
    rules: &Distribution,
    store: &dyn Store,
    feeds: &[wakeline_feed::policy::distribution::FeedOffer],
    user: Option<&wakeline_feed::fact::Reference>,
    verdict: Verdict,
    name: &str,
) {
    let mut denied = 0;
    for feed in feeds {
        let answer = rules
            .answer(store, &feed.specification, &feed.given, user)
            .await
            .unwrap();
        denied += usize::from(answer != Answer::Granted);
    }
    assert_eq!(denied > 0, verdict != Verdict::Authorized, "{name}");
}

pub(crate) async fn a_feed_is_served_once_the_fact_that_admits_has_come(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let rules = distribution(TO_ADMINS);
    let given = [cases.reference("acme")];
    let carol = cases.reference("carol");
    let wanted = specification(OFFICES);
    let decided = rules
        .decide(&*store, &wanted, &given, Some(&carol))
        .await
        .unwrap();
    assert_eq!(decided.verdict, Verdict::Reactive);
    let feed = &decided.feeds[0];
    assert_eq!(
        feed.specification,
        feeds::of(&wanted, &given).unwrap()[0].specification
    );
    let answer = || rules.answer(&*store, &feed.specification, &feed.given, Some(&carol));
    assert!(matches!(
        answer().await.unwrap(),
        Answer::Denied {
            code: Code::PrincipalExcluded,
            ..
        }
    ));
    let predecessors = [("company", given[0].clone()), ("user", carol.clone())];
    save(&*store, vec![made("Administrator", &predecessors, "{}")]).await;
    assert_eq!(answer().await.unwrap(), Answer::Granted);
    let decided = rules
        .decide(&*store, &wanted, &given, Some(&carol))
        .await
        .unwrap();
    assert_eq!(decided.verdict, Verdict::Authorized);
}

pub(crate) async fn a_denied_feed_says_what_it_waits_for(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let rules = distribution(TO_ADMINS);
    let (given, carol) = ([cases.reference("acme")], cases.reference("carol"));
    let gates = rules.gates(&specification(OFFICES), &given);
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].given, given);
    // A new administrator is heard of, and so is the company that it is of.
    let company = store.find(given.to_vec()).await.unwrap()[0];
    let predecessors = [("company", given[0].clone()), ("user", carol)];
    let new = made("Administrator", &predecessors, "{}");
    let fact = save(&*store, vec![new]).await[0].1;
    let query = gates[0].query.clone();
    let concerned = store.concerns(ConcernQuery {
        variable: query.arrivals()[0],
        query,
        facts: vec![fact],
        watched: Vec::new(),
    });
    let given = vec![company];
    assert_eq!(concerned.await.unwrap(), [Concern { fact, given }]);
    let posts = specification("(s: Site) { p: Post [p->site: Site = s] }");
    assert_eq!(rules.gates(&posts, &[cases.reference("site")]), []);
}

pub(crate) async fn a_given_that_a_feed_does_not_use_can_be_any(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let share = "(c: Company, u: Jinaga.User) { o: Office [o->company: Company = c] }
        => { mine = { m: Manager [m->office: Office = o m->user: Jinaga.User = u] } }";
    let rules = distribution(&format!(
        "distribution {{ share {share} with (c: Company, u: Jinaga.User) {{ }} => u }}"
    ));
    let given = cases.references(&["acme", "carol"]);
    for (user, verdict) in [("carol", Verdict::Authorized), ("bob", Verdict::Denied)] {
        let user = cases.reference(user);
        let decided = rules
            .decide(&*store, &specification(share), &given, Some(&user))
            .await;
        assert_eq!(decided.unwrap().verdict, verdict);
    }
}

pub(crate) async fn a_user_who_is_a_given_can_have_conditions(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
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
pub(crate) async fn a_condition_on_a_given_that_a_feed_does_not_use_is_asked(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
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
    let shop = made("Shop", &[], "{}");
    let predecessors = [("shop", shop.reference.clone()), ("user", bob.clone())];
    let closed = made("Closed", &predecessors, "{}");
    assert!(!is_granted().await);
    save(&*store, vec![shop]).await;
    assert!(is_granted().await);
    save(&*store, vec![closed]).await;
    assert!(!is_granted().await);
}
