//! One test for each row of the separate layout's recovery table, and the conversion from one layout to the
//! other.

use std::path::Path;
use std::sync::Arc;

use cohort_base::ParticipantId;
use cohort_commit::{Converted, LogLayout, RecoveryError, Row, Unreleased, convert, make_logs};
use cohort_log::LogOptions;
use cohort_sim::{Bank, Disk, Logged, Script, Setup, World, check};
use cohort_vfs::{MemFs, OpenMode, SeededRng, SimClock, World as Machine};

/// One group, and in the longer script another one with a rotation; no checkpoint.
const SCRIPT: Script = Script { seed: 3, transfers: 1, resets: false, logged: Logged::All };
const LONGER: Script = Script { transfers: 3, ..SCRIPT };
const LEFT: &str = "/data/log.engine-1";
const RIGHT: &str = "/data/log.engine-2";
const MAIN: &str = "/data/log";

fn setup() -> Setup {
    Setup::of(LogLayout::Separate)
}

fn disk(memory: &MemFs) -> Disk {
    Arc::new(memory.clone())
}

fn run(memory: &MemFs, bank: &mut Bank, script: Script) {
    let world = World::open_as(&disk(memory), setup()).expect("opens");
    bank.run(&world, script);
    assert_eq!(bank.acknowledged.len() as u64, bank.next);
}

/// A server that ran the script and was killed.
fn killed(script: Script) -> (MemFs, Bank) {
    let (memory, mut bank) = (MemFs::new(), Bank::default());
    run(&memory, &mut bank, script);
    (memory.kill_clone(), bank)
}

fn files_of(memory: &MemFs, dir: &str) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let names = disk(memory).list(Path::new(dir)).expect("lists");
    let read = |name| {
        let path = Path::new(dir).join(name);
        let file = disk(memory).open(&path, OpenMode::Read).expect("opens");
        let mut bytes = vec![0; file.len().expect("length") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        (path, bytes)
    };
    names.into_iter().map(read).collect()
}

fn remove(memory: &MemFs, dir: &str) {
    for (path, _) in files_of(memory, dir) {
        disk(memory).remove(&path).expect("removes");
    }
}

/// Restores a folder from another disk.
fn restore(memory: &MemFs, from: &MemFs, dir: &str) {
    remove(memory, dir);
    for (path, bytes) in files_of(from, dir) {
        let file = disk(memory).open(&path, OpenMode::CreateNew).expect("makes");
        file.write_at(&bytes, 0).expect("writes");
        file.sync_data().expect("syncs");
    }
    disk(memory).sync_dir(Path::new(dir)).expect("syncs");
}

fn refusal(memory: &MemFs, setup: Setup) -> Row {
    let before: Vec<_> = [MAIN, LEFT, RIGHT].iter().map(|dir| files_of(memory, dir)).collect();
    match World::open_as(&disk(memory), setup) {
        Err(RecoveryError::Refused { row, what, cure }) => {
            assert!(!what.is_empty() && !cure.is_empty());
            let after: Vec<_> = [MAIN, LEFT, RIGHT].iter().map(|dir| files_of(memory, dir)).collect();
            assert!(before == after || row == Row::LogLost, "a refusal leaves the logs as they were");
            row
        }
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn binlog_groups_are_replayed_in_every_engine() {
    let (memory, bank) = killed(SCRIPT);
    let world = World::open_as(&disk(&memory), setup()).expect("recovers");
    let recovered = world.coordinator.recovered();
    assert_eq!((recovered.commits, recovered.replayed), (bank.next, 2 * bank.next), "{:?}", Row::Replay);
    assert_eq!(recovered.undecided, 0);
    check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");
}

/// The logs of the engines contain a group whose events are missing in the binlog. It must be truncated
/// everywhere, and later transactions in its place must not be mistaken for it.
#[test]
fn undecided_groups_are_cut_from_every_log() {
    let (memory, mut bank) = killed(SCRIPT);
    let before = memory.kill_clone();
    run(&memory, &mut bank, LONGER);
    let cut = memory.kill_clone();
    let binlogs = files_of(&before, "/data");
    for (path, _) in files_of(&cut, "/data") {
        if path.to_string_lossy().contains("binlog.") {
            disk(&cut).remove(&path).expect("removes");
        }
    }
    for (path, bytes) in binlogs.iter().filter(|(path, _)| path.to_string_lossy().contains("binlog.")) {
        disk(&cut).open(path, OpenMode::CreateNew).expect("makes").write_at(bytes, 0).expect("writes");
    }
    let world = World::open_as(&disk(&cut), setup()).expect("recovers");
    assert!(world.coordinator.recovered().undecided > 0, "{:?}", Row::Undecided);
    let mut kept = Bank { next: 1, acknowledged: vec![0], ..Bank::default() };
    check(&world, &disk(&cut), &kept, SCRIPT).expect("those of before");
    kept.run(&world, Script { transfers: 8, ..SCRIPT });
    drop(world);
    // Killed without a checkpoint: log positions and sequence numbers of the truncated group are in use
    // again.
    let world = World::open_as(&disk(&cut), setup()).expect("recovers again");
    assert_eq!(world.coordinator.recovered().undecided, 0);
    check(&world, &disk(&cut), &kept, SCRIPT).expect("the new ones");
}

#[test]
fn logs_that_do_not_belong_together_are_refused() {
    let (memory, mut bank) = killed(SCRIPT);
    let before = memory.kill_clone();
    run(&memory, &mut bank, LONGER);
    for dir in [LEFT, RIGHT] {
        let older = memory.kill_clone();
        restore(&older, &before, dir);
        assert_eq!(refusal(&older, setup()), Row::PartLost, "{dir} from before");
        let without = memory.kill_clone();
        remove(&without, dir);
        assert_eq!(refusal(&without, setup()), Row::LogLost, "{dir} removed");
    }
    let without = memory.kill_clone();
    remove(&without, MAIN);
    assert_eq!(refusal(&without, setup()), Row::LogLost, "the coordinator's removed");

    // A checkpoint discards records that the older logs still need, or still have.
    let world = World::open_as(&disk(&memory), setup()).expect("recovers");
    world.coordinator.checkpoint().expect("done");
    bank.run(&world, Script { transfers: 9, ..SCRIPT });
    drop(world);
    let older = memory.kill_clone();
    restore(&older, &before, RIGHT);
    assert_eq!(refusal(&older, setup()), Row::LogLost, "from before a checkpoint");

    let (other, _) = killed(LONGER);
    let mixed = memory.kill_clone();
    restore(&mixed, &other, RIGHT);
    let row = refusal(&mixed, setup());
    assert!(matches!(row, Row::LogLost | Row::PartLost), "of another data directory: {row:?}");
}

#[test]
fn logs_that_are_older_than_the_binlog_are_refused() {
    let (memory, mut bank) = killed(SCRIPT);
    let before = memory.kill_clone();
    run(&memory, &mut bank, LONGER);
    for dir in [MAIN, LEFT, RIGHT] {
        restore(&memory, &before, dir);
    }
    assert_eq!(refusal(&memory, setup()), Row::BinlogAhead);
}

/// The first file has two groups, the second of which says that the first was decided; then comes a second
/// file.
#[test]
fn a_binlog_that_was_cut_by_hand_is_refused() {
    let (memory, _) = killed(LONGER);
    let first = Path::new("/data/binlog.000001");
    let file = disk(&memory).open(first, OpenMode::Write).expect("opens");
    file.set_len(file.len().expect("length") / 2).expect("cut");
    match World::open_as(&disk(&memory), setup()) {
        Err(RecoveryError::Binlog(error)) => assert!(error.to_string().contains("a later one"), "{error}"),
        other => panic!("not refused: {:?}", other.err()),
    }
    disk(&memory).remove(Path::new("/data/binlog.000002")).expect("removed");
    let index = disk(&memory).open(Path::new("/data/binlog.index"), OpenMode::Write).expect("opens");
    index.set_len("./binlog.000001\n".len() as u64).expect("cut");
    assert_eq!(refusal(&memory, setup()), Row::BinlogBehind);
}

#[test]
fn a_binlog_that_is_off_or_renamed_is_refused_while_it_decides() {
    let (memory, _) = killed(SCRIPT);
    for binlog in [None, Some("other")] {
        assert_eq!(refusal(&memory.kill_clone(), Setup { binlog, ..setup() }), Row::BinlogOff);
    }
    let world = World::open_as(&disk(&memory), setup()).expect("recovers");
    world.coordinator.close().expect("stops");
    drop(world);
    World::open_as(&disk(&memory), Setup { binlog: None, ..setup() }).expect("starts without a binlog");
}

#[test]
fn commits_without_a_replica_cannot_be_cut_and_are_reported() {
    let (memory, _) = killed(SCRIPT);
    assert_eq!(refusal(&memory, Setup { unreleased: Unreleased::Cut, ..setup() }), Row::CutUnreleased);
}

fn machine(memory: &MemFs) -> Machine {
    Machine { fs: disk(memory), clock: SimClock::new(0), rng: SeededRng::shared(9) }
}

#[test]
fn a_directory_keeps_its_layout_until_it_is_converted() {
    let memory = MemFs::new();
    let mut bank = Bank::default();
    let datadir = Path::new("/data");
    let logs = LogOptions { segment_bytes: 32 << 10, ..LogOptions::default() };
    let layouts = [LogLayout::Separate, LogLayout::Shared, LogLayout::Separate, LogLayout::Shared];
    make_logs(&machine(&memory), datadir, &logs, layouts[0]).expect("made");
    for (n, layout) in layouts.into_iter().enumerate() {
        let other = layouts[(n + 1) % 2];
        let wrong = World::open_as(&disk(&memory.kill_clone()), Setup::of(other));
        assert!(matches!(wrong, Err(RecoveryError::Refused { row: Row::OtherLayout, .. })), "{layout}");
        let world = World::open_as(&disk(&memory), Setup::of(layout)).expect("opens");
        bank.run(&world, Script { transfers: bank.next + 5, ..SCRIPT });
        drop(world);
        let world = World::open_as(&disk(&memory), Setup::of(layout)).expect("recovers");
        check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");
        let engines: Vec<_> = [0, 1].map(|n| Arc::clone(&world.engines[n])).into();
        let ids = |durable: bool| {
            let of = |engine: &Arc<dyn cohort_engine::Engine>| {
                (engine.id(), if durable { engine.durable_lsn() } else { cohort_base::Lsn(0) })
            };
            engines.iter().map(of).collect::<Vec<(ParticipantId, cohort_base::Lsn)>>()
        };
        let refused = {
            let left = memory.kill_clone();
            convert(&machine(&left), datadir, &logs, &ids(true), other)
        };
        assert!(matches!(refused, Err(RecoveryError::Setting(_))), "the logs hold something: {refused:?}");
        world.coordinator.close().expect("stops");
        let durable = ids(true);
        drop((world, engines));
        if layout == LogLayout::Separate {
            let refused = convert(&machine(&memory), datadir, &logs, &durable[..1], other);
            assert!(matches!(refused, Err(RecoveryError::Setting(_))), "it has another's log: {refused:?}");
        }
        // Log of an engine that existed when another conversion was interrupted.
        let left = datadir.join("log.engine-9");
        disk(&memory).create_dir_all(&left).expect("made");
        drop(disk(&memory).open(&left.join("log.control"), OpenMode::CreateNew).expect("made"));
        let done = convert(&machine(&memory), datadir, &logs, &durable, other).expect("converted");
        assert!(disk(&memory).list(&left).expect("a directory").is_empty(), "no engine uses it");
        assert_eq!(done, Converted::Done);
        let again = convert(&machine(&memory), datadir, &logs, &durable, other).expect("looked at");
        assert_eq!(again, Converted::Nothing);
    }
    let world = World::open_as(&disk(&memory), Setup::of(LogLayout::Separate)).expect("opens");
    check(&world, &disk(&memory), &bank, SCRIPT).expect("all there");
}

#[test]
fn a_start_that_cuts_no_transaction_continues_the_timeline() {
    let script = Script { seed: 11, transfers: 30, resets: false, logged: Logged::All };
    for (layout, unreleased) in [
        (LogLayout::Separate, Unreleased::Keep),
        (LogLayout::Shared, Unreleased::Keep),
        (LogLayout::Shared, Unreleased::Cut),
    ] {
        let setup = Setup { unreleased, ..Setup::of(layout) };
        for is_clean in [true, false] {
            let memory = MemFs::new();
            let disk: Disk = Arc::new(memory.clone());
            let world = World::open_as(&disk, setup).expect("opens");
            Bank::default().run(&world, script);
            let left = match is_clean {
                true => {
                    world.coordinator.close().expect("closes");
                    drop(world);
                    memory
                }
                false => memory.kill_clone(),
            };
            let disk: Disk = Arc::new(left);
            let world = World::open_as(&disk, setup).expect("recovers");
            let timelines = world.coordinator.timelines();
            assert_eq!(timelines.len(), 1, "{layout:?} {unreleased:?} {is_clean}: {timelines:?}");
        }
    }
}
