//! The conformance suite of the store and of what the door reads from it: every case runs on SQLite and
//! on PostgreSQL, in three layers: examples, races of two nodes, and random sequences against a model.

mod ack_batches;
mod acks;
mod calls;
mod counts;
mod dead_letter_lists;
mod dead_letters;
mod deliveries;
mod discovery;
mod extending;
mod groups;
mod hanging_up;
mod holding;
mod http_calls;
mod leases;
mod loss;
mod lost_wakes;
mod matching;
mod message_admin;
mod messages;
mod model;
mod modes;
mod nodes;
mod open_transactions;
mod order;
mod pushes;
mod queues;
mod races;
mod random;
mod recheck;
mod refused_wholes;
mod release;
mod released_batches;
mod sealed;
mod seeks;
mod segments;
mod serving;
mod settings;
mod shown_options;
mod sql_push;
mod starts;
mod streams;
mod sweeping;
mod test_door;
mod test_store;
mod traces;
mod transactions;
mod unknown_outcome;
mod wakes;
mod watched_store;

wakeline_testkit::conformance! {
    crate::test_store::TestStore;
    pushes:
        a_push_gives_each_message_the_next_position,
        a_message_is_delivered_with_all_its_fields,
        a_transaction_id_is_stored_once_within_a_push,
        a_transaction_id_is_stored_once_across_pushes,
        a_transaction_id_belongs_to_its_partition;
    order:
        a_batch_is_claimed_in_order_and_the_next_one_follows,
        groups_are_independent,
        a_new_group_gets_all_messages,
        the_partition_that_is_ready_longest_is_claimed_first;
    discovery:
        a_pop_from_an_unknown_queue_finds_and_creates_nothing,
        a_pop_from_an_unknown_partition_finds_and_creates_nothing,
        a_group_gets_cursors_in_many_partitions_by_several_claims,
        a_pop_gets_no_messages_of_other_queues;
    leases:
        a_leased_partition_is_not_claimed_before_its_lease_ends,
        the_lease_time_of_the_queue_applies,
        messages_of_an_expired_lease_are_redelivered,
        a_lease_ends_when_its_time_is_over,
        a_consumer_with_a_lost_lease_changes_nothing,
        auto_ack_advances_the_cursor_without_a_lease,
        auto_ack_after_an_expired_lease_fences_the_old_holder,
        a_pop_names_the_time_of_its_lease,
        the_lease_time_of_a_pop_is_limited;
    deliveries:
        each_redelivery_of_a_message_counts_up,
        messages_behind_a_completed_one_keep_their_count,
        a_released_claim_is_no_delivery,
        groups_seeks_and_auto_acks_count_by_themselves,
        a_popped_message_shows_its_attempt;
    acks:
        a_completed_batch_advances_the_cursor_and_releases_the_lease,
        completing_part_of_a_batch_keeps_the_lease,
        completing_a_message_completes_those_before_it,
        an_ack_below_the_cursor_changes_nothing,
        an_ack_of_an_unknown_message_is_reported_and_keeps_the_lease,
        an_ack_of_a_group_that_never_claimed_is_refused,
        an_ack_without_a_lease_moves_the_cursor_forward_only,
        a_retried_message_is_redelivered_and_does_not_count_as_failed,
        a_failed_message_waits_for_the_retry_delay,
        a_repeated_ack_of_a_completed_batch_changes_nothing,
        each_refused_ack_has_a_code;
    dead_letters:
        a_message_that_fails_too_often_becomes_a_dead_letter,
        failures_are_counted_per_message,
        the_status_dead_letter_makes_a_dead_letter_at_once,
        a_dead_message_is_passed_after_those_before_it,
        a_lease_ends_when_only_dead_messages_are_left,
        dead_messages_are_skipped_by_their_group_only,
        a_pop_finds_nothing_where_only_dead_messages_are_left;
    release:
        a_released_claim_can_be_claimed_again_at_once,
        messages_of_a_released_auto_ack_are_redelivered,
        the_lease_of_another_consumer_is_not_released,
        a_partly_acknowledged_claim_is_not_released,
        an_auto_ack_is_not_released_after_a_later_claim;
    wakes:
        a_new_partition_wakes_every_group,
        a_group_that_has_caught_up_is_woken,
        a_group_that_is_behind_is_not_woken,
        a_duplicate_wakes_no_group,
        a_push_to_a_leased_partition_does_not_wake_but_its_ack_does,
        each_partition_of_a_push_is_woken,
        a_failure_wakes_its_group,
        an_auto_ack_wakes_for_the_remaining_messages;
    recheck:
        wait_keys_of_a_queue,
        wait_keys_of_a_partition,
        a_recheck_of_no_keys_finds_nothing;
    races:
        a_partition_is_leased_to_one_node,
        concurrent_pushes_of_one_transaction_id_store_one_message,
        concurrent_pushes_do_not_deadlock,
        concurrent_pops_do_not_deadlock,
        concurrent_acks_and_pushes_do_not_deadlock,
        concurrent_acks_of_a_batch_only_move_forward;
    loss:
        no_stored_message_is_lost;
    lost_wakes:
        no_pop_with_a_lease_misses_a_wake,
        no_pop_with_auto_ack_misses_a_wake,
        no_pop_misses_a_wake_beside_failing_consumers;
    transactions:
        an_ack_and_pushes_are_done_together,
        a_lost_lease_rejects_the_whole_batch,
        a_repeated_transaction_is_refused,
        an_unknown_message_rejects_the_whole_batch,
        a_required_lease_must_be_valid,
        a_required_lease_fences_the_acks,
        a_duplicate_push_is_reported_and_the_rest_is_done,
        a_refused_push_rejects_the_whole_batch,
        an_ack_of_a_completed_message_rejects_nothing,
        a_rejected_batch_leaves_the_others_of_its_commit_alone,
        one_of_two_batches_that_ack_the_same_message_commits;
    ack_batches:
        the_order_of_acks_in_a_call_does_not_matter,
        a_failed_message_and_all_after_it_are_redelivered,
        a_retried_message_and_all_after_it_are_redelivered,
        each_message_counts_its_own_failures,
        several_partitions_are_claimed_and_acknowledged_at_once,
        a_claim_has_at_most_the_requested_partitions,
        acks_of_several_groups_and_lost_leases_in_one_call,
        a_message_outside_of_the_claim_cannot_be_acknowledged,
        a_nack_without_a_lease_ends_no_lease,
        a_lease_can_outlast_its_completed_batch,
        the_message_id_is_the_default_transaction_id;
    released_batches:
        acks_after_a_nack_answer_that_the_batch_was_released,
        an_ack_of_a_dead_message_of_a_released_batch_does_not_announce_a_redelivery,
        a_nack_releases_the_batch_of_its_partition_and_group_only,
        each_ack_of_a_released_batch_is_answered_by_its_own_outcome;
    refused_wholes:
        a_transaction_with_an_unsupported_operation_is_refused_whole,
        empty_parts_of_a_transaction_are_harmless,
        a_conflating_pop_is_refused_and_leases_nothing,
        features_of_queen_that_are_missing_are_refused_with_a_code,
        binary_bodies_are_refused;
    extending:
        an_extension_counts_from_now,
        a_lease_is_never_shortened,
        an_expired_lease_is_not_extended,
        a_lease_is_extended_in_all_its_partitions;
    settings:
        with_no_retries_the_first_failure_makes_a_dead_letter,
        a_message_that_fails_too_often_is_dropped_where_dead_letters_are_not_kept,
        a_failure_in_a_batch_delays_the_partition,
        a_delayed_message_is_delivered_when_it_is_due,
        a_shorter_delay_applies_to_stored_messages,
        a_window_collects_messages_until_the_pushes_pause,
        a_partition_within_its_window_does_not_hold_up_another,
        a_waiter_is_woken_when_a_delay_is_over,
        a_waiter_is_woken_when_a_window_is_over,
        a_waiter_is_woken_when_a_retry_is_due,
        a_full_queue_refuses_pushes,
        a_message_over_the_maximum_age_is_not_delivered,
        an_omitted_option_is_reset_to_its_default,
        an_option_that_is_not_named_keeps_its_value,
        changes_of_the_same_moment_are_all_kept,
        a_change_made_of_other_options_is_not_done,
        a_queue_without_configuration_has_the_default_options;
    starts:
        a_group_starts_with_all_messages_or_with_new_ones,
        a_group_starts_at_a_time,
        only_the_first_pop_sets_the_start,
        each_word_for_a_start_is_known_and_others_are_refused,
        a_start_by_namespace_counts_from_the_first_pop,
        a_later_subscription_applies_to_partitions_without_a_cursor;
    seeks:
        a_seek_to_the_end_skips_all_messages,
        a_seek_to_a_time_redelivers_the_messages_since_then,
        a_seek_of_one_partition_leaves_the_others_alone,
        dead_messages_stay_dead_after_a_seek,
        a_seek_forgets_leases_and_failures,
        a_seek_leaves_other_groups_alone,
        a_seek_wakes_waiting_pops,
        a_deleted_group_starts_again_where_it_started,
        a_group_deleted_with_its_start_starts_as_a_new_one,
        a_deleted_group_has_no_lease_and_no_dead_messages;
    matching:
        a_pop_finds_queues_by_namespace_task_or_both,
        a_claim_is_of_one_queue,
        the_queue_with_the_higher_priority_is_claimed_first,
        a_long_wait_is_claimed_before_a_higher_priority,
        a_push_wakes_pops_by_namespace_and_task,
        pops_by_namespace_and_task_are_rechecked;
    sweeping:
        messages_over_the_maximum_age_are_removed,
        a_group_behind_the_sweep_continues_with_the_remaining_messages,
        messages_that_all_groups_consumed_are_removed,
        removed_messages_are_counted_by_queue_and_option,
        a_sweep_removes_a_limited_number_of_segments,
        a_deleted_queue_is_gone_at_once_and_its_name_can_be_used_again,
        a_node_that_knows_the_deleted_queue_pushes_to_the_new_one,
        a_lease_in_a_deleted_queue_is_lost,
        many_partitions_of_a_deleted_queue_are_removed_by_several_sweeps;
    sealed:
        a_payload_is_sealed_in_the_store_and_opened_for_the_consumer,
        one_push_seals_only_the_payloads_of_sealed_queues,
        a_transaction_seals_the_payloads_of_a_sealed_queue,
        without_the_key_a_pop_fails_and_releases_its_claim,
        without_a_key_pushes_to_a_sealed_queue_are_refused,
        the_first_queue_that_asks_for_encryption_makes_a_key,
        no_key_is_made_beside_sealed_messages,
        a_server_with_another_key_seals_nothing,
        the_first_key_of_a_list_replaces_the_stores_key,
        without_a_place_for_a_key_encryption_is_refused;
    modes:
        paused_pushes_are_refused,
        paused_pops_find_nothing,
        a_pop_held_during_a_pause_is_answered_after_it;
    streams:
        a_stream_is_registered_once,
        state_and_messages_change_together,
        a_rejected_cycle_changes_no_state,
        the_last_value_of_a_key_is_stored,
        states_are_found_by_key_prefix_and_window,
        concurrent_cycles_keep_their_own_state;
    segments:
        a_batch_spans_segments,
        a_large_message_is_a_segment_of_its_own,
        a_batch_spans_many_small_segments,
        dead_messages_on_both_sides_of_a_segment_boundary_are_skipped,
        ten_thousand_messages_of_one_push_are_delivered_in_order,
        special_characters_are_kept;
    serving:
        the_pop_that_waited_longest_is_answered_first,
        an_ack_answers_the_next_waiting_pop,
        a_push_answers_one_pop_per_message,
        the_messages_of_a_batch_go_to_one_pop,
        partitions_are_shared_among_pops,
        groups_do_not_wait_for_each_other;
    hanging_up:
        a_push_wakes,
        a_seek_wakes,
        a_shorter_delay_wakes,
        another_namespace_wakes,
        deleting_a_group_wakes,
        the_end_of_a_pause_wakes,
        a_retry_wakes,
        moving_a_message_to_the_dead_letters_wakes_for_the_next_one,
        deleting_a_message_wakes_for_the_next_one,
        an_unchanged_configuration_causes_no_recheck;
    random:
        random_sequences_follow_the_model;
    holding:
        a_push_answers_a_waiting_pop,
        each_pushed_partition_answers_a_pop,
        a_pop_that_hangs_up_during_its_claim_releases_it,
        an_auto_ack_that_hangs_up_during_its_claim_releases_it,
        a_claim_that_is_dropped_is_released_and_wakes,
        an_auto_ack_that_is_dropped_is_released_and_wakes,
        the_end_of_a_lease_wakes_a_pop_that_came_after_the_claim,
        the_end_of_a_lease_wakes_a_pop_that_waited_before_the_claim,
        a_held_pop_without_a_wake_asks_the_store_once;
    queues:
        a_queue_counts_each_message_once,
        without_queue_mode_the_group_furthest_behind_gives_the_counts,
        lists_have_pages_and_totals,
        an_overview_sums_all_queues,
        a_lease_on_several_partitions_is_one_lease,
        no_percentage_of_the_database_is_above_100,
        an_empty_store_has_empty_lists;
    groups:
        a_group_is_listed_with_its_lag,
        members_are_consumers_and_not_partitions,
        a_group_with_lag_is_not_stable,
        lagging_groups_are_found_by_waiting_time,
        a_deleted_queue_is_not_listed;
    messages:
        a_page_spans_segments_and_partitions,
        each_status_lists_its_part_of_the_messages,
        a_list_is_limited_by_times,
        filters_select_messages,
        a_message_is_found_by_either_id,
        an_unknown_message_is_not_found;
    message_admin:
        a_deleted_message_is_gone_for_all_groups,
        a_deleted_message_may_be_pushed_again,
        a_retried_dead_letter_is_delivered_to_its_group_only,
        a_retried_dead_letter_keeps_its_transaction_id_if_no_other_group_reads,
        a_dead_letter_is_found_by_either_id,
        deleting_an_unknown_message_changes_nothing,
        a_dead_letter_outlives_its_group,
        a_moved_message_is_a_dead_letter_of_each_group_that_has_not_consumed_it,
        a_leased_message_is_not_moved_to_the_dead_letters;
    dead_letter_lists:
        dead_letters_have_pages_filters_and_a_total;
    shown_options:
        the_shown_lease_time_is_the_effective_one;
    traces:
        traces_are_found_by_message_and_by_name;
    counts:
        counts_add_up_across_writes,
        a_call_about_several_queues_is_one_call_of_the_server,
        a_count_of_a_partition_goes_to_its_queue,
        the_door_counts_messages,
        the_door_counts_calls,
        failures_of_the_store_are_counted;
    nodes:
        held_pops_are_an_average_of_the_samples,
        the_door_writes_how_many_pops_it_holds,
        a_node_is_shown_by_step,
        newer_node_stats_replace_older_ones_of_the_minute,
        old_samples_are_deleted,
        the_door_writes_the_stats_of_its_node;
}
