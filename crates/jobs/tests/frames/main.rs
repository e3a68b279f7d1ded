//! Rooms with frames: every case runs on SQLite and on PostgreSQL, through the routes.

mod chat;
mod editing;
mod fixture;
mod merging;
mod model;
mod mounted;
mod mounting;
mod ports;
mod reading;
mod rooms;
mod uploads;

wakeline_testkit::conformance! {
    crate::fixture::Fixture;
    rooms:
        a_room_is_made_once,
        a_room_begins_with_the_frames_of_another,
        a_copy_has_a_life_of_its_own,
        what_cannot_be_copied_is_refused,
        rooms_have_pages_newest_first,
        a_room_has_a_name_of_its_own,
        of_many_who_make_a_room_one_has_made_it,
        nobody_does_anything;
    editing:
        frames_are_appended_replaced_and_deleted,
        everybody_in_the_room_is_told_of_each_change,
        a_frame_that_is_not_there_is_named_with_those_that_are,
        a_full_room_takes_no_more,
        a_room_that_is_not_there_takes_nothing,
        appends_beside_one_another_are_all_there,
        who_hangs_up_does_not_keep_others_from_being_told;
    merging:
        keys_are_put_beside_and_in_the_place_of_others,
        what_is_sent_in_the_open_is_kept_as_it_is_written,
        merges_beside_one_another_are_all_there,
        a_merge_into_what_was_replaced_meanwhile_is_done_on_the_new_one;
    uploads:
        json_and_messagepack_are_the_same,
        what_does_not_fit_is_refused_with_its_place,
        limits_are_told;
    reading:
        ranges_and_numbers,
        only_the_keys_that_are_asked_for,
        what_a_frame_has,
        numbers_that_are_none_are_refused,
        a_long_read_comes_in_chunks,
        a_read_that_loses_a_frame_breaks_off,
        a_read_goes_on_across_gaps_and_later_deletes;
    mounted:
        what_is_not_stored_is_asked_for,
        a_read_is_held_until_the_provider_answers,
        a_batch_is_asked_for_at_once_and_within_bounds,
        a_batch_that_is_not_answered_in_time_is_a_timeout,
        of_a_batch_all_or_nothing,
        the_problem_of_the_provider_is_the_answer,
        what_is_no_frame_is_a_failure_of_the_provider,
        an_answer_on_disk_is_read,
        an_answer_in_chunks_is_read,
        more_than_is_asked_for_at_once_is_refused,
        stored_frames_come_before_the_providers;
    mounting:
        the_owner_of_the_provider_mounts_and_gives_back,
        a_mounted_room_is_read_only,
        others_do_not_mount,
        when_the_last_provider_is_gone_so_are_its_frames,
        while_another_provider_is_there_the_room_stays_mounted,
        a_mount_without_a_provider_has_no_frames_to_give;
    chat:
        what_is_said_goes_to_who_is_there,
        a_failed_read_is_heard_as_the_real_client_tells_it,
        what_is_empty_or_for_no_room_is_not_said;
    model:
        random_sequences_follow_the_model;
}
