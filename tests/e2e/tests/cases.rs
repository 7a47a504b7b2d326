//! Faults that were seen at sites, and what strangers and users with few rights could do: each is a case, and has a test.
//!
//! [`CASES`] says which; where the row is a matter of minutes or of one crate, its test lies there, on invented time.

#[path = "cases/calls.rs"]
mod calls;
#[path = "cases/media.rs"]
mod media;
#[path = "cases/peers.rs"]
mod peers;
#[path = "cases/rights.rs"]
mod rights;
#[path = "cases/strangers.rs"]
mod strangers;

use std::path::{Path, PathBuf};

/// Name of the case, file of its test from the top of the checkout, and the test; a case may have several.
const CASES: &[(&str, &str, &str)] = &[
    (
        "amplification",
        "tests/e2e/tests/cases/strangers.rs",
        "who_has_proved_nothing_is_sent_at_most_one_and_a_half_times_what_was_said_in_his_name",
    ),
    (
        "amplification",
        "crates/driver/tests/sip/proofs.rs",
        "nobody_is_sent_more_than_one_and_a_half_times_what_was_sent_in_his_name",
    ),
    (
        "amplification",
        "crates/iax2/tests/registrations.rs",
        "the_shortest_question_of_a_device_without_tokens_is_answered_and_by_one_and_a_half_times_at_most",
    ),
    (
        "cross-site-manager",
        "tests/e2e/tests/cases/rights.rs",
        "a_page_of_another_site_writes_nothing_by_the_doors_of_the_manager",
    ),
    (
        "cross-site-manager",
        "crates/control/src/ami/tests/web.rs",
        "a_page_of_another_site_reaches_no_door_of_the_manager",
    ),
    (
        "dbput-acknowledged",
        "tests/e2e/tests/cases/rights.rs",
        "a_value_of_the_database_is_on_the_disk_when_it_is_acknowledged",
    ),
    (
        "dbput-acknowledged",
        "crates/control/src/ami/tests/actions.rs",
        "a_change_of_the_database_is_acknowledged_when_it_is_on_the_disk",
    ),
    (
        "digest-uri",
        "tests/e2e/tests/cases/strangers.rs",
        "rfc7616_3_4_6_a_proof_calls_the_number_it_was_made_for_and_that_once",
    ),
    (
        "digit-that-lasts",
        "tests/e2e/tests/cases/media.rs",
        "the_sound_of_a_phone_comes_back_soon_after_odd_packets_of_digits",
    ),
    (
        "digit-that-lasts",
        "crates/rtp/src/events.rs",
        "a_digit_that_never_ends_ends_after_a_minute_and_is_not_begun_again",
    ),
    (
        "display-name-in-expressions",
        "tests/e2e/tests/cases/calls.rs",
        "the_name_of_a_caller_changes_no_expression_that_reads_it_in_quotation_marks",
    ),
    (
        "function-inside-function",
        "tests/e2e/tests/cases/rights.rs",
        "a_function_inside_a_function_reads_and_writes_no_further_than_its_user_by_every_door",
    ),
    (
        "function-inside-function",
        "crates/control/src/ami/tests/permissions.rs",
        "no_function_inside_another_reaches_further_than_whoever_asks_may",
    ),
    (
        "insecure-and-register",
        "tests/e2e/tests/cases/strangers.rs",
        "what_is_waived_for_calls_is_not_waived_for_registrations_and_the_rest",
    ),
    (
        "inside-a-dialog",
        "tests/e2e/tests/cases/strangers.rs",
        "rfc3261_12_2_2_nobody_elsewhere_is_obeyed_inside_a_dialog",
    ),
    (
        "inside-a-dialog",
        "crates/driver/tests/sip/proofs.rs",
        "rfc3261_12_2_2_who_knows_the_names_of_a_dialog_is_not_obeyed_from_elsewhere_for_it",
    ),
    (
        "log-lines-of-strangers",
        "tests/e2e/tests/cases/strangers.rs",
        "strangers_can_have_so_many_lines_written_in_a_minute_and_no_more",
    ),
    (
        "log-lines-of-strangers",
        "crates/call/src/security.rs",
        "some_of_an_address_and_some_of_all_are_told_and_the_rest_is_summed_up",
    ),
    (
        "nonce-count-forgotten",
        "crates/sip/src/digest/server.rs",
        "what_a_full_memory_forgets_is_refused_and_what_has_no_count_is_good_once",
    ),
    (
        "regex-on-the-thread-of-calls",
        "tests/e2e/tests/cases/rights.rs",
        "patterns_that_take_long_keep_no_phone_waiting_by_any_door",
    ),
    ("regex-on-the-thread-of-calls", "crates/dialplan/src/ere.rs", "no_search_takes_more_than_its_budget"),
    (
        "time-tells-who-exists",
        "tests/e2e/tests/cases/strangers.rs",
        "who_exists_is_told_neither_by_answers_nor_by_lines_of_the_log_where_guests_may_call",
    ),
    (
        "uniqueid-after-restart",
        "crates/call/src/unique_ids.rs",
        "no_uniqueid_comes_again_however_soon_a_process_follows_another",
    ),
    (
        "who-exists-for-guests",
        "tests/e2e/tests/cases/strangers.rs",
        "who_exists_is_told_neither_by_answers_nor_by_lines_of_the_log_where_guests_may_call",
    ),
    (
        "who-exists-for-guests",
        "crates/driver/tests/sip/proofs.rs",
        "rfc3261_22_every_method_asks_for_a_password_and_tells_nobody_who_exists",
    ),
    (
        "address-without-brackets",
        "tests/e2e/tests/cases/calls.rs",
        "rfc3261_20_10_a_contact_without_brackets_ends_at_its_first_parameter",
    ),
    (
        "address-without-brackets",
        "crates/sip/src/stack/tests/wire.rs",
        "rfc3261_8_1_3_a_final_response_that_cannot_be_read_ends_its_transaction_and_is_told_of",
    ),
    (
        "attended-transfer-queue-log",
        "tests/e2e/tests/cases/calls.rs",
        "what_ended_a_call_of_a_queue_is_what_its_log_says",
    ),
    (
        "cancel-disposition",
        "tests/e2e/tests/cases/calls.rs",
        "a_call_that_its_caller_gave_up_is_told_from_one_that_nobody_answered_where_that_is_wanted",
    ),
    (
        "dial-timeout-two-parts",
        "crates/apps/tests/dial.rs",
        "how_a_dial_ends_is_told_in_variables_and_in_a_record_for_each_leg",
    ),
    (
        "dtmf-running-timestamps",
        "tests/e2e/tests/cases/media.rs",
        "rfc4733_2_5_each_press_is_read_once_whatever_its_timestamps_do",
    ),
    (
        "dtmf-running-timestamps",
        "tests/e2e/tests/cases/media.rs",
        "rfc4733_2_5_1_4_one_press_is_no_code_of_two",
    ),
    (
        "fail2ban-reads-the-log",
        "tests/e2e/tests/bans.rs",
        "the_stock_filter_of_fail2ban_finds_who_was_refused",
    ),
    (
        "heavier-queue-blocks-agent",
        "crates/queue/tests/queues.rs",
        "a_heavier_queue_keeps_a_member_only_for_callers_who_may_get_it",
    ),
    (
        "heavier-queue-blocks-agent",
        "crates/queue/tests/queues.rs",
        "a_caller_who_may_not_get_a_free_member_does_not_keep_it_from_those_behind",
    ),
    (
        "held-party-transferred",
        "tests/e2e/tests/cases/media.rs",
        "rfc3264_8_4_who_takes_over_from_a_held_party_hears_music_until_it_resumes",
    ),
    (
        "options-silent-first-server",
        "crates/driver/tests/sip/outgoing.rs",
        "rfc3263_4_3_a_question_goes_to_the_next_server_before_the_contact_counts_as_gone",
    ),
    (
        "options-silent-first-server",
        "tests/e2e/tests/dns.rs",
        "rfc3263_4_3_a_call_goes_on_to_the_server_that_answers",
    ),
    (
        "packet-length",
        "tests/e2e/tests/cases/media.rs",
        "a_format_with_milliseconds_makes_packets_of_that_length",
    ),
    (
        "park-get-channel",
        "tests/e2e/tests/cases/calls.rs",
        "a_space_tells_who_is_parked_there_and_what_that_channel_carries",
    ),
    (
        "queue-unknown-rule",
        "tests/e2e/tests/cases/calls.rs",
        "a_rule_that_is_not_there_is_told_of_in_the_log_and_the_routine_runs_where_its_place_is",
    ),
    ("queue-unknown-rule", "crates/strowger/tests/check_folders.rs", "every_folder_is_told_as_written"),
    (
        "redirect-several-contacts",
        "crates/driver/tests/sip/carrier.rs",
        "rfc3261_8_1_3_4_those_whom_a_redirection_names_are_called_one_after_the_other",
    ),
    (
        "registrar-rewrites-contact",
        "crates/driver/tests/sip/trunks.rs",
        "rfc3261_10_2_4_our_binding_is_found_however_the_registrar_writes_it",
    ),
    (
        "rtp-timestamp-jumps-back",
        "tests/e2e/tests/cases/media.rs",
        "rfc4733_2_5_each_press_is_read_once_whatever_its_timestamps_do",
    ),
    (
        "rtp-timestamp-jumps-back",
        "tests/e2e/tests/cases/media.rs",
        "rfc3550_5_1_the_other_side_and_the_recording_hear_a_source_that_begins_its_timestamps_anew",
    ),
    (
        "transferor-hangs-up-early",
        "tests/e2e/tests/cases/calls.rs",
        "rfc3515_2_4_4_a_transfer_that_was_accepted_goes_on_when_the_transferer_hangs_up",
    ),
    (
        "transferor-hangs-up-early",
        "crates/driver/tests/sip/transfers.rs",
        "rfc5589_7_a_transferer_may_hang_up_both_calls_before_anybody_has_moved",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_case_has_a_test_that_is_there() {
    for (case, file, test) in CASES {
        let text =
            std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_test = text.split("#[test]").skip(1).any(|after| {
            let named = after.lines().find_map(|line| line.trim().strip_prefix("fn "));
            named.and_then(|line| line.split('(').next()) == Some(test)
        });
        assert!(is_test, "{case}: no test {test} in {file}");
    }
}

#[test]
fn every_folder_of_cases_beside_the_project_has_a_row() {
    let cases = root().join("../shared/cases");
    if !cases.is_dir() {
        println!("skipped: {} is absent", cases.display());
        return;
    }
    let mut seen = 0;
    for kind in ["attacks", "peers"] {
        for entry in std::fs::read_dir(cases.join(kind)).expect("a folder of cases").flatten() {
            if !entry.path().join("run.py").is_file() {
                continue;
            }
            let name = entry.file_name().into_string().expect("a name");
            assert!(CASES.iter().any(|(case, ..)| *case == name), "{kind}/{name} has no row");
            seen += 1;
        }
    }
    assert!(seen > 0, "no case in {}", cases.display());
}
