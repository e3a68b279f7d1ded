//! The conformance suite of the result backends: every case runs on each of them. What only one of
//! them promises follows in modules of its own.
//!
//! The cases are listed here once, so that a backend cannot forget one; a case that is not listed
//! is dead code, which the build reports.

mod answers;
mod backend;
mod choice;
mod chunks;
mod crash;
mod directory;
mod forgetting;
mod locks;
mod outage;
mod races;
mod shared;
mod uploads;

macro_rules! conformance {
    (in_chunks $($module:ident: $($case:ident),+ $(,)?;)+) => {
        mod in_chunks {
            conformance! { @backend sqlite { $($module: $($case),+;)+ } }
            conformance! { @backend postgres { $($module: $($case),+;)+ } }
            conformance! { @backend redis { $($module: $($case),+;)+ } }
        }
    };
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        conformance! { @backend sqlite { $($module: $($case),+;)+ } }
        conformance! { @backend postgres { $($module: $($case),+;)+ } }
        conformance! { @backend redis { $($module: $($case),+;)+ } }
        conformance! { @backend files_over_sqlite { $($module: $($case),+;)+ } }
        conformance! { @backend files_over_postgres { $($module: $($case),+;)+ } }
    };
    (@backend $backend:ident { $($module:ident: $($case:ident),+;)+ }) => {
        mod $backend { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let backend = crate::backend::TestBackend::$backend().await;
                crate::$module::$case(crate::backend::TestNode::new(backend).await).await;
            }
        )+ })+ }
    };
}

conformance! {
    answers:
        an_answer_is_found_by_its_own_key_only,
        many_keys_are_answered_in_their_order,
        a_read_of_no_keys_finds_no_answers,
        a_later_answer_replaces_an_earlier_one,
        an_uploaded_problem_is_stored_as_an_error,
        an_answer_expires_after_its_time,
        answers_may_have_any_bytes,
        an_empty_answer_is_found,
        a_large_answer_is_read_unchanged,
        answers_around_the_length_of_a_chunk_are_read_unchanged,
        an_answer_that_is_replaced_or_swept_during_a_read_is_read_whole,
        the_same_bytes_have_the_same_etag_under_every_key,
        another_node_finds_the_answer;
    locks:
        a_key_is_locked_once,
        a_read_of_a_locked_key_returns_the_time_left_of_the_lock,
        an_expired_lock_can_be_acquired_by_another_reader,
        an_answer_releases_the_lock_of_its_key,
        an_answered_key_cannot_be_locked,
        a_key_whose_answer_expired_can_be_locked_again,
        a_repeated_begin_of_the_same_request_keeps_its_lock,
        a_lock_is_released_by_its_own_token_only,
        a_lock_is_released_without_a_token_by_force,
        requests_in_flight_are_listed_oldest_first,
        requests_in_flight_are_listed_per_registration,
        a_ready_check_holds_for_an_answer_or_an_unsent_request;
    races:
        one_of_fifty_callers_on_two_nodes_gets_the_lock,
        two_nodes_that_lock_the_same_keys_in_opposite_order_do_not_fail,
        a_reader_that_comes_during_the_answer_does_not_get_the_lock,
        a_large_answer_that_is_replaced_constantly_is_read_whole;
    uploads:
        an_upload_whose_content_length_is_over_the_limit_is_refused,
        an_upload_that_grows_over_the_limit_is_refused,
        an_upload_of_exactly_the_limit_is_kept,
        an_upload_that_stalls_is_given_up,
        an_upload_that_breaks_off_is_not_kept,
        an_upload_in_progress_leaves_memory_to_others,
        an_upload_whose_caller_has_gone_is_completed;
    forgetting:
        the_answers_of_earlier_registrations_are_forgotten,
        the_answers_of_a_removed_provider_are_forgotten,
        more_locks_than_one_statement_deletes_are_forgotten,
        expired_answers_and_locks_are_swept,
        a_sweep_returns_when_the_next_one_is_due;
}

// Backends that keep answers as values, and long ones in chunks.
conformance! {
    in_chunks
    chunks:
        a_large_answer_is_never_in_memory_as_a_whole,
        an_answer_that_has_lost_a_chunk_breaks_off,
        chunks_expire_some_time_after_their_answer,
        chunks_of_a_replaced_or_forgotten_answer_stay_for_its_readers_for_a_time,
        reading_a_chunk_extends_the_life_of_the_rest,
        an_upload_swept_before_its_end_is_not_kept,
        a_broken_upload_of_many_chunks_leaves_nothing;
}
