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
        race_condition_elsewhere,
        abort,
        inflight_dedup,
        prefer_wait,
        a_question_of_unknown_outcome_is_asked,
        a_batch_that_is_late_is_not_asked_for_again;
    sharing:
        a_hundred_readers_are_one_question,
        a_hundred_readers_of_two_nodes_are_one_question,
        a_provider_on_another_node_is_asked,
        who_stays_is_answered_when_others_hang_up,
        who_hangs_up_strands_nobody_elsewhere,
        a_hundred_that_hang_up_leave_nothing,
        a_provider_that_comes_late_is_sent_what_is_asked,
        registered_anew_it_is_asked_anew,
        a_provider_that_went_and_came_answers_who_waited;
    answers:
        a_problem_is_handed_to_who_waits,
        what_it_says_in_the_room_is_heard,
        what_is_known_is_not_sent_again,
        an_answer_is_kept_as_long_as_it_says,
        a_provider_says_how_long_its_answers_are_kept,
        a_parameter_that_does_not_fit_is_named,
        a_schema_is_compiled_once_for_all_reads_of_a_registration;
    places:
        a_problem_on_disk_keeps_its_status,
        what_is_known_is_not_read_from_disk,
        what_is_over_does_not_pile_up;
    large:
        one_is_told_with_its_length_and_tag,
        who_reads_one_that_is_replaced_gets_all_of_it,
        one_that_is_lost_meanwhile_breaks_off,
        a_problem_keeps_its_status;
    uploads:
        one_that_is_too_large_is_refused,
        one_that_does_not_fit_on_disk_is_refused,
        one_that_stops_coming_is_given_up,
        too_many_at_once_wait_for_memory;
    names:
        a_nul_is_nobodys_name,
        a_nul_is_no_text,
        names_fit_into_an_index;
    internal:
        the_server_answers_for_its_own,
        why_it_could_not_is_told,
        superusers_only,
        what_is_for_everybody_is_listed,
        nobody_else_registers_or_removes_it,
        what_this_server_does_not_run_is_unavailable;
    internal_jobs:
        the_server_works_on_its_own_jobs,
        what_takes_too_long_fails,
        one_cancelled_before_it_runs_is_passed_over,
        a_claim_that_fails_is_not_the_end,
        another_schema_is_offered_after_an_update;
    tasks:
        a_submit_wakes_a_claim,
        a_submit_on_another_node_wakes_a_claim,
        one_submit_wakes_one_claim,
        a_task_that_comes_back_wakes_a_claim,
        a_job_registered_meanwhile_is_waited_for,
        a_worker_that_is_removed_claims_nothing_more,
        the_end_wakes_who_waits_for_it,
        a_lost_worker_ends_its_tasks;
    claims:
        what_was_claimed_for_who_is_gone_goes_to_the_next,
        what_comes_back_wakes_who_waits,
        what_comes_back_wakes_who_waits_on_another_node,
        a_claim_that_is_hung_up_on_half_way_goes_back,
        a_claim_goes_back_when_the_store_is_there_again,
        who_takes_another_jobs_task_passes_its_wake_on,
        a_worker_that_names_itself_is_told_that_it_was_replaced;
    held_claims:
        a_held_claim_is_a_heartbeat_of_its_worker,
        a_held_claim_of_a_lost_worker_ends,
        a_claim_that_is_not_held_is_no_heartbeat,
        heartbeats_are_sent_again_after_an_outage;
    hung_up:
        a_submit_wakes_a_claim,
        an_update_wakes_who_waits_for_the_end,
        an_upload_wakes_a_reader,
        a_removed_worker_ends_its_claims,
        the_end_waits_for_a_claim_to_go_back,
        the_end_waits_for_a_question_to_be_taken_back;
    dispatching:
        providers_without_questions_cost_nothing_each,
        a_newcomer_is_sent_what_is_open_when_the_store_is_back,
        who_leaves_and_joins_again_is_asked_once,
        a_provider_that_is_anothers_by_now_is_asked_of_its_owner;
    lost_hints:
        a_task_for_a_claim,
        another_job_for_a_claim,
        the_end_of_a_task,
        an_answer_for_a_reader,
        a_question_for_a_provider,
        all_who_are_held_are_sent_away;
}
