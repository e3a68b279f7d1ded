//! The conformance suite of the store: every case runs on SQLite and on PostgreSQL, in three
//! layers: examples, races of two nodes, and random sequences against a model.

mod database;
mod fixture;
mod jobs;
mod lists;
mod loss;
mod model;
mod orphans;
mod providers;
mod races;
mod random;
mod ready;
mod sweeping;
mod tasks;
mod workers;

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    workers:
        only_the_owner_of_a_worker_sends_its_heartbeats,
        one_write_stores_the_heartbeats_of_several_workers,
        the_owner_of_a_worker_is_found,
        only_its_owner_or_the_server_removes_a_worker,
        workers_are_listed_newest_first,
        a_room_lists_the_workers_of_its_jobs;
    jobs:
        a_registration_without_a_worker_creates_one,
        several_workers_register_one_job,
        an_unknown_or_foreign_worker_is_refused,
        another_schema_is_refused,
        a_new_schema_of_an_internal_job_replaces_the_old_one,
        the_last_registration_sets_the_number_of_retries,
        jobs_are_listed_newest_first;
    tasks:
        a_task_is_as_it_was_submitted,
        without_a_job_there_is_no_task,
        a_task_that_needs_a_worker_is_refused_without_one,
        only_the_owner_of_a_worker_claims_for_it,
        the_task_that_waited_longest_is_claimed_first,
        a_released_task_gets_its_place_in_the_queue_back,
        a_released_claim_costs_no_retry,
        only_allowed_transitions_between_states_are_done,
        only_the_owner_of_its_worker_updates_a_task,
        an_update_with_a_worker_id_needs_that_worker_to_have_the_task,
        a_submitter_cancels_a_task_while_it_is_pending,
        the_end_of_a_task_keeps_its_error,
        a_task_that_a_superuser_claims_has_no_worker,
        a_worker_that_registers_later_claims_older_tasks;
    lists:
        queue_positions_count_per_job,
        queue_positions_move_up_as_tasks_are_claimed,
        tasks_are_filtered_by_room_job_and_state;
    orphans:
        a_job_without_tasks_is_deleted_with_its_last_worker,
        a_job_with_pending_tasks_outlives_its_last_worker,
        a_job_with_workers_is_no_orphan,
        an_internal_job_outlives_its_last_worker,
        a_deleted_job_may_be_registered_with_another_schema,
        a_job_that_outlives_its_workers_keeps_its_schema;
    loss:
        the_tasks_of_a_lost_worker_fail,
        the_tasks_of_a_lost_worker_are_retried_as_often_as_the_job_allows,
        a_job_whose_tasks_are_retried_outlives_its_last_worker,
        the_providers_and_job_links_of_a_lost_worker_are_deleted;
    sweeping:
        a_sweep_of_an_empty_store_deletes_nothing,
        only_a_silent_worker_is_lost,
        a_heartbeat_of_a_provider_is_one_of_its_worker,
        a_sweep_removes_a_limited_number_of_workers,
        an_internal_task_over_its_time_fails,
        ended_tasks_are_deleted_after_their_time,
        the_row_of_a_deleted_job_goes_with_its_last_task;
    providers:
        a_provider_has_the_fields_of_its_registration,
        a_registration_without_a_worker_creates_one,
        every_registration_increments_the_version,
        only_a_superuser_takes_a_provider_over,
        an_unknown_or_foreign_worker_is_refused,
        providers_are_found_by_name,
        the_newest_of_a_category_is_found,
        providers_are_listed_newest_first,
        only_the_named_internal_providers_are_listed,
        only_its_owner_removes_a_provider_or_sends_its_heartbeat;
    ready:
        the_waiters_that_can_be_answered_are_found;
    races:
        every_task_is_claimed_once,
        no_task_stays_with_a_worker_that_was_removed,
        a_job_is_not_deleted_while_a_worker_registers_it,
        no_task_stays_in_a_job_that_was_deleted,
        a_task_is_either_cancelled_or_claimed,
        a_job_deleted_during_its_registration_is_created_again;
    random:
        random_sequences_follow_the_model;
}
