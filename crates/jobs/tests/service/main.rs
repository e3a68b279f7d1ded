//! The door in one process: its routes, its sockets and its waiters on both databases. The cases
//! are listed here once, so that a backend cannot forget one.

mod answers;
mod claims;
mod database;
mod dispatching;
mod gated_store;
mod held_claims;
mod hung_up;
mod internal;
mod internal_jobs;
mod large;
mod lost_hints;
mod names;
mod node;
mod places;
#[path = "../socket/poller.rs"]
#[allow(
    dead_code,
    reason = "another suite's client, of which this one needs a part"
)]
mod poller;
mod provider;
mod reads;
mod sharing;
mod tasks;
mod uploads;

wakeline_testkit::conformance! {
    reads:
        cache_hit,
        cache_miss_with_a_fast_provider,
        cache_miss_with_a_slow_provider,
        timeout,
        race_condition,
        race_condition_with_results_outside_of_the_store,
        abort,
        inflight_dedup,
        prefer_wait,
        a_request_whose_lock_has_an_unknown_outcome_is_sent,
        requests_of_a_batch_that_timed_out_are_not_sent_again;
    sharing:
        a_hundred_readers_share_one_provider_request,
        a_hundred_readers_of_two_nodes_share_one_provider_request,
        a_read_reaches_a_provider_on_another_node,
        a_reader_is_answered_when_another_one_hangs_up,
        a_hang_up_leaves_no_reader_on_another_node_without_a_request,
        a_hundred_readers_that_hang_up_leave_no_waiter_and_no_lock,
        a_provider_that_joins_late_gets_the_open_requests,
        a_provider_that_registers_again_gets_the_open_requests_again,
        a_provider_that_was_removed_and_registered_again_answers_the_waiting_reader;
    answers:
        an_uploaded_problem_answers_the_waiting_readers,
        a_failed_read_reported_in_the_chat_answers_the_waiting_reader,
        an_answer_with_a_known_etag_is_304,
        an_answer_is_kept_as_long_as_its_cache_control_says,
        a_provider_sets_how_long_its_answers_are_kept,
        a_parameter_that_does_not_fit_is_named,
        a_schema_is_compiled_once_for_all_reads_of_a_registration;
    places:
        a_problem_in_the_files_backend_keeps_its_status,
        an_answer_with_a_known_etag_is_304_from_the_files_backend,
        expired_answers_do_not_pile_up;
    large:
        a_large_answer_is_served_with_its_length_and_etag,
        a_large_answer_replaced_during_a_read_is_read_whole,
        a_read_of_a_large_answer_that_is_lost_breaks_off,
        a_large_problem_keeps_its_status;
    uploads:
        an_upload_over_max_result_is_refused,
        an_upload_larger_than_the_files_directory_is_refused,
        an_upload_that_stalls_gets_408,
        uploads_beyond_the_upload_memory_wait_for_it;
    names:
        a_name_with_a_nul_is_not_found,
        a_text_with_a_nul_is_refused,
        names_fit_into_an_index;
    internal:
        the_server_answers_reads_of_its_internal_providers,
        a_failed_internal_read_is_answered_with_its_reason,
        superusers_only,
        internal_providers_are_listed_for_callers_that_may_read_them,
        internal_providers_cannot_be_registered_or_removed,
        an_internal_provider_that_this_server_does_not_run_is_unavailable;
    internal_jobs:
        the_server_works_on_its_own_jobs,
        an_internal_task_over_its_time_fails,
        an_internal_task_cancelled_before_it_runs_is_skipped,
        a_failed_claim_of_an_internal_task_is_repeated,
        a_new_schema_of_an_internal_job_replaces_the_old_one;
    tasks:
        a_submit_wakes_a_claim,
        a_submit_on_another_node_wakes_a_claim,
        one_submit_wakes_one_claim,
        a_task_of_a_lost_worker_wakes_a_held_claim,
        a_held_claim_waits_for_a_job_that_its_worker_registers_later,
        a_held_claim_of_a_removed_worker_gets_404,
        the_end_of_a_task_wakes_the_callers_that_wait_for_it,
        a_wait_for_a_task_ends_when_its_worker_is_removed;
    claims:
        a_task_claimed_for_a_worker_that_hung_up_is_released,
        a_released_task_wakes_a_held_claim,
        a_released_task_wakes_a_held_claim_on_another_node,
        a_hang_up_during_the_claim_releases_the_task,
        a_release_that_fails_is_repeated_when_the_store_is_back,
        a_claim_that_finds_a_task_of_another_job_passes_its_wake_on,
        an_update_with_the_id_of_a_lost_worker_is_refused;
    held_claims:
        a_held_claim_is_a_heartbeat_of_its_worker,
        a_held_claim_of_a_lost_worker_ends,
        a_claim_without_a_wait_is_no_heartbeat,
        heartbeats_are_sent_again_after_an_outage;
    hung_up:
        a_submit_wakes_a_claim,
        an_update_wakes_a_caller_that_waits_for_the_task,
        an_upload_wakes_a_reader,
        a_removed_worker_ends_its_claims,
        shutdown_waits_until_an_undelivered_claim_is_released,
        shutdown_waits_until_the_request_of_a_reader_that_hung_up_is_withdrawn;
    dispatching:
        idle_providers_cost_no_reads_of_the_store,
        a_new_provider_socket_gets_the_open_requests_when_the_store_is_back,
        a_provider_that_rejoins_gets_each_request_once,
        requests_go_to_the_new_owner_of_a_provider;
    lost_hints:
        a_recheck_finds_a_task_for_a_held_claim,
        a_recheck_finds_a_new_job_of_a_held_claim,
        a_recheck_finds_the_end_of_a_task,
        a_recheck_finds_an_answer_for_a_reader,
        a_recheck_finds_a_request_for_a_provider,
        a_drain_answers_all_held_requests;
}
