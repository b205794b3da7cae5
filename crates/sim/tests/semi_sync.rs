//! A source crashes before a replica has acknowledged, and comes back as the replica of its former replica:
//! transactions held at the gate must be truncated from log, binlog and engines.

use std::sync::Arc;

use cohort_commit::{LogLayout, RecoveryError, Row, Unreleased};
use cohort_sim::{Bank, Disk, Logged, Replica, Script, Setup, World, check};
use cohort_vfs::{Fault, FaultFs, MemFs};

const SCRIPT: Script = Script { seed: 7, transfers: 40, resets: false, logged: Logged::All };
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

/// Checks that binlog and engines agree. Returns the number of transfers.
fn survivors(world: &World, disk: &Disk, bank: &Bank) -> u64 {
    let without_replies = Bank { acknowledged: Vec::new(), ..bank.clone() };
    check(world, disk, &without_replies, SCRIPT).expect("binlog and engines agree");
    world.transfers_done()
}

#[test]
fn nothing_that_the_replica_lacks_survives_the_cut_and_nothing_else_goes() {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let replica = Replica::attach(&world);
    let mut bank = Bank::default();
    bank.run_with(&world, SCRIPT, &replica);
    assert!(replica.transactions() < bank.next, "the last group is not confirmed");
    let left = memory.kill_clone();

    let kept = left.kill_clone();
    let world = World::open(&disk(&kept)).expect("recovers");
    assert_eq!(survivors(&world, &disk(&kept), &bank), bank.next, "without the setting the log decides (I2)");

    let world = World::open_as(&disk(&left), CUT).expect("recovers");
    let there = survivors(&world, &disk(&left), &bank);
    assert_eq!(format!("{:?}", Row::CutUnreleased), "CutUnreleased");
    assert_eq!(world.coordinator.recovered().cut, bank.next - there);
    assert!(there <= replica.transactions(), "{there} survive, the replica has {}", replica.transactions());
    // Truncated transactions are gone for good: the next start does not see them, and new commits replace
    // them.
    let mut again = Bank { next: there, ..Bank::default() };
    again.run(&world, Script { transfers: there + 5, ..SCRIPT });
    let last = left.kill_clone();
    let world = World::open(&disk(&last)).expect("recovers");
    assert_eq!(survivors(&world, &disk(&last), &again), again.next);
}

#[test]
fn commits_released_without_a_replica_are_never_cut() {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let replica = Replica::attach(&world);
    let mut bank = Bank::default();
    bank.run_with(&world, SCRIPT, &replica);
    assert!(replica.give_up(&world));
    bank.run(&world, Script { transfers: SCRIPT.transfers + 3, ..SCRIPT });
    let left = memory.kill_clone();
    let world = World::open_as(&disk(&left), CUT).expect("recovers");
    assert_eq!(world.coordinator.recovered().cut, 0, "clients had their replies (I4)");
    check(&world, &disk(&left), &bank, SCRIPT).expect("all there");
    assert_eq!(world.transfers_done(), bank.next);
}

#[test]
fn a_checkpoint_never_gets_ahead_of_the_replica() {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let replica = Replica::attach(&world);
    let mut bank = Bank::default();
    bank.run_with(&world, SCRIPT, &replica);
    assert!(world.coordinator.checkpoint().is_err(), "put off: a group is held");
    replica.confirm(&world);
    world.coordinator.checkpoint().expect("nothing is held");
}

#[test]
fn after_a_crash_anywhere_the_cut_source_is_a_prefix_of_its_replica() {
    let (mut crashes, mut cuts) = (0, 0);
    for at in 0.. {
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::CrashAt(at));
        let faulty: Disk = Arc::new(faults.clone());
        let mut bank = Bank::default();
        let mut on_replica = 0;
        if let Ok(world) = World::open(&faulty) {
            let replica = Replica::attach(&world);
            bank.run_with(&world, SCRIPT, &replica);
            on_replica = replica.transactions();
        }
        if !faults.crashed() {
            break;
        }
        crashes += 1;
        for seed in 0..2 {
            let left = memory.crash_clone(seed);
            match World::open_as(&disk(&left), CUT) {
                Ok(world) => {
                    let there = survivors(&world, &disk(&left), &bank);
                    assert!(there <= on_replica, "crash {at}: {there} survive, the replica has {on_replica}");
                    cuts += u64::from(world.coordinator.recovered().cut > 0);
                }
                Err(RecoveryError::Refused { row, what, .. }) => panic!("crash {at}: {row:?}: {what}"),
                Err(other) => panic!("crash {at}: {other}"),
            }
        }
    }
    assert!(crashes > 50 && cuts > 20, "{crashes} crashes, {cuts} cuts");
}
