//! XA branches over both engines, crashed at every write and sync: every acknowledged half must survive (I4),
//! and binlog, engines and prepared branches must match the same prefix (I1, I2). If a source is truncated to
//! the state of its replica, a branch whose end was truncated must be prepared again.

use std::sync::Arc;

use cohort_commit::{LogLayout, Unreleased};
use cohort_sim::{Branches, Disk, Replica, Setup, World, check_branches};
use cohort_vfs::{Fault, FaultFs, MemFs};

const HALVES: u64 = 28;
const CUT: Setup = Setup {
    right_engine: 2,
    binlog: Some("binlog"),
    unreleased: Unreleased::Cut,
    layout: LogLayout::Shared,
    is_archived: false,
};

fn disk(memory: &MemFs) -> Disk {
    Arc::new(memory.clone())
}

/// Continues to the end of the sequence, across a clean stop.
fn finish(left: &MemFs, world: World, setup: Setup, halves: u64, what: &str) {
    let mut branches = Branches::resume(&world, halves);
    branches.run(&world, HALVES + 2);
    let end = branches.next;
    world.coordinator.close().expect(what);
    drop(world);
    let world = World::open_as(&disk(left), setup).expect(what);
    assert_eq!(check_branches(&world, &disk(left)).expect(what), end, "{what}");
}

#[test]
fn a_crash_anywhere_keeps_each_half_that_was_acknowledged() {
    crash_anywhere(Setup::default(), 1);
}

#[test]
fn a_crash_anywhere_with_separate_logs_keeps_each_half_that_was_acknowledged() {
    crash_anywhere(Setup::of(LogLayout::Separate), 3);
}

/// Crashes at every `step`-th operation.
fn crash_anywhere(setup: Setup, step: u64) {
    let mut crashes = 0;
    for at in (0..).step_by(step as usize) {
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::CrashAt(at));
        let faulty: Disk = Arc::new(faults.clone());
        let mut branches = Branches::default();
        if let Ok(world) = World::open_as(&faulty, setup) {
            branches.run(&world, HALVES);
        }
        if !faults.crashed() {
            break;
        }
        crashes += step;
        let left = [memory.crash_clone(at), memory.crash_clone(!at), memory.kill_clone()];
        for (n, left) in left.into_iter().enumerate() {
            let what = format!("operation {at}, {}", ["power failure", "another", "kill"][n]);
            let world = World::open_as(&disk(&left), setup).expect(&what);
            let halves = check_branches(&world, &disk(&left)).expect(&what);
            assert!(halves >= branches.acknowledged, "{what}: {halves} of {}", branches.acknowledged);
            assert!(halves <= branches.next + 1, "{what}");
            finish(&left, world, setup, halves, &what);
        }
    }
    assert!(crashes > 100, "only {crashes} operations");
}

#[test]
fn an_end_that_is_cut_leaves_its_branch_prepared() {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let replica = Replica::attach(&world);
    let mut cut_ends = 0;
    let mut branches = Branches::default();
    for halves in 1..HALVES {
        branches.run_with(&world, halves, &replica);
        let left = memory.kill_clone();
        let kept = left.kill_clone();
        let recovered = World::open(&disk(&kept)).expect("recovers");
        assert_eq!(check_branches(&recovered, &disk(&kept)).expect("whole"), halves, "the log decides (I2)");
        let recovered = World::open_as(&disk(&left), CUT).expect("recovers");
        let there = check_branches(&recovered, &disk(&left)).expect("whole");
        assert_eq!(there, replica.transactions(), "what the replica has, and no more");
        // Halves alternate: every second one is an end.
        cut_ends += u64::from(there < halves && halves % 2 == 1 && halves > 1);
        finish(&left, recovered, Setup::default(), there, "after the cut");
    }
    assert!(cut_ends > 5, "only {cut_ends} ends were cut");
}
