//! The conformance suite of the store: every case runs on SQLite and on PostgreSQL, in three
//! layers: examples, races of two nodes, and random sequences against a model.

mod database;
mod definitions;
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

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    saving:
        a_fact_is_as_it_was_saved,
        a_known_fact_is_left_alone,
        what_is_sent_twice_is_saved_once,
        nothing_is_nothing,
        only_what_was_not_known_is_new,
        a_predecessor_is_before_its_successors,
        without_a_predecessor_nothing_is_saved,
        a_predecessor_sent_after_its_successor_is_missing,
        the_first_that_is_missing_is_named,
        the_type_is_part_of_what_is_looked_for,
        one_that_is_refused_fails_alone,
        who_builds_on_one_that_is_refused_is_refused,
        saves_of_one_moment_may_share_facts,
        another_node_knows_what_was_saved;
    signing:
        a_signature_is_kept,
        a_known_fact_gets_new_signatures,
        keys_are_kept_once;
    reading:
        what_is_not_stored_is_not_found,
        facts_come_in_the_order_asked_for,
        a_closure_has_all_ancestors_once,
        it_is_known_when_a_fact_was_learned;
    following:
        the_log_has_every_fact_in_order,
        it_is_read_in_pages,
        a_purged_fact_is_skipped,
        a_refused_save_is_not_in_it;
    large:
        a_graph_of_many_facts_is_one_save,
        a_long_chain_has_a_closure,
        many_paths_are_walked_once;
    definitions:
        it_is_as_it_was_defined,
        what_was_defined_first_stays,
        what_is_not_used_is_forgotten,
        what_is_asked_for_is_kept,
        what_is_defined_again_is_kept,
        reading_a_definition_writes_nothing,
        asking_writes_at_most_once_a_day;
    keys:
        whoever_comes_first_decides,
        principals_have_keys_of_their_own;
    races:
        a_fact_saved_by_many_is_new_to_one,
        graphs_that_overlap_are_saved_once,
        a_follower_sees_every_fact_once,
        of_many_keys_one_is_kept;
    random:
        random_sequences_follow_the_model;
}
