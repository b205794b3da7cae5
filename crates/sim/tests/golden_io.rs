//! The order of writes, syncs and renames of the whole commit path, as golden traces: a lost sync shows up as
//! a diff.
//!
//! `UPDATE_GOLDEN=1 cargo test -p cohort-sim --test golden_io` rewrites them.

use std::path::PathBuf;
use std::sync::Arc;

use cohort_commit::LogLayout;
use cohort_sim::{Bank, Disk, Logged, Script, Setup, World};
use cohort_vfs::{MemFs, TraceFs};

fn assert_golden(name: &str, trace: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.trace"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes the folder");
        std::fs::write(&path, trace).expect("writes");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(trace, golden, "{name}: rewrite with UPDATE_GOLDEN=1 if the change is meant");
}

#[test]
fn the_commit_path_writes_and_syncs_in_this_order() {
    trace_of(Setup::default(), "commit_path");
}

#[test]
fn separate_logs_are_synced_before_the_binlog_is_written() {
    trace_of(Setup::of(LogLayout::Separate), "commit_path_separate");
}

fn trace_of(setup: Setup, name: &str) {
    let memory = MemFs::new();
    let trace = TraceFs::new(Arc::new(memory.clone()));
    let disk: Disk = Arc::new(trace.clone());

    trace.note("# a new data directory");
    let world = World::open_as(&disk, setup).expect("opens");
    let mut bank = Bank::default();
    let script = |transfers| Script { seed: 1, transfers, resets: false, logged: Logged::All };

    trace.note("# one transaction: one write, one sync");
    bank.run(&world, script(1));
    trace.note("# a group of two: one write, one sync; then a rotation, in the log only");
    bank.run(&world, script(3));
    trace.note("# the binlog files catch up: buffered writes after the log");
    world.binlog_files().expect("written");
    trace.note("# a group of four, then a checkpoint");
    bank.run(&world, script(7));
    trace.note("# a large transaction: spilled and synced before its group");
    bank.run(&world, script(11));
    trace.note("# a clean stop");
    world.coordinator.close().expect("stops");
    drop(world);
    trace.note("# a start after a clean stop");
    let world = World::open_as(&disk, setup).expect("opens");
    bank.run(&world, script(12));
    drop(world);
    trace.note("# a start after a kill: replay, the binlog completed");
    World::open_as(&disk, setup).expect("recovers");
    assert_golden(name, &trace.take());
}
