//! Every disk operation fails once, in turn, with an I/O error or a full disk. The server must either stop
//! with a reason, or refuse the affected statement and continue. It must never keep running while refusing
//! every write (I6). Everything acknowledged must be there after the next start.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cohort_commit::{LogLayout, PurgeRule};
use cohort_sim::{Bank, Disk, Logged, Script, Setup, World, check};
use cohort_vfs::{Fault, FaultFs, MemFs};

const SCRIPT: Script = Script { seed: 1, transfers: 24, resets: true, logged: Logged::All };

/// The state of the server after an I/O error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The run ended before the operation that was to fail.
    NotReached,
    Stopped,
    WentOn,
}

/// Runs transfers with rotations, checkpoints and a PURGE, then more transfers.
fn run(setup: Setup, at: u64, kind: ErrorKind) -> Outcome {
    let memory = MemFs::new();
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let disk: Disk = Arc::new(faults.clone());
    let world = World::open_as(&disk, setup).expect("opens without a fault");
    let opened = faults.ops();
    faults.set(Fault::ErrorAt(opened + at, kind));
    let what = format!("{}, operation {at}, {kind:?}", setup.layout);
    let mut bank = Bank::default();
    bank.run(&world, SCRIPT);
    let is_stopped = || world.is_stopped.load(Ordering::SeqCst);
    if !is_stopped() {
        // A statement may fail, the server must not.
        let _ = world.coordinator.purge_binlog(PurgeRule::TotalBytes(8 << 10));
        world.coordinator.tick();
    }
    let is_reached = faults.ops() > opened + at;
    if !is_stopped() {
        // The transfer that met the fault was refused, which ended the run. Further ones are refused until
        // the background threads of a real server retry, which `tick` simulates.
        let wanted = bank.next + 20;
        for _ in 0..4 {
            bank.run(&world, Script { transfers: wanted, ..SCRIPT });
            let _ = world.coordinator.with_binlog_files(|_| ());
            world.coordinator.tick();
        }
        assert!(bank.next >= wanted || is_stopped(), "{what}: lives on and refuses every write");
    }
    let outcome = match (is_reached, is_stopped()) {
        (false, _) => Outcome::NotReached,
        (true, true) => Outcome::Stopped,
        (true, false) => {
            world.coordinator.close().unwrap_or_else(|e| panic!("{what}: does not stop: {e}"));
            Outcome::WentOn
        }
    };
    drop(world);
    faults.set(Fault::None);
    let left: Disk = Arc::new(memory.crash_clone(at));
    let world = World::open_as(&left, setup).unwrap_or_else(|e| panic!("{what}: does not start again: {e}"));
    // A PURGE removes events of old transfers, which the check expects.
    if bank.next < 24 {
        check(&world, &left, &bank, SCRIPT).unwrap_or_else(|e| panic!("{what}: {}", e.0));
    }
    outcome
}

fn outcomes(layout: LogLayout, kind: ErrorKind) -> (usize, usize) {
    let (mut stopped, mut went_on) = (0, 0);
    for at in 0.. {
        match run(Setup::of(layout), at, kind) {
            Outcome::NotReached => break,
            Outcome::Stopped => stopped += 1,
            Outcome::WentOn => went_on += 1,
        }
    }
    (stopped, went_on)
}

const LAYOUTS: [LogLayout; 2] = [LogLayout::Shared, LogLayout::Separate];

#[test]
fn an_io_error_ends_the_server_or_refuses_one_statement() {
    for layout in LAYOUTS {
        let (stopped, went_on) = outcomes(layout, ErrorKind::Other);
        assert!(stopped > 50 && went_on > 0, "{layout}: stopped {stopped}, went on {went_on}");
    }
}

#[test]
fn a_disk_that_is_full_for_a_moment_is_no_end() {
    for layout in LAYOUTS {
        let (_, went_on) = outcomes(layout, ErrorKind::StorageFull);
        assert!(went_on > 30, "{layout}: went on {went_on}");
    }
}
