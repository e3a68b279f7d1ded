//! Streams, from their sessions to the bytes on the wire: the seed's test plan by its names, and
//! what the door promises beyond it, on both databases. The cases are listed here once, so that a
//! backend cannot forget one.

mod client;
mod counting_store;
mod database;
mod facts;
mod node;
mod stream_fixture;

mod backfill;
mod clients;
mod delays;
mod endings;
mod follower;
mod forms;
mod hangups;
mod large;
mod late;
mod limits;
mod live;
mod orders;
mod outage;
mod plan;
mod purges;
mod reads;
mod restored;
mod rules;
mod sharing;
mod telemetry;

wakeline_testkit::conformance! {
    crate::database::Database;
    plan:
        backfill_to_exhaustion,
        waitlist_triggers_continuation,
        no_concurrent_cycles,
        deduplication,
        tuple_completeness,
        sync_emission,
        bookmark_monotonicity,
        listener_filtering,
        lifecycle_cleanup,
        limits;
    telemetry:
        telemetry_validation;
    backfill:
        session_wiring,
        complete_historical_stream,
        race_during_backfill,
        disconnect_handling,
        timeout_long_feeds;
    live:
        post_sync_updates,
        waitlist_stress,
        an_unresolved_given_that_comes_later,
        an_unresolved_given_that_comes_while_streams_open,
        a_given_that_comes_later_brings_what_is_older,
        a_user_who_comes_later_is_heard_of,
        what_was_read_is_not_sent_again;
    clients:
        multiple_concurrent_clients,
        twenty_clients_have_what_four_writers_saved;
    sharing:
        streams_of_a_feed_share_its_pages,
        live_pages_are_asked_for_once,
        a_save_wakes_only_whom_it_can_concern,
        nothing_is_asked_while_nothing_happens,
        a_follower_ends_with_the_last_stream;
    follower:
        a_full_node_hears_what_is_saved,
        a_panic_is_survived,
        a_question_that_is_refused_stops_nobody,
        many_predecessors_are_no_product,
        a_lost_hint_is_found_again;
    delays:
        a_live_page_is_not_synced_at_once,
        sync_comes_after_its_delay,
        sync_comes_long_after_the_last_of_many_pages,
        a_long_backfill_lets_others_go_first;
    endings:
        a_slow_reader_is_paused_and_then_ended,
        more_than_may_wait_ends_it_and_it_resumes,
        a_silent_stream_shows_that_it_lives,
        a_silent_stream_of_events_shows_that_it_lives,
        a_drain_ends_a_page_that_is_waited_for,
        an_old_stream_ends_properly,
        a_drain_ends_all_properly;
    forms:
        events_go_on_where_they_were,
        a_page_is_waited_for,
        a_page_is_not_waited_for_longer_than_asked,
        upstreams_bookmarks_are_the_beginning,
        a_bookmark_of_another_store_is_the_beginning,
        a_bad_bookmark_is_refused,
        a_feed_of_as_many_facts_as_may_be_is_served,
        a_feed_of_more_facts_is_refused,
        an_unknown_feed_is_not_found,
        a_feed_is_known_after_a_restart;
    hangups:
        a_save_whose_caller_has_gone_is_heard_of,
        a_first_login_whose_caller_has_gone_is_heard_of;
    large:
        a_large_graph_with_a_deep_chain_comes_back;
    limits:
        what_is_too_large_is_refused_by_the_name_of_its_limit;
    orders:
        successors_may_be_sent_before_their_predecessors;
    purges:
        what_is_deleted_is_purged_after_the_save,
        a_specification_must_leave_out_what_is_purged,
        a_server_that_starts_purges_what_is_deleted_already;
    reads:
        what_may_not_be_loaded_is_not_read_by_its_hash,
        what_no_rule_would_deliver_is_not_read,
        a_given_that_has_nothing_yet_is_read_from,
        what_is_hidden_meanwhile_is_left_out_of_a_load;
    restored:
        what_follows_a_restored_fact_comes_live,
        what_follows_a_fact_that_was_deleted_again_does_not,
        a_rule_shares_what_follows_a_restored_fact,
        rules_for_upstreams_feeds_are_enough;
    rules:
        a_denied_feed_says_so_and_goes_live,
        a_denied_feed_stays_silent_about_what_comes,
        a_denied_feed_says_so_in_events_too,
        a_denied_page_is_empty,
        a_feed_that_is_taken_away_is_denied_at_once,
        whatever_admits_lets_a_denied_feed_go_live;
}
