//! The conformance suite of the store: every case runs on SQLite and on PostgreSQL, in three
//! layers: examples, races of two nodes, and random sequences against a model.

mod ack_batches;
mod acks;
mod calls;
mod dead_letters;
mod discovery;
mod extending;
mod hanging_up;
mod holding;
mod leases;
mod loss;
mod lost_wakes;
mod matching;
mod model;
mod modes;
mod open_transactions;
mod order;
mod pushes;
mod races;
mod random;
mod recheck;
mod release;
mod sealed;
mod seeks;
mod segments;
mod serving;
mod settings;
mod sql_push;
mod starts;
mod streams;
mod sweeping;
mod test_door;
mod test_store;
mod transactions;
mod unknown_outcome;
mod wakes;
mod watched_store;

wakeline_testkit::conformance! {
    crate::test_store::TestStore;
    pushes:
        a_push_gives_each_message_its_place_in_line,
        everything_of_a_message_comes_back,
        a_transaction_id_is_stored_once_within_a_push,
        a_transaction_id_is_stored_once_across_pushes,
        a_transaction_id_belongs_to_its_partition;
    order:
        a_batch_is_taken_in_order_and_the_next_goes_on,
        groups_are_independent,
        a_group_that_comes_later_sees_everything,
        partitions_are_served_longest_ready_first;
    discovery:
        an_unknown_queue_is_empty_and_stays_unknown,
        an_unknown_partition_is_empty_and_stays_unknown,
        a_group_finds_more_partitions_than_one_claim_makes_known,
        partitions_of_other_queues_are_not_served;
    leases:
        a_leased_partition_is_not_served_again_before_its_time,
        the_queue_says_how_long_a_lease_lasts,
        an_expired_lease_is_delivered_again,
        a_lease_ends_by_the_clock,
        who_has_lost_its_lease_changes_nothing,
        auto_ack_moves_on_without_a_lease,
        auto_ack_after_an_expired_lease_fences_the_old_holder;
    acks:
        a_completed_batch_moves_on_and_releases,
        a_part_of_a_batch_keeps_the_lease,
        a_later_message_completes_those_before_it,
        below_the_cursor_nothing_changes,
        an_unknown_message_is_told_and_keeps_the_lease,
        a_group_that_never_claimed_has_nothing_to_acknowledge,
        without_a_lease_it_moves_forward_only,
        retry_comes_again_and_does_not_count,
        a_failed_message_is_held_back_as_long_as_the_queue_says;
    dead_letters:
        a_message_that_fails_too_often_is_dead,
        failures_belong_to_the_message,
        dead_at_once,
        a_dead_message_waits_for_those_before_it,
        the_lease_ends_when_only_dead_messages_are_left,
        dead_messages_are_skipped_by_their_group_only,
        only_dead_messages_left_is_nothing_left;
    release:
        a_lease_that_is_released_is_free_at_once,
        an_auto_ack_that_is_released_comes_again,
        a_lease_of_somebody_else_is_not_released,
        what_was_acknowledged_in_part_is_not_released,
        an_auto_ack_is_not_released_behind_a_later_claim;
    wakes:
        a_new_partition_wakes_every_group,
        a_group_that_has_caught_up_is_woken,
        a_group_that_is_behind_is_not_woken,
        a_duplicate_wakes_nobody,
        a_leased_partition_wakes_by_its_ack_and_not_by_a_push,
        each_partition_of_a_push_is_woken,
        a_failure_wakes_its_group,
        an_auto_ack_wakes_for_what_it_leaves;
    recheck:
        places_of_a_queue,
        places_of_a_partition,
        no_places_are_no_answer;
    races:
        a_partition_is_leased_to_one_node,
        one_of_many_same_transaction_ids_is_stored,
        pushes_across_each_other_do_not_fail,
        pops_across_each_other_do_not_fail,
        acks_and_pushes_across_each_other_do_not_fail,
        acks_of_one_batch_only_move_forward;
    loss:
        nothing_acknowledged_is_lost;
    lost_wakes:
        with_leases_nobody_is_left_waiting,
        with_auto_ack_nobody_is_left_waiting,
        with_failures_nobody_is_left_waiting;
    transactions:
        an_ack_and_pushes_are_done_together,
        a_lost_lease_undoes_everything,
        an_unknown_message_undoes_everything,
        a_required_lease_must_be_alive,
        a_required_lease_fences_the_acks,
        a_duplicate_push_is_told_and_the_rest_done,
        a_refused_push_undoes_the_acks,
        an_ack_of_what_is_done_already_undoes_nothing,
        a_refused_step_leaves_its_neighbours_alone,
        one_of_two_nodes_commits_what_both_have_made;
    ack_batches:
        the_order_within_a_call_does_not_matter,
        what_failed_and_what_follows_it_comes_again,
        retry_holds_up_what_follows_it_too,
        each_failed_one_counts_for_itself,
        several_partitions_are_claimed_and_acknowledged_at_once,
        partitions_of_a_claim_are_not_more_than_asked_for,
        groups_and_lost_leases_in_one_call,
        nobody_speaks_of_what_it_was_not_given,
        without_a_lease_nobody_is_interrupted,
        a_lease_can_go_on_when_all_is_done,
        a_message_without_a_transaction_id_has_its_own;
    extending:
        it_lasts_from_now,
        it_is_never_made_shorter,
        what_is_over_is_not_extended,
        it_lasts_in_every_partition_of_the_claim;
    settings:
        without_retries_the_first_failure_is_the_last,
        what_fails_too_often_can_be_dropped,
        a_failure_in_a_batch_holds_the_partition_back,
        a_delayed_message_is_handed_out_when_it_is_due,
        a_shorter_delay_holds_for_what_is_there,
        a_window_gathers_until_it_is_calm,
        a_busy_partition_does_not_hide_a_calm_one,
        a_waiter_is_woken_when_a_delay_is_over,
        a_waiter_is_woken_when_a_window_is_over,
        a_waiter_is_woken_when_a_retry_is_due,
        a_full_queue_refuses,
        what_is_too_old_is_not_handed_out,
        what_is_not_said_is_at_its_default_again,
        a_queue_that_nobody_configured_is_at_the_defaults;
    starts:
        with_everything_or_with_what_is_new,
        at_a_time,
        it_is_said_once,
        a_namespace_is_new_from_the_first_question_on,
        it_can_be_told_afterwards_and_holds_for_what_is_not_seen;
    seeks:
        to_the_end,
        to_a_time,
        one_partition,
        the_dead_stay_dead,
        leases_and_failures_are_forgotten,
        other_groups_stay_where_they_are,
        who_waits_is_woken_by_a_seek,
        a_deleted_group_begins_where_it_began,
        a_group_deleted_with_its_start_is_a_new_one,
        a_deleted_group_has_no_lease_and_no_dead;
    matching:
        by_namespace_by_task_and_by_both,
        a_claim_is_of_one_queue,
        the_higher_priority_comes_first,
        who_has_waited_long_comes_before_a_higher_priority,
        a_push_answers_who_waits_for_its_namespace_or_task,
        they_are_rechecked;
    sweeping:
        what_is_too_old_is_removed,
        a_reader_that_is_behind_goes_on_with_what_is_left,
        what_everyone_has_consumed_is_removed,
        what_was_removed_is_told_by_queue_and_rule,
        it_is_done_in_slices,
        a_deleted_queue_is_gone_at_once_and_its_name_is_free,
        a_node_that_knows_the_deleted_queue_pushes_to_the_new_one,
        a_lease_in_a_deleted_queue_is_lost,
        many_partitions_of_a_deleted_queue_go_in_slices;
    sealed:
        what_is_stored_is_sealed_and_what_is_handed_out_is_not,
        sealed_and_plain_queues_in_one_push,
        a_transaction_into_a_sealed_queue,
        without_the_key_nothing_is_taken_and_nothing_lost,
        without_a_key_nothing_is_sealed;
    modes:
        paused_pushes_are_refused,
        paused_pops_find_nothing,
        who_is_held_during_a_pause_is_served_after_it;
    streams:
        a_stream_is_registered_once,
        state_and_messages_change_together,
        a_refused_cycle_changes_no_state,
        the_last_value_of_a_key_counts,
        states_are_found,
        cycles_beside_each_other;
    segments:
        a_batch_goes_across_them,
        large_messages_have_their_own,
        many_small_ones_are_one_batch,
        the_dead_on_both_sides_of_a_boundary,
        ten_thousand_of_one_push_come_in_order,
        every_text_comes_back;
    serving:
        first_come_first_served,
        an_ack_serves_the_next,
        a_push_serves_as_many_as_it_has_messages_for,
        a_batch_goes_to_one,
        partitions_are_shared_out,
        groups_do_not_wait_for_each_other;
    hanging_up:
        a_push_wakes,
        a_seek_wakes,
        a_shorter_delay_wakes,
        another_namespace_wakes,
        deleting_a_group_wakes,
        the_end_of_a_pause_wakes,
        a_retry_wakes,
        a_message_moved_to_the_dead_letters_wakes_for_what_follows_it,
        deleting_a_message_wakes_for_what_follows_it,
        configuring_the_same_again_wakes_nobody;
    random:
        random_sequences_follow_the_model;
    holding:
        a_push_answers_a_waiting_pop,
        each_partition_that_is_pushed_answers_a_waiter,
        a_pop_that_hangs_up_during_its_claim_releases_it,
        an_auto_ack_that_hangs_up_during_its_claim_releases_it,
        a_claim_that_is_dropped_is_released_and_wakes,
        an_auto_ack_that_is_dropped_is_released_and_wakes,
        the_end_of_a_lease_wakes_who_came_after_it,
        the_end_of_a_lease_wakes_who_waited_before_it,
        a_wait_without_news_asks_the_store_once;
}
