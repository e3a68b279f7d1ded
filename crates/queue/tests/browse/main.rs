//! What people see and change: every case runs on SQLite and on PostgreSQL.

mod counts;
mod dead_letters;
mod fixture;
mod groups;
mod message_admin;
mod messages;
mod nodes;
mod options;
mod queues;
mod traces;

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    queues:
        a_queue_counts_each_message_once,
        without_queue_mode_the_furthest_behind_counts,
        lists_have_pages_and_totals,
        an_overview_adds_up,
        an_empty_store_is_shown_as_such;
    groups:
        a_group_is_shown_where_it_is,
        who_lags_is_found_by_time,
        a_deleted_queue_is_shown_no_more;
    messages:
        a_page_goes_across_segments_and_partitions,
        a_status_is_a_part_of_the_whole,
        times_cut_a_list,
        filters_leave_what_fits,
        a_message_is_found_by_either_id,
        a_message_that_is_nowhere_is_not_found;
    message_admin:
        a_deleted_message_is_gone_for_everyone,
        a_deleted_message_may_be_pushed_again,
        a_retried_letter_comes_to_its_group_only,
        a_retried_letter_keeps_its_transaction_id_if_it_can,
        a_letter_is_found_by_either_id,
        nothing_is_deleted_where_nothing_is,
        a_letter_of_a_deleted_group_stays,
        a_message_moved_to_the_dead_letters_is_a_letter_of_its_waiting_groups,
        a_leased_message_is_not_moved_to_the_dead_letters;
    dead_letters:
        letters_have_pages_filters_and_a_total;
    options:
        the_lease_that_is_shown_is_the_one_that_holds;
    traces:
        traces_are_found_by_message_and_by_name;
    counts:
        counts_add_up_across_writes,
        calls_of_several_queues_are_one_of_the_server,
        a_count_of_a_partition_goes_to_its_queue,
        the_door_counts_what_it_does,
        the_door_counts_calls,
        failures_of_the_store_are_counted;
    nodes:
        held_pops_are_an_average_of_the_samples,
        the_door_tells_how_many_pops_it_holds,
        a_node_is_shown_by_step,
        what_a_node_told_before_is_replaced,
        old_samples_are_forgotten,
        the_door_tells_how_it_is_doing;
}
