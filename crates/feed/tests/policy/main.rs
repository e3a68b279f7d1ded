//! Policies and logins. What asks a database runs on SQLite and on PostgreSQL; the decisions of the
//! real library are in `vectors/policies.json`.

mod authorization;
mod case_facts;
mod database;
mod distribution;
mod files;
mod intersection;
mod loading;
mod login;
mod purging;
mod users;

wakeline_testkit::conformance! {
    crate::database::Database;
    distribution:
        decisions_are_those_of_the_real_library,
        a_feed_is_served_once_the_fact_that_admits_has_come,
        a_denied_feed_says_what_it_waits_for,
        a_given_that_a_feed_does_not_use_can_be_any,
        a_user_who_is_a_given_can_have_conditions,
        a_condition_on_a_given_that_a_feed_does_not_use_is_asked;
    loading:
        what_a_granted_feed_delivers_may_be_loaded,
        what_is_shared_with_everyone_may_be_loaded_by_all,
        what_is_shared_with_some_may_be_loaded_by_them,
        what_a_rule_leaves_out_may_not_be_loaded,
        a_predecessor_that_is_not_there_does_not_matter,
        ancestors_may_be_loaded_beside_what_brings_them,
        what_is_not_stored_may_be_asked_for;
    authorization:
        verdicts_are_those_of_the_real_library,
        a_predecessor_that_nobody_knows_is_named,
        nothing_is_nothing,
        many_facts_are_few_questions;
    purging:
        what_a_condition_says_is_forgotten_when_it_comes,
        what_is_forgotten_can_come_again,
        a_condition_that_is_newer_than_the_facts_is_caught_up,
        another_root_is_left_alone,
        what_is_saved_onto_the_forgotten_is_forgotten;
    users:
        a_user_has_one_key_on_all_nodes,
        a_user_is_a_stored_fact;
}
