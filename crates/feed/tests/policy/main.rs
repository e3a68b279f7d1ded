//! Policies and logins, on SQLite and on PostgreSQL. The decisions of the real library are in
//! `vectors/policies.json`.

mod authorization;
#[path = "../shared/build.rs"]
mod build;
mod case_facts;
#[path = "../shared/database.rs"]
mod database;
mod distribution;
mod files;
mod intersection;
mod loading;
mod login;
mod purging;
#[path = "../shared/saving.rs"]
mod saving;
mod users;

wakeline_testkit::conformance! {
    crate::case_facts::CaseStore;
    distribution:
        decisions_are_those_of_the_real_library,
        a_feed_is_served_once_its_user_is_admitted,
        a_denied_feed_has_the_gates_it_waits_for,
        a_given_that_a_feed_does_not_use_can_be_any_fact,
        a_user_who_is_a_given_can_have_conditions,
        a_condition_on_a_given_that_a_feed_does_not_use_is_checked;
    loading:
        the_tuples_of_a_granted_feed_may_be_loaded,
        facts_shared_with_everyone_may_be_loaded_by_all,
        facts_shared_with_some_may_be_loaded_by_them,
        facts_that_a_rule_excludes_may_not_be_loaded,
        a_missing_predecessor_does_not_matter,
        ancestors_may_be_loaded_beside_their_descendants,
        a_fact_that_is_not_stored_may_be_loaded;
    authorization:
        verdicts_are_those_of_the_real_library,
        an_unknown_predecessor_is_named,
        an_empty_save_is_accepted,
        many_facts_need_few_statements;
    purging:
        a_condition_purges_when_its_fact_is_saved,
        a_purged_fact_can_be_saved_again,
        a_new_condition_purges_older_facts,
        another_root_is_left_alone,
        successors_of_purged_facts_are_purged;
    users:
        a_user_has_one_key_on_all_nodes,
        a_user_is_a_stored_fact;
}
