//! Users on SQLite and on PostgreSQL. The cases are listed here once, so that a backend cannot
//! forget one.

mod callers;
mod changing;
mod database;
mod deleting;
mod guessing;
mod logins;
mod nodes;
mod outsiders;
mod refreshing;
mod starts;
mod test_door;
mod tokens;

wakeline_testkit::conformance! {
    logins:
        a_guest_has_a_token_and_no_password,
        whoever_registers_logs_in,
        an_email_is_registered_once_whatever_its_case,
        who_registers_does_not_choose_its_rights,
        a_wrong_password_and_an_unknown_email_look_the_same,
        who_is_not_active_does_not_log_in,
        what_does_not_fit_is_named,
        what_the_settings_do_not_open_is_closed,
        a_superuser_registers_others,
        in_dev_mode_everybody_is_a_superuser,
        only_so_many_passwords_are_checked_at_once,
        logging_out_takes_a_token;
    guessing:
        who_guesses_has_to_wait_whether_the_account_exists_or_not,
        who_guesses_does_not_lock_the_owner_out,
        a_long_body_is_refused_before_it_is_read;
    changing:
        i_change_my_email_and_password,
        i_do_not_change_my_rights,
        another_password_ends_the_tokens,
        an_email_of_somebody_else_is_refused,
        another_email_is_not_verified,
        a_superuser_sees_and_changes_everybody,
        nobody_else_does,
        a_change_is_seen_at_once;
    deleting:
        a_deleted_user_is_nobody,
        its_workers_leave_first,
        who_hangs_up_has_deleted_all_the_same,
        workers_that_stay_keep_the_user,
        a_worker_that_is_being_made_keeps_its_user,
        a_guest_goes_when_its_time_is_over,
        a_guest_that_works_or_has_a_password_stays;
    tokens:
        a_token_of_fastapi_users_is_taken,
        a_forged_token_is_not_taken,
        a_token_of_nobody_is_not_taken;
    callers:
        without_a_token,
        with_a_bad_token,
        with_a_good_token,
        in_dev_mode_without_a_token,
        open_lists_are_for_everybody,
        a_socket_is_known_by_its_token;
    outsiders:
        whom_the_server_lets_in_is_a_user,
        its_role_says_whether_it_is_a_superuser,
        it_has_nothing_to_change_here,
        it_can_be_shut_out,
        many_at_once_are_one_user;
    refreshing:
        a_token_past_half_of_its_time_is_followed_by_another,
        a_fresh_one_is_not,
        who_is_not_taken_gets_none,
        who_logs_out_gets_none;
    starts:
        the_secret_is_shared_by_all_who_open,
        a_configured_secret_is_used_instead,
        the_admin_is_made_and_kept,
        an_admin_that_does_not_fit_is_refused;
    nodes:
        one_of_two_registers,
        what_another_node_changes_is_seen_soon,
        a_known_user_costs_no_question;
}
