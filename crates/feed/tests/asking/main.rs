//! The stores' queries: deltas, pages, concerns and readings, each on SQLite and on PostgreSQL, by
//! examples and by random specifications against a plain evaluator in memory.

mod bookmarks;
#[path = "../shared/build.rs"]
mod build;
mod concerns;
#[path = "../shared/database.rs"]
mod database;
#[path = "../shared/facts.rs"]
mod facts;
mod paged;
mod pages;
mod plain_evaluator;
mod queries;
mod random;
mod readings;
mod restored;
#[path = "../shared/saving.rs"]
mod saving;
mod specifications;

wakeline_testkit::conformance! {
    crate::database::Database;
    pages:
        pages_of_any_size_have_all_tuples,
        consecutive_spans_have_all_tuples,
        both_directions_find_the_same_tuples,
        a_feed_is_empty_until_its_given_is_stored,
        a_given_stored_late_starts_its_feed_again,
        an_unknown_type_or_role_finds_nothing,
        a_page_that_ends_the_span_is_the_last,
        a_fresh_page_has_the_facts_saved_before,
        a_bookmark_of_another_store_means_the_beginning;
    concerns:
        the_newest_fact_of_a_tuple_concerns_its_givens,
        a_new_fact_concerns_the_given_above_it,
        a_fact_beside_its_givens_concerns_the_watched_ones_only,
        an_unrelated_given_is_left_open;
    readings:
        random_readings_are_those_of_the_plain_evaluator,
        a_result_has_the_shape_of_its_projection,
        many_results_come_in_chunks,
        large_results_come_in_smaller_chunks;
}
