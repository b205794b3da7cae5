//! The part of the crash explorer that runs in every test run, with fixed seeds, which are printed.

use cohort_commit::LogLayout;
use cohort_sim::{Logged, Script, Setup, explore, explore_recovery};

const SCRIPT: Script = Script { seed: 20, transfers: 60, resets: true, logged: Logged::All };
/// A third of the transfers depends on transfers that are not in the binlog.
const SOME_LOGGED: Script = Script { logged: Logged::Some, transfers: 24, ..SCRIPT };
const NONE_LOGGED: Script = Script { logged: Logged::None, resets: false, transfers: 24, ..SCRIPT };

/// The log is archived, which RESET MASTER would refuse.
const ARCHIVED: Script = Script { resets: false, ..SOME_LOGGED };

fn archived_separate() -> Setup {
    Setup { is_archived: true, ..Setup::of(LogLayout::Separate) }
}

fn every_operation(script: Script, setup: Setup) {
    let explored = explore(script, setup, 0, 1).expect("no violation");
    println!("{setup:?} {script:?}: {explored:?}");
    assert!(explored.crashes > 100, "the script has many operations: {explored:?}");
    assert!(explored.acknowledged > 0);
}

fn every_operation_of_recoveries(script: Script, setup: Setup, step: usize) {
    let mut crashes = 0;
    for at in (5..).step_by(step) {
        let explored = explore_recovery(script, setup, at).expect("no violation");
        if explored == Default::default() {
            break;
        }
        crashes += explored.crashes;
    }
    println!("{setup:?} {script:?}: {crashes} crashes of recoveries");
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn a_crash_at_any_write_or_sync_keeps_every_promise() {
    every_operation(SCRIPT, Setup::default());
}

#[test]
fn a_crash_of_the_recovery_is_recovered_from() {
    every_operation_of_recoveries(SCRIPT, Setup::default(), 37);
}

#[test]
fn a_crash_at_any_write_or_sync_of_separate_logs_keeps_every_promise() {
    every_operation(Script { transfers: 40, ..SCRIPT }, Setup::of(LogLayout::Separate));
    every_operation(ARCHIVED, archived_separate());
}

#[test]
fn unlogged_statements_keep_their_order_with_logged_ones() {
    every_operation(SOME_LOGGED, Setup::of(LogLayout::Separate));
    every_operation(SOME_LOGGED, Setup::default());
}

#[test]
fn without_a_binlog_the_coordinator_s_log_decides() {
    every_operation(NONE_LOGGED, Setup { binlog: None, ..Setup::of(LogLayout::Separate) });
}

#[test]
fn a_crash_of_the_recovery_of_separate_logs_is_recovered_from() {
    every_operation_of_recoveries(SCRIPT, Setup::of(LogLayout::Separate), 97);
    every_operation_of_recoveries(SOME_LOGGED, Setup::of(LogLayout::Separate), 97);
    every_operation_of_recoveries(ARCHIVED, archived_separate(), 197);
}
