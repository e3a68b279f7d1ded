//! The conformance suite of the store: every case runs on SQLite and on PostgreSQL, in three
//! layers: examples, races of two nodes, and random sequences against a model.
//!
//! The cases are listed here once, so that a backend cannot forget one; a case that is not listed
//! is dead code, which the build reports.

mod acks;
mod database;
mod dead_letters;
mod discovery;
mod door;
mod hand_back;
mod holding;
mod leases;
mod loss;
mod lost_wakes;
mod model;
mod order;
mod pushes;
mod races;
mod random;
mod ready;
mod recheck;
mod steps;
mod under_way;

macro_rules! conformance {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        mod sqlite { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(crate::database::Database::sqlite()).await;
            }
        )+ })+ }

        mod postgres { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(crate::database::Database::postgres().await).await;
            }
        )+ })+ }
    };
}

conformance! {
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
    hand_back:
        a_lease_that_is_handed_back_is_free_at_once,
        an_auto_ack_that_is_handed_back_comes_again,
        a_lease_of_somebody_else_is_not_handed_back,
        what_was_acknowledged_in_part_is_not_handed_back,
        an_auto_ack_is_not_handed_back_behind_a_later_claim;
    ready:
        a_new_partition_wakes_every_group,
        a_group_that_has_caught_up_is_woken,
        a_group_that_is_behind_is_not_woken,
        a_duplicate_wakes_nobody,
        a_leased_partition_wakes_by_its_ack_and_not_by_a_push,
        each_partition_of_a_push_is_woken,
        a_failure_wakes_its_group,
        what_auto_ack_leaves_is_announced;
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
    random:
        random_sequences_follow_the_model;
    holding:
        a_push_answers_a_waiting_pop,
        each_partition_that_is_pushed_answers_a_waiter,
        a_pop_that_hangs_up_during_its_claim_hands_it_back,
        an_auto_ack_that_hangs_up_during_its_claim_hands_it_back,
        a_claim_that_is_dropped_is_handed_back_and_wakes,
        an_auto_ack_that_is_dropped_is_handed_back_and_wakes,
        the_end_of_a_lease_wakes_who_came_after_it,
        the_end_of_a_lease_wakes_who_waited_before_it,
        a_wait_without_news_asks_the_store_once;
}
