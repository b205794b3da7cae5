//! The crash explorer's share of every test run; the seeds are fixed and printed.

use cohort_sim::{Script, explore, explore_recovery};

const SCRIPT: Script = Script { seed: 20, transfers: 60, resets: true };

#[test]
fn a_crash_at_any_write_or_sync_keeps_every_promise() {
    let explored = explore(SCRIPT, 0, 1).expect("no violation");
    println!("{SCRIPT:?}: {explored:?}");
    assert!(explored.crashes > 100, "the script has many operations: {explored:?}");
    assert!(explored.acknowledged > 0);
}

#[test]
fn a_crash_of_the_recovery_is_recovered_from() {
    let mut crashes = 0;
    for at in (5..).step_by(37) {
        let explored = explore_recovery(SCRIPT, at).expect("no violation");
        if explored == Default::default() {
            break;
        }
        crashes += explored.crashes;
    }
    println!("{SCRIPT:?}: {crashes} crashes of recoveries");
    assert!(crashes > 20, "{crashes}");
}
