//! What is asked of the stores: slices, pages, concerns and readings, each on SQLite and on
//! PostgreSQL, by examples and by random specifications against a plain evaluator in memory.

mod bookmarks;
mod concerns;
mod costs;
mod database;
mod facts;
mod paged;
mod pages;
mod plain_evaluator;
mod queries;
mod random;
mod readings;
mod restored;
mod specifications;

wakeline_testkit::conformance! {
    crate::database::Database;
    pages:
        pages_of_any_size_are_all_tuples,
        spans_divide_what_came,
        both_ways_find_the_same,
        a_feed_without_its_given_is_empty_until_it_comes,
        a_given_that_comes_late_begins_its_feed_anew,
        an_unknown_type_or_role_finds_nothing,
        a_page_that_ends_the_span_is_the_last,
        a_fresh_page_has_what_was_saved_before,
        a_bookmark_of_another_store_begins_anew;
    concerns:
        the_newest_fact_of_a_tuple_concerns_its_givens,
        a_fact_above_says_which_given,
        a_fact_aside_concerns_only_who_is_watched,
        an_unrelated_given_is_left_open;
    readings:
        random_readings_are_as_plain_ones,
        a_result_has_the_shape_of_its_projection,
        more_than_a_chunk_comes_in_chunks,
        what_is_too_much_at_once_comes_in_smaller_chunks;
}
