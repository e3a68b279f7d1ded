//! Rooms with frames: every case runs on SQLite and on PostgreSQL, through the routes.

mod chat;
mod editing;
mod fixture;
mod locking;
mod merging;
mod model;
mod mounted;
mod mounting;
mod ordering;
mod ports;
mod progress;
mod reading;
mod rooms;
mod uploads;

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    rooms:
        a_room_is_created_once,
        a_room_begins_with_the_frames_of_another,
        a_copied_room_changes_independently,
        a_copy_of_an_unknown_mounted_or_large_room_is_refused,
        rooms_have_pages_newest_first,
        names_reserved_for_scopes_are_no_room_names,
        one_of_many_concurrent_callers_creates_the_room,
        callers_without_a_token_are_refused_on_every_route;
    editing:
        frames_are_appended_replaced_and_deleted,
        each_change_is_emitted_to_the_room,
        an_unknown_index_is_refused_with_the_valid_range,
        a_full_room_refuses_frames,
        an_unknown_room_is_not_found_by_every_route,
        concurrent_appends_are_all_kept,
        a_change_whose_caller_hung_up_is_emitted_to_the_room;
    merging:
        a_merge_adds_and_replaces_keys,
        values_that_are_not_packed_as_binary_are_kept_unchanged,
        concurrent_merges_are_all_kept,
        a_merge_during_a_replacement_is_applied_to_the_new_frame;
    uploads:
        json_and_messagepack_uploads_store_the_same_frames,
        malformed_frames_are_refused_with_the_position,
        frames_over_a_limit_are_refused_with_the_limit;
    reading:
        frames_are_read_by_range_and_by_index,
        a_read_returns_only_the_requested_keys,
        metadata_lists_the_keys_of_a_frame_with_their_types,
        malformed_indices_are_refused,
        a_long_read_comes_in_chunks,
        a_read_that_loses_a_frame_breaks_off,
        a_read_goes_on_across_gaps_and_later_deletes;
    mounted:
        a_frame_that_is_not_stored_is_read_from_the_provider,
        a_read_is_held_until_the_provider_answers,
        a_batch_is_read_from_the_provider_concurrently_within_a_limit,
        a_batch_that_is_not_answered_in_time_is_a_timeout,
        a_batch_over_the_limit_of_bytes_is_refused_whole,
        a_problem_of_the_provider_is_the_answer_of_the_read,
        an_answer_that_is_no_frame_is_a_failure_of_the_provider,
        an_answer_on_disk_is_read,
        an_answer_in_chunks_is_read,
        a_read_of_more_provider_frames_than_the_limit_is_refused,
        stored_frames_take_precedence_over_provider_frames;
    mounting:
        the_owner_of_the_provider_mounts_and_unmounts,
        a_mounted_room_is_read_only,
        only_the_owner_of_a_frames_provider_mounts,
        a_room_is_unmounted_when_its_last_provider_is_removed,
        a_room_stays_mounted_while_another_provider_serves_it,
        mounted_frames_without_a_provider_are_not_found;
    locking:
        a_locked_room_refuses_the_edits_of_others,
        a_room_is_unlocked_by_the_user_who_locked_it_or_a_superuser,
        a_locked_room_is_unmounted_when_its_provider_is_removed;
    ordering:
        events_of_a_room_come_in_the_order_of_their_commits,
        an_event_of_another_node_comes_in_its_order,
        a_refused_change_holds_up_no_event;
    progress:
        a_tracker_is_started_updated_and_ended,
        an_unknown_tracker_is_not_found,
        malformed_trackers_are_refused,
        a_tracker_with_the_same_id_begins_anew,
        a_room_has_a_limited_number_of_trackers;
    chat:
        messages_are_listed_in_pages_newest_first,
        only_the_newest_messages_are_kept,
        messages_of_one_moment_have_times_of_their_own,
        a_chat_message_is_emitted_to_the_room,
        a_failed_read_reported_by_the_real_client_is_recognised,
        an_empty_message_or_one_to_an_invalid_room_is_refused;
    model:
        random_sequences_follow_the_model;
}
