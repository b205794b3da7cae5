//! Crashes at every k-th operation.
//!
//! An operation is anything that changes the disk: a write, a sync, a change of length, a rename, a removal.
//! The machine stops at the k-th operation, for k = 0, 1, 2, ... until a run has no k-th. A power failure
//! keeps what was synced and a random part of the rest, torn at sectors. A kill of the process keeps
//! everything, but unsynced data can still be lost: after a kill and a restart, power failures are also tried
//! at four points.

use std::sync::Arc;

use cohort_vfs::{Fault, FaultFs, MemFs};

use crate::bank::{Bank, Script, Violation, check};
use crate::world::{Disk, Setup, World};

/// Statistics of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Crashes, each at a different operation.
    pub crashes: u64,
    /// Recoveries checked.
    pub recoveries: u64,
    /// Transfers acknowledged before crashes, summed over all runs.
    pub acknowledged: u64,
}

/// Runs the script until operation `at`. Returns the disk at the crash, the client's record, and whether
/// there was a crash.
fn run_until(script: Script, setup: Setup, at: u64) -> (MemFs, Bank, bool) {
    let memory = MemFs::new();
    let faults = FaultFs::new(Arc::new(memory.clone()));
    faults.set(Fault::CrashAt(at));
    let disk: Disk = Arc::new(faults.clone());
    let mut bank = Bank::default();
    if let Ok(world) = World::open_as(&disk, setup) {
        bank.run(&world, script);
        if !faults.crashed() {
            // Either the script and the clean stop need fewer operations, or the crash happens during the
            // stop.
            let _ = world.coordinator.close();
        }
    }
    (memory, bank, faults.crashed())
}

fn recover_and_check(
    left: MemFs,
    bank: &Bank,
    (script, setup): (Script, Setup),
    what: &str,
) -> Result<(), Violation> {
    let at = |v: Violation| Violation(format!("{what}: {}", v.0));
    let disk: Disk = Arc::new(left);
    let world = World::open_as(&disk, setup).map_err(|e| at(Violation(format!("does not recover: {e}"))))?;
    check(&world, &disk, bank, script).map_err(at)?;
    // The recovered server must work: more transfers, a clean stop, another start.
    let mut bank = Bank { next: world.coordinator.recovered().last_seq.0, ..bank.clone() };
    bank.run(&world, Script { transfers: bank.next + 3, ..script });
    world.coordinator.close().map_err(|e| at(Violation(format!("does not stop: {e}"))))?;
    drop(world);
    let world =
        World::open_as(&disk, setup).map_err(|e| at(Violation(format!("does not start again: {e}"))))?;
    check(&world, &disk, &bank, script).map_err(at)
}

/// Crashes the script at every `step`-th operation, starting with `first`.
pub fn explore(script: Script, setup: Setup, first: u64, step: u64) -> Result<Explored, Violation> {
    let mut explored = Explored::default();
    for at in (first..).step_by(step as usize) {
        let (memory, bank, is_crashed) = run_until(script, setup, at);
        if !is_crashed {
            break;
        }
        explored.crashes += 1;
        explored.acknowledged += bank.acknowledged.len() as u64;
        for seed in 0..2 {
            let what = format!("{setup:?} seed {} operation {at} power failure {seed}", script.seed);
            recover_and_check(memory.crash_clone(seed ^ (at << 8)), &bank, (script, setup), &what)?;
            explored.recoveries += 1;
        }
        let what = format!("{setup:?} seed {} operation {at} kill", script.seed);
        recover_and_check(memory.kill_clone(), &bank, (script, setup), &what)?;
        explored.recoveries += 1;
        let point = CRASH_POINTS[(at / step) as usize % CRASH_POINTS.len()];
        let what = format!("{what}, then a power failure: {point:?}");
        explored.recoveries += fail_after_kill(&memory, &bank, (script, setup), point, &what)?;
    }
    Ok(explored)
}

/// CrashPoint of the power failure in the start after a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrashPoint {
    Started,
    Worked,
    Checkpointed,
    Stopped,
}

const CRASH_POINTS: [CrashPoint; 4] =
    [CrashPoint::Started, CrashPoint::Worked, CrashPoint::Checkpointed, CrashPoint::Stopped];

/// Kills the process, restarts it and then fails the power. Everything that the restart recovered must
/// survive, because clients may have read it.
fn fail_after_kill(
    memory: &MemFs,
    bank: &Bank,
    (script, setup): (Script, Setup),
    point: CrashPoint,
    what: &str,
) -> Result<u64, Violation> {
    let at = |v: String| Violation(format!("{what}: {v}"));
    let left = memory.kill_clone();
    let disk: Disk = Arc::new(left.clone());
    let world = World::open_as(&disk, setup).map_err(|e| at(format!("does not recover: {e}")))?;
    let next = world.coordinator.recovered().last_seq.0;
    let mut bank = Bank { next, acknowledged: (0..next).collect(), ..bank.clone() };
    match point {
        CrashPoint::Started => {}
        CrashPoint::Worked => bank.run(&world, Script { transfers: next + 3, resets: false, ..script }),
        CrashPoint::Checkpointed => {
            world.coordinator.checkpoint().map_err(|e| at(format!("no checkpoint: {e}")))?;
        }
        CrashPoint::Stopped => world.coordinator.close().map_err(|e| at(format!("does not stop: {e}")))?,
    }
    for seed in 0..2 {
        recover_and_check(left.crash_clone(seed), &bank, (script, setup), &format!("{what}, {seed}"))?;
    }
    Ok(2)
}

/// Crashes the script at `at`, then the recovery at each of its operations. Each interrupted recovery is
/// followed by a complete one.
pub fn explore_recovery(script: Script, setup: Setup, at: u64) -> Result<Explored, Violation> {
    let mut explored = Explored::default();
    let (memory, bank, is_crashed) = run_until(script, setup, at);
    if !is_crashed {
        return Ok(explored);
    }
    for again in 0.. {
        let left = memory.crash_clone(at);
        let faults = FaultFs::new(Arc::new(left.clone()));
        faults.set(Fault::CrashAt(again));
        let disk: Disk = Arc::new(faults.clone());
        drop(World::open_as(&disk, setup));
        if !faults.crashed() {
            break;
        }
        explored.crashes += 1;
        let what = format!("{setup:?} seed {} operation {at}, recovery's operation {again}", script.seed);
        recover_and_check(left.crash_clone(again), &bank, (script, setup), &what)?;
        explored.recoveries += 1;
    }
    Ok(explored)
}
