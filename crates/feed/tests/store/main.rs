//! The conformance suite of the store: every case runs on SQLite and on PostgreSQL, in three
//! layers: examples, races of two nodes, and random sequences against a model.

#[path = "../shared/build.rs"]
mod build;
#[path = "../shared/database.rs"]
mod database;
mod definitions;
#[path = "../shared/facts.rs"]
mod facts;
mod fixture;
mod following;
mod horizon;
mod keys;
mod large;
mod model;
mod plans;
mod purging;
mod races;
mod random;
mod reading;
mod saving;
mod signing;
#[path = "../shared/transactions.rs"]
mod transactions;

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    saving:
        a_fact_is_read_as_it_was_saved,
        a_stored_fact_is_left_alone,
        a_fact_sent_twice_is_saved_once,
        an_empty_save_stores_nothing,
        only_facts_that_were_not_stored_are_new,
        a_predecessor_is_before_its_successors,
        without_a_predecessor_nothing_is_saved,
        a_predecessor_sent_after_its_successor_is_missing,
        the_first_missing_predecessor_is_named,
        facts_are_found_by_hash_and_type,
        a_refused_save_fails_alone,
        successors_of_a_refused_save_are_refused,
        concurrent_saves_may_share_facts,
        another_node_finds_the_saved_facts;
    signing:
        a_signature_is_stored,
        a_stored_fact_gets_new_signatures,
        keys_are_stored_once;
    reading:
        a_fact_that_is_not_stored_is_not_found,
        facts_are_read_in_the_order_of_the_request,
        a_closure_has_all_ancestors_once,
        a_fact_has_the_time_of_its_save;
    following:
        the_log_has_every_fact_in_order,
        the_log_is_read_in_pages,
        the_log_skips_a_purged_fact,
        a_refused_save_is_not_in_the_log;
    large:
        a_graph_of_many_facts_is_one_save,
        a_long_chain_has_a_closure,
        many_paths_are_walked_once;
    definitions:
        a_definition_is_read_as_it_was_stored,
        the_first_definition_of_a_hash_stays,
        unused_definitions_are_forgotten,
        refreshed_definitions_are_kept,
        definitions_stored_again_are_kept,
        reading_a_definition_writes_nothing,
        a_use_is_written_at_most_once_a_day;
    keys:
        the_first_key_of_a_principal_stays,
        principals_have_keys_of_their_own;
    races:
        a_fact_saved_by_many_is_new_to_one,
        graphs_that_overlap_are_saved_once,
        a_follower_reads_every_fact_once,
        one_of_many_concurrent_keys_is_kept;
    random:
        random_sequences_follow_the_model;
}
