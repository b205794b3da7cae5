//! One test for each row of the recovery table.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{IndexId, TrxId};
use cohort_commit::{CommitRequest, PurgeRule, RecoveryError, Row};
use cohort_engine::ReadAt;
use cohort_locks::WritePermit;
use cohort_sim::{Bank, Disk, Logged, Script, Setup, World, check, explore};
use cohort_vfs::{Fault, FaultFs, MemFs, OpenMode};

/// Three transfers and a rotation, no checkpoint.
const SCRIPT: Script = Script { seed: 3, transfers: 3, resets: false, logged: Logged::All };

fn disk(memory: &MemFs) -> Disk {
    Arc::new(memory.clone())
}

/// A server that ran the script and was killed: nothing was checkpointed, and the last events are not in the
/// binlog files.
fn killed(script: Script) -> (MemFs, Bank) {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let mut bank = Bank::default();
    bank.run(&world, script);
    assert_eq!(bank.acknowledged.len() as u64, bank.next);
    (memory.kill_clone(), bank)
}

/// Returns the bytes of a file; empty if it does not exist.
fn read(memory: &MemFs, path: &str) -> Vec<u8> {
    if !disk(memory).exists(Path::new(path)) {
        return Vec::new();
    }
    let file = disk(memory).open(Path::new(path), OpenMode::Read).expect("opens");
    let mut bytes = vec![0; file.len().expect("length") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    bytes
}

fn files_below(memory: &MemFs, dir: &str) -> Vec<PathBuf> {
    let names = disk(memory).list(Path::new(dir)).expect("lists");
    names.into_iter().map(|name| Path::new(dir).join(name)).collect()
}

fn remove_all(memory: &MemFs, dir: &str) {
    for path in files_below(memory, dir) {
        disk(memory).remove(&path).expect("removes");
    }
}

fn refusal(memory: &MemFs, setup: Setup) -> Row {
    let before: Vec<Vec<u8>> =
        files_below(memory, "/data/log").iter().map(|p| read(memory, p.to_str().expect("text"))).collect();
    match World::open_as(&disk(memory), setup) {
        Err(RecoveryError::Refused { row, what, cure }) => {
            assert!(!what.is_empty() && !cure.is_empty());
            let after: Vec<Vec<u8>> = files_below(memory, "/data/log")
                .iter()
                .map(|p| read(memory, p.to_str().expect("text")))
                .collect();
            assert!(before.is_empty() || before == after, "a refusal leaves the log as it was");
            row
        }
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn complete_records_are_replayed() {
    assert_eq!(format!("{:?}", Row::Replay), "Replay");
    let (memory, bank) = killed(SCRIPT);
    let world = World::open(&disk(&memory)).expect("recovers");
    let recovered = world.coordinator.recovered();
    assert_eq!((recovered.commits, recovered.replayed, recovered.skipped), (bank.next, 2 * bank.next, 0));
    check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");
}

#[test]
fn redo_before_an_engines_checkpoint_is_skipped() {
    assert_eq!(format!("{:?}", Row::Skip), "Skip");
    // A run with checkpoints has an operation between the engine's checkpoint and the log's, at which the
    // crash must happen.
    let script = Script { transfers: 10, ..SCRIPT };
    let mut skipped = 0;
    for at in 0.. {
        let memory = MemFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::CrashAt(at));
        let faulty: Disk = Arc::new(faults.clone());
        if let Ok(world) = World::open(&faulty) {
            Bank::default().run(&world, script);
        }
        if !faults.crashed() {
            break;
        }
        let left = memory.kill_clone();
        if let Ok(world) = World::open(&disk(&left)) {
            skipped = skipped.max(world.coordinator.recovered().skipped);
        }
    }
    assert!(skipped > 0, "some crash left an engine ahead of the log's checkpoint");
}

#[test]
fn binlog_bytes_are_completed_or_found_present() {
    let (memory, bank) = killed(SCRIPT);
    // The in-use flag of the format description is cleared when the file is closed.
    const IN_USE_OFFSET: usize = 21;
    let mut before = read(&memory, "/data/binlog.000001");
    before[IN_USE_OFFSET] = 0;
    let world = World::open(&disk(&memory)).expect("recovers");
    let completed = read(&memory, "/data/binlog.000001");
    assert!(completed.len() > before.len() && completed.starts_with(&before), "{:?}", Row::Complete);
    check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");

    // Killed again before any checkpoint: recovery writes the same bytes from the log again and finds them
    // present.
    let again = memory.kill_clone();
    World::open(&disk(&again)).expect("recovers");
    assert_eq!(read(&again, "/data/binlog.000001"), completed, "{:?}", Row::Present);
}

#[test]
fn undurable_writes_are_nowhere() {
    // The explorer checks for every torn record that nothing of it survives (I3): Row::Cut.
    let explored = explore(Script { transfers: 5, ..SCRIPT }, Setup::default(), 0, 1).expect("no violation");
    assert!(explored.crashes > 10, "{:?}: {explored:?}", Row::Cut);
}

#[test]
fn redo_of_an_unknown_participant_is_refused() {
    let (memory, _) = killed(SCRIPT);
    assert_eq!(refusal(&memory, Setup { right_engine: 9, ..Setup::default() }), Row::Unknown);
}

#[test]
fn a_lost_log_is_refused() {
    let (memory, _) = killed(Script { transfers: 10, ..SCRIPT });
    let (without_engines, log_only) = (memory.kill_clone(), memory.kill_clone());
    remove_all(&log_only, "/data/log");
    assert_eq!(refusal(&log_only, Setup::default()), Row::EngineAhead);

    for dir in ["/data/log", "/data/left", "/data/right"] {
        remove_all(&without_engines, dir);
    }
    assert_eq!(refusal(&without_engines, Setup::default()), Row::BinlogAhead);
}

#[test]
fn a_binlog_that_is_off_or_renamed_is_refused_while_the_log_holds_its_bytes() {
    let (memory, _) = killed(SCRIPT);
    for binlog in [None, Some("other")] {
        assert_eq!(refusal(&memory.kill_clone(), Setup { binlog, ..Setup::default() }), Row::BinlogOff);
    }
    // After a clean stop nothing needs completing, so either setting is accepted.
    let world = World::open(&disk(&memory)).expect("recovers");
    world.coordinator.close().expect("stops");
    drop(world);
    World::open_as(&disk(&memory), Setup { binlog: None, ..Setup::default() })
        .expect("starts without a binlog");
}

/// The control file decides RESET MASTER: from then on recovery removes existing files, until the new file is
/// synced.
#[test]
fn files_of_before_a_reset_are_removed() {
    let (memory, bank) = killed(Script { transfers: 10, ..SCRIPT });
    let mut restarted = 0;
    for at in 0.. {
        let memory = memory.kill_clone();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        let world = World::open(&(Arc::new(faults.clone()) as Disk)).expect("recovers");
        faults.set(Fault::CrashAt(faults.ops() + at));
        let bank = Bank { reset_tried: bank.next, ..bank.clone() };
        let is_reset = world.coordinator.reset_binlog(NonZeroU32::new(2).expect("2")).is_ok();
        if !faults.crashed() {
            assert!(is_reset, "nothing failed");
            assert_eq!(world.binlog_files().expect("written"), [PathBuf::from("/data/binlog.000002")]);
            break;
        }
        for left in [memory.kill_clone(), memory.crash_clone(at)] {
            let again = left.kill_clone();
            let world = World::open(&disk(&left)).expect("recovers");
            check(&world, &disk(&left), &bank, SCRIPT).unwrap_or_else(|e| panic!("{at}: {e:?}"));
            if world.coordinator.recovered().is_binlog_restarted {
                restarted += 1;
                let files = world.binlog_files().expect("written");
                // The log may contain the head of that file, and a start begins another one.
                assert_eq!(files[0], PathBuf::from("/data/binlog.000002"), "{:?}", Row::Restarted);
                assert!(files.len() <= 2, "{files:?}");
                let off = Setup { binlog: None, ..Setup::default() };
                assert_eq!(refusal(&again, off), Row::BinlogOff);
            }
        }
    }
    assert!(restarted > 4, "{restarted}");
}

#[test]
fn a_binlog_reader_blocks_reset_master() {
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let pins = world.coordinator.with_written_files(|files| files.pins().clone()).expect("on");
    let reader = pins.pin(1, "replica 7").expect("open");
    let refused = world.coordinator.reset_binlog(NonZeroU32::MIN).expect_err("a replica reads");
    assert!(refused.to_string().contains("replica 7"), "{refused}");
    drop(reader);
    world.coordinator.reset_binlog(NonZeroU32::MIN).expect("resets");
    assert!(pins.pin(0, "replica 8").is_some(), "open again");
}

#[test]
fn a_lost_spill_file_is_refused() {
    // The event of transfer 10 is large enough to spill.
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let mut bank = Bank { next: 0, ..Bank::default() };
    bank.run(&world, Script { transfers: 12, ..SCRIPT });
    let left = memory.kill_clone();
    let spilled = files_below(&left, "/data/spill");
    assert!(!spilled.is_empty(), "the large transfer spilled and its copy is not synced yet");
    for path in spilled {
        disk(&left).remove(&path).expect("removes");
    }
    assert_eq!(refusal(&left, Setup::default()), Row::SpillLost);
}

/// Returns the disk after two runs of the script, each with a clean stop, and the left engine's file after
/// the first run.
fn stopped() -> (MemFs, Vec<u8>) {
    let memory = MemFs::new();
    let mut bank = Bank::default();
    let mut first = Vec::new();
    for transfers in [5, 10] {
        let world = World::open(&disk(&memory)).expect("opens");
        bank.run(&world, Script { transfers, ..SCRIPT });
        world.coordinator.close().expect("stops");
        if first.is_empty() {
            first = read(&memory, ENGINE_FILE);
        }
    }
    (memory, first)
}

const ENGINE_FILE: &str = "/data/left/reference.checkpoint";

#[test]
fn an_engine_that_has_lost_what_the_log_let_go_of_is_refused() {
    let (memory, first) = stopped();
    World::open(&disk(&memory.kill_clone())).expect("whole");
    for left in [None, Some(first)] {
        let memory = memory.kill_clone();
        let before = read(&memory, "/data/right/reference.checkpoint");
        disk(&memory).remove(Path::new(ENGINE_FILE)).expect("removes");
        if let Some(bytes) = left {
            let file = disk(&memory).open(Path::new(ENGINE_FILE), OpenMode::CreateNew).expect("creates");
            file.write_at(&bytes, 0).expect("writes");
        }
        assert_eq!(refusal(&memory, Setup::default()), Row::EngineBehind);
        assert!(read(&memory, "/data/right/reference.checkpoint") == before, "nothing was changed");
    }
}

fn used_bytes(memory: &MemFs) -> u64 {
    const LARGE: u64 = 1 << 40;
    memory.set_capacity_bytes(LARGE);
    LARGE - disk(memory).free_bytes(Path::new("/data")).expect("known")
}

/// On a disk that becomes full, a purge of files that recovery does not need must still succeed.
#[test]
fn a_purge_needs_no_space() {
    let memory = MemFs::new();
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let world = World::open(&(Arc::new(faults.clone()) as Disk)).expect("opens");
    let mut bank = Bank::default();
    bank.run(&world, Script { transfers: 60, ..SCRIPT });
    world.coordinator.rotate_binlog().expect("rotates");
    let numbers = || world.coordinator.with_written_files(|files| files.numbers().to_vec()).expect("on");
    world.coordinator.checkpoint().expect("there is space");
    bank.run(&world, Script { transfers: 70, ..SCRIPT });
    let before = numbers();
    let used = used_bytes(&memory);
    memory.set_capacity_bytes(used);
    let kept = before[before.len() - 2];
    let purged = world.coordinator.purge_binlog(PurgeRule::Before(kept)).expect("makes room");
    assert_eq!(purged.files, before[..before.len() - 2]);
    assert!(used_bytes(&memory) < used);
    memory.set_capacity_bytes(u64::MAX);
    world.coordinator.checkpoint().expect("there is space again");
    let world = World::open(&disk(&memory.kill_clone())).expect("recovers");
    let left = world.coordinator.with_written_files(|files| files.numbers()[0]).expect("on");
    assert_eq!(left, kept);
}

#[test]
fn a_lost_binlog_file_or_index_is_refused() {
    let (memory, _) = stopped();
    let files: Vec<PathBuf> = files_below(&memory, "/data")
        .into_iter()
        .filter(|path| path.to_str().is_some_and(|path| path.starts_with("/data/binlog.0")))
        .collect();
    assert!(files.len() > 2);
    for lost in &files {
        let memory = memory.kill_clone();
        disk(&memory).remove(lost).expect("removes");
        assert_eq!(refusal(&memory, Setup::default()), Row::BinlogFileLost, "{}", lost.display());
    }
    disk(&memory).remove(Path::new("/data/binlog.index")).expect("removes");
    assert_eq!(refusal(&memory, Setup::default()), Row::IndexLost);
}

/// Redo in a separate file is kept as long as the log that names it, also across a crash. A file left by a
/// crash is removed immediately.
#[test]
fn spilled_redo_stays_while_the_log_names_it_and_no_longer() {
    const SPACE: IndexId = IndexId(16);
    let memory = MemFs::new();
    let world = World::open(&disk(&memory)).expect("opens");
    let mut trx = world.engines[0].begin();
    trx.put(SPACE, b"large", &vec![7; 17 << 20]).expect("in memory");
    let redo = vec![(world.engines[0].id(), trx.prepare().expect("in memory"))];
    let (locks, permit) = (world.locks.owner(TrxId(1)), WritePermit::unlogged());
    let request = CommitRequest { redo, binlog: None, locks, permit, client: None };
    let prepared = world.coordinator.prepare(request).map_err(|(error, _)| error).expect("there is room");
    let seq = world.coordinator.order(prepared);
    world.coordinator.wait_acknowledged(seq).expect("flushed");
    let spilled = files_below(&memory, "/data/spill");
    assert_eq!(spilled.len(), 1);
    let left = memory.kill_clone();
    for name in ["000000000077.redo", "000000000078.spill"] {
        disk(&left).open(&Path::new("/data/spill").join(name), OpenMode::CreateNew).expect("creates");
    }
    let world = World::open(&disk(&left)).expect("recovers");
    assert_eq!(files_below(&left, "/data/spill"), spilled);
    world.coordinator.checkpoint().expect("frees the log");
    assert!(files_below(&left, "/data/spill").is_empty());
    let mut value = Vec::new();
    assert!(world.engines[0].begin().get(ReadAt::Latest, SPACE, b"large", &mut value).expect("in memory"));
    assert_eq!(value.len(), 17 << 20);
}

/// The copy of a spilled transaction is synced and its spill file removed, while the log still names the file
/// at this kill and at the next one.
#[test]
fn a_name_in_the_log_is_not_given_to_another_spill_file() {
    let mut memory = MemFs::new();
    let mut bank = Bank::default();
    for transfers in [12, 24, 36] {
        let world = World::open(&disk(&memory)).expect("recovers");
        check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");
        bank.run(&world, Script { transfers, ..SCRIPT });
        let files = world.coordinator.binlog_files().expect("the binlog is on");
        if transfers == 12 {
            assert!(!files_below(&memory, "/data/spill").is_empty(), "the large transfer spilled");
            files.sync().expect("syncs");
            assert!(files_below(&memory, "/data/spill").is_empty(), "its copy is synced");
        }
        memory = memory.kill_clone();
    }
    World::open(&disk(&memory)).expect("recovers");
}
