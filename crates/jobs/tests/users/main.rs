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
        a_registered_user_logs_in,
        an_email_is_registered_once_whatever_its_case,
        a_registration_cannot_set_rights,
        a_wrong_password_and_an_unknown_email_look_the_same,
        an_inactive_user_cannot_log_in,
        invalid_fields_of_a_registration_are_named,
        guests_and_registration_are_refused_when_they_are_off,
        a_superuser_registers_users_when_registration_is_off,
        in_dev_mode_every_caller_is_a_superuser,
        password_checks_past_the_limit_are_refused,
        a_logout_needs_a_token;
    guessing:
        repeated_failed_logins_are_delayed_whether_the_account_exists_or_not,
        guesses_from_another_address_do_not_lock_the_owner_out,
        a_body_over_the_limit_is_refused_unread;
    changing:
        a_user_changes_its_own_email_and_password,
        a_user_cannot_change_its_own_rights,
        a_new_password_invalidates_the_tokens,
        an_email_of_another_user_is_refused,
        a_new_email_is_not_verified,
        a_superuser_reads_and_changes_every_user,
        a_user_who_is_no_superuser_cannot_read_or_change_users,
        a_change_takes_effect_at_once;
    deleting:
        a_deleted_user_is_not_let_in,
        the_workers_of_a_user_are_removed_before_it_is_deleted,
        a_deletion_whose_caller_hung_up_is_completed,
        a_user_whose_workers_cannot_be_removed_is_not_deleted,
        a_user_whose_worker_is_being_created_is_not_deleted,
        a_guest_is_deleted_when_its_time_is_over,
        a_guest_with_a_worker_or_a_password_is_not_deleted;
    tokens:
        a_token_of_fastapi_users_is_accepted,
        a_forged_token_is_refused,
        a_token_of_an_unknown_user_is_refused;
    callers:
        a_caller_without_a_token_is_refused,
        a_caller_with_a_bad_token_is_refused,
        a_caller_with_a_good_token_is_identified,
        in_dev_mode_a_caller_needs_no_token,
        open_lists_need_no_token,
        a_socket_is_identified_by_its_token;
    outsiders:
        a_subject_of_the_server_is_a_user,
        the_role_of_the_subject_decides_whether_it_is_a_superuser,
        a_subject_of_the_server_cannot_change_its_user,
        a_subject_of_the_server_can_be_deactivated,
        concurrent_calls_of_a_subject_create_one_user;
    refreshing:
        a_token_past_half_of_its_life_is_renewed,
        a_fresh_token_is_not_renewed,
        a_caller_that_was_not_identified_gets_no_new_token,
        a_logout_gets_no_new_token;
    starts:
        all_nodes_share_the_generated_secret,
        a_configured_secret_is_used_instead,
        the_configured_admin_is_created_and_reset_at_each_start,
        an_invalid_admin_is_refused;
    nodes:
        one_of_two_concurrent_registrations_succeeds,
        a_change_on_another_node_takes_effect_soon,
        a_cached_user_costs_no_read_of_the_store;
}
