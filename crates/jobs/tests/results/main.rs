//! The conformance suite of the places for answers: every case runs on each of them. What only one of
//! them promises follows in modules of its own.
//!
//! The cases are listed here once, so that a place cannot forget one; a case that is not listed is
//! dead code, which the build reports.

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
        what_was_put_is_found_by_its_key_alone,
        many_keys_are_answered_in_their_order,
        no_keys_are_no_answer,
        a_later_answer_takes_the_place_of_an_earlier,
        a_problem_is_told_from_an_answer,
        an_answer_is_over_after_its_time,
        any_bytes_come_back,
        an_empty_answer_is_one,
        a_large_answer_comes_back,
        answers_around_the_length_of_a_chunk_come_back,
        who_reads_one_that_goes_gets_all_of_it,
        the_same_bytes_have_the_same_tag_everywhere,
        another_node_finds_what_was_put;
    locks:
        a_question_is_asked_once,
        a_mark_is_seen_by_those_who_look,
        a_mark_whose_time_is_over_is_taken_over,
        an_answer_takes_the_mark_off,
        what_has_been_answered_is_not_asked,
        what_was_answered_and_is_over_is_asked_again,
        the_same_time_again_is_the_same_mark,
        a_mark_is_taken_off_by_its_own_token_only,
        a_mark_is_taken_off_without_a_token,
        what_is_in_flight_is_told_oldest_first,
        what_is_in_flight_belongs_to_a_registration,
        a_ready_check_holds_for_an_answer_or_an_unsent_request;
    races:
        one_of_fifty_on_two_nodes_asks,
        two_nodes_that_ask_the_same_in_another_order_do_not_fail,
        whoever_comes_while_it_is_answered_does_not_ask_again,
        a_large_answer_that_is_replaced_all_the_time_is_read_whole;
    uploads:
        one_that_says_that_it_is_too_large_is_refused,
        one_that_turns_out_too_large_is_refused,
        one_of_just_the_limit_is_kept,
        one_that_stops_coming_is_given_up,
        one_that_breaks_off_is_not_kept,
        one_that_is_coming_leaves_memory_to_others,
        one_whose_caller_is_gone_comes_to_its_end;
    forgetting:
        earlier_registrations_are_forgotten,
        a_provider_that_is_gone_is_forgotten,
        more_than_one_slice_is_forgotten,
        what_is_over_is_swept,
        a_sweep_says_when_there_may_be_more;
}

// What is kept as values, and in pieces if it is long.
conformance! {
    in_chunks
    chunks:
        a_large_answer_is_never_in_memory_as_a_whole,
        an_answer_that_has_lost_a_chunk_breaks_off,
        chunks_expire_some_time_after_their_answer,
        what_is_replaced_or_forgotten_is_left_to_its_readers,
        reading_keeps_the_rest,
        one_that_was_swept_before_its_end_is_not_kept,
        a_broken_upload_of_many_chunks_leaves_nothing;
}
