//! Narrowed specifications.

use wakeline_feed::{policy::distribution::intersection::intersect, policy_file::PolicyFile};

use crate::case_facts::{CaseFacts, specification};

#[test]
fn a_narrowed_specification_is_as_the_real_library_writes_it() {
    let cases = CaseFacts::read();
    let mut compared = 0;
    for case in cases.cases["distribution"].as_array().unwrap() {
        let Some(narrowed) = case["expected"]["narrowed"].as_array() else {
            continue;
        };
        let rules = PolicyFile::parse(case["policy"].as_str().unwrap())
            .unwrap()
            .distribution;
        let wanted = specification(case["specification"].as_str().unwrap());
        let users = rules.iter().filter_map(|rule| rule.with.as_ref());
        let ours: Vec<String> = users
            .filter_map(|users| Some(intersect(&wanted, users)?.describe()))
            .collect();
        let theirs: Vec<&str> = narrowed.iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(ours, theirs, "{}", case["name"]);
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn a_name_used_by_both_specifications_is_renamed() {
    let wanted = specification("(c: Company) { dist_a: Office [dist_a->company: Company = c] }");
    let users = specification(
        "(x: Company) { a: Administrator [a->company: Company = x] c: Jinaga.User [c = a->user: Jinaga.User] } => c",
    );
    let narrowed = intersect(&wanted, &users).unwrap();
    insta::assert_snapshot!(narrowed.describe(), @r"
    (c: Company, distributionUser: Jinaga.User) {
        dist_a1: Administrator [
            dist_a1->company: Company = c
        ]
        dist_c: Jinaga.User [
            dist_c = dist_a1->user: Jinaga.User
            dist_c = distributionUser
        ]
        dist_a: Office [
            dist_a->company: Company = c
        ]
    }
    ");
}

#[test]
fn givens_of_other_types_are_not_narrowed() {
    let wanted = specification("(s: Site) { p: Post [p->site: Site = s] }");
    let users = specification("(c: Company) { u: Jinaga.User [u = c->creator: Jinaga.User] } => u");
    assert_eq!(intersect(&wanted, &users), None);
}
