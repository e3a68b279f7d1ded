//! Streams, from their sessions to the bytes on the wire: the seed's test plan by its names, and
//! what the door promises beyond it, on both databases. The cases are listed here once, so that a
//! backend cannot forget one.

mod blog;
#[path = "../shared/build.rs"]
mod build;
mod client;
mod counting_store;
#[path = "../shared/database.rs"]
mod database;
#[path = "../shared/facts.rs"]
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
#[path = "../shared/transactions.rs"]
mod transactions;

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
        a_feed_goes_live_when_its_unresolved_given_is_stored,
        an_unresolved_given_may_be_stored_while_streams_open,
        a_given_stored_later_has_older_tuples,
        a_users_fact_stored_later_opens_the_feed,
        read_tuples_are_not_sent_again;
    clients:
        multiple_concurrent_clients,
        twenty_clients_get_the_facts_of_four_writers;
    sharing:
        streams_of_a_feed_share_its_pages,
        live_pages_are_read_once,
        a_save_wakes_only_the_streams_it_can_concern,
        idle_streams_cost_no_statements,
        a_follower_ends_with_the_last_stream;
    follower:
        a_full_node_follows_the_log,
        a_follower_goes_on_after_a_panic,
        a_failed_lookup_stops_no_stream,
        many_predecessors_do_not_multiply,
        a_lost_wake_is_made_up_for_by_the_fallback;
    delays:
        a_live_page_is_not_synced_at_once,
        sync_comes_after_its_delay,
        sync_comes_long_after_the_last_of_many_pages,
        a_long_backfill_lets_other_streams_go_first;
    endings:
        a_slow_reader_is_paused_and_then_ended,
        a_full_waitlist_ends_a_stream_that_can_resume,
        a_silent_stream_sends_heartbeats,
        a_silent_event_stream_sends_comments,
        a_drain_answers_a_held_page,
        an_old_stream_ends_properly,
        a_drain_ends_all_streams_properly;
    forms:
        event_streams_resume_after_the_last_event,
        a_page_is_held_until_a_fact_is_saved,
        a_page_is_held_no_longer_than_the_client_prefers,
        foreign_bookmarks_mean_the_beginning,
        a_bad_bookmark_is_refused,
        a_feed_at_the_limit_of_facts_is_served,
        a_feed_above_the_limit_of_facts_is_refused,
        an_unknown_feed_is_not_found,
        a_feed_is_known_after_a_restart;
    hangups:
        a_save_whose_caller_hung_up_wakes_streams,
        a_first_login_whose_caller_hung_up_wakes_streams;
    large:
        a_large_graph_with_a_deep_chain_is_loaded;
    limits:
        a_refusal_names_the_exceeded_limit;
    orders:
        successors_may_be_sent_before_their_predecessors;
    purges:
        deleted_facts_are_purged_after_the_save,
        a_specification_must_exclude_purged_facts,
        a_starting_server_purges_facts_deleted_before;
    reads:
        a_fact_that_may_not_be_loaded_is_not_read_by_its_hash,
        facts_that_no_rule_delivers_are_not_read,
        a_given_without_successors_has_no_results,
        facts_hidden_meanwhile_are_left_out_of_a_load;
    restored:
        successors_of_a_restored_fact_come_live,
        successors_of_a_fact_deleted_again_do_not_come,
        a_rule_shares_the_successors_of_a_restored_fact,
        rules_for_upstreams_feeds_are_enough;
    rules:
        a_denied_feed_goes_live_when_the_user_is_admitted,
        a_denied_feed_announces_no_new_facts,
        a_denied_feed_sends_its_denial_as_an_event,
        a_denied_page_is_empty,
        a_revoked_feed_is_denied_at_the_next_post,
        each_fact_that_admits_lets_a_denied_feed_go_live;
}
