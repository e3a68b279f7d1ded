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
        only_its_owner_sends_heartbeats,
        several_workers_have_a_heartbeat_in_one_step,
        it_is_known_whose_it_is,
        only_its_owner_removes_it,
        they_are_listed_newest_first,
        a_room_sees_those_that_do_its_jobs;
    jobs:
        who_registers_without_a_worker_gets_one,
        several_workers_do_one_job,
        a_worker_of_nobody_or_another_is_refused,
        another_schema_is_refused,
        another_schema_of_the_servers_own_job_takes_its_place,
        the_last_to_register_says_how_often_it_is_retried,
        they_are_listed_newest_first;
    tasks:
        a_task_is_as_it_was_submitted,
        without_a_job_there_is_no_task,
        a_task_may_need_somebody_who_does_it,
        only_the_owner_claims_for_a_worker,
        who_has_waited_longest_comes_first,
        a_claim_goes_back_to_its_place,
        a_claim_that_went_back_has_cost_no_retry,
        every_state_leads_where_it_may,
        only_its_workers_owner_updates_it,
        a_worker_that_says_which_it_is_updates_only_its_own,
        who_has_submitted_it_takes_it_back_while_it_is_pending,
        its_end_says_why,
        a_superuser_claims_for_nobody,
        a_job_registered_later_is_claimed_from;
    lists:
        places_are_counted_in_each_job,
        places_move_up,
        they_are_chosen_by_room_job_and_state;
    orphans:
        with_its_last_worker_it_is_gone,
        while_somebody_waits_for_it_it_stays,
        a_job_with_workers_is_no_orphan,
        what_the_server_does_itself_stays,
        it_comes_back_with_another_schema,
        while_it_stays_its_schema_does;
    loss:
        its_tasks_fail,
        they_are_tried_again_so_many_times,
        a_job_whose_tasks_go_back_stays,
        its_providers_and_links_go;
    sweeping:
        nothing_is_nothing,
        only_a_silent_worker_is_lost,
        a_providers_beat_is_its_workers,
        it_is_done_in_slices,
        a_task_of_the_server_itself_may_take_too_long,
        ended_tasks_are_forgotten,
        a_deleted_job_goes_with_its_last_task;
    providers:
        it_is_as_it_was_registered,
        who_registers_without_a_worker_gets_one,
        every_registration_counts,
        only_a_superuser_takes_over,
        a_worker_of_nobody_or_another_is_refused,
        they_are_found_by_name,
        the_newest_of_a_category_is_found,
        they_are_listed_newest_first,
        of_the_servers_own_only_some_are_listed,
        only_its_owner_removes_and_touches_it;
    ready:
        who_can_be_answered;
    races:
        every_task_is_claimed_once,
        no_task_is_left_with_a_worker_that_is_gone,
        a_job_is_not_deleted_under_who_registers_it,
        a_task_is_not_left_in_a_job_that_is_gone,
        of_two_that_take_a_task_back_one_does,
        a_job_removed_while_it_is_registered_is_made_anew;
    random:
        random_sequences_follow_the_model;
}
