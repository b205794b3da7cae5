//! Files of a large transaction must be removed when it is done, not when the next large one arrives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::{CommitRequest, LogLayout, PurgeRule};
use cohort_engine::{ReadAt, RedoFiles};
use cohort_sim::{Disk, Setup, World, part};
use cohort_vfs::{Fault, FaultFs, MemFs};

const SPACE: IndexId = IndexId(16);

/// Commits a row of 20 MiB with as much in the binary log. Returns whether it was acknowledged.
fn commit_large(world: &World) -> bool {
    commit(world, 20)
}

/// Commits a row and events of `mib` MiB each. From 17 on they go to separate files.
fn commit(world: &World, mib: usize) -> bool {
    let engine = &world.engines[0];
    let mut trx = engine.begin();
    trx.put(SPACE, &[mib as u8], &vec![7; mib << 20]).expect("in memory");
    let redo = vec![(engine.id(), trx.prepare().expect("in memory"))];
    let options = CacheOptions { memory_bytes_max: 1000, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    for _ in 0..mib {
        let event = QueryEvent::new(1, &StatusVars::default(), b"d", &vec![b'x'; 1 << 20]);
        if cache.query(0, &event).is_err() {
            return false;
        }
    }
    let Ok(sealed) = cache.seal() else { return false };
    let binlog = part(sealed);
    let mut locks = world.locks.owner(TrxId(1));
    let permit = world.permit(&mut locks);
    let request = CommitRequest { redo, binlog: Some(binlog), locks, permit, client: None };
    let Ok(prepared) = world.coordinator.prepare(request) else { return false };
    let seq = world.coordinator.order(prepared);
    world.coordinator.wait_acknowledged(seq).is_ok()
}

/// Runs large and small transactions, a binlog rotation, a checkpoint and a purge, until the machine stops.
/// Returns the acknowledged transactions.
fn run_until(faulty: &Disk, setup: Setup) -> Vec<u8> {
    let mut acknowledged = Vec::new();
    let Ok(world) = World::open_as(faulty, setup) else { return acknowledged };
    for mib in [1, 17, 2, 18] {
        if commit(&world, mib) {
            acknowledged.push(mib as u8);
        }
        if mib == 2 {
            let _ = world.coordinator.rotate_binlog();
            let _ = world.coordinator.purge_binlog(PurgeRule::Before(u32::MAX));
        }
    }
    let _ = world.coordinator.close();
    acknowledged
}

/// Returns the keys in an engine and the sizes of their values in MiB.
fn rows(world: &World) -> Vec<(u8, usize)> {
    let trx = world.engines[0].begin();
    let get = |key: u8| {
        let mut value = Vec::new();
        let is_there = trx.get(ReadAt::Latest, SPACE, &[key], &mut value).expect("in memory");
        is_there.then_some((key, value.len() >> 20))
    };
    (0..=u8::MAX).filter_map(get).collect()
}

#[test]
fn a_crash_anywhere_around_large_transactions_keeps_them_whole() {
    for layout in [LogLayout::Shared, LogLayout::Separate] {
        let setup = Setup::of(layout);
        for at in (0..).step_by(if std::env::var_os("COHORT_LONG_TESTS").is_some() { 1 } else { 97 }) {
            let memory = MemFs::new();
            let faults = FaultFs::new(Arc::new(memory.clone()));
            faults.set(Fault::CrashAt(at));
            let acknowledged = run_until(&(Arc::new(faults.clone()) as Disk), setup);
            let left: Disk = Arc::new(memory.crash_clone(at));
            let world = World::open_as(&left, setup).unwrap_or_else(|e| panic!("{layout}, {at}: {e}"));
            let found = rows(&world);
            assert!(found.iter().all(|(key, mib)| usize::from(*key) == *mib), "{layout}, {at}: {found:?}");
            let is_there = |key: &u8| found.iter().any(|(there, _)| there == key);
            assert!(acknowledged.iter().all(is_there), "I4: {layout}, {at}: {acknowledged:?}, {found:?}");
            let in_order: Vec<u8> = [1, 17, 2, 18].into_iter().take(found.len()).collect();
            assert!(in_order.iter().all(is_there), "a prefix: {layout}, {at}: {found:?}");
            assert!(commit(&world, 3), "{layout}, {at}: it goes on");
            if !faults.crashed() {
                assert_eq!(acknowledged.len(), 4);
                break;
            }
        }
    }
}

#[test]
fn spill_files_go_when_their_transaction_is_done() {
    let disk: Disk = Arc::new(MemFs::new());
    let world = World::open(&disk).expect("opens");
    let files = || disk.list(Path::new("/data/spill")).expect("there").len();
    assert!(commit_large(&world));
    assert_eq!(files(), 2, "redo and events");
    world.coordinator.tick();
    assert_eq!(files(), 2, "one after the other is no reason to checkpoint after each");
    world.clock.advance(Duration::from_millis(1100));
    world.coordinator.tick();
    assert_eq!(files(), 0, "no further commit is needed");
}

#[test]
fn redo_files_that_engines_write_go_with_their_redo() {
    let disk: Disk = Arc::new(MemFs::new());
    let world = World::open(&disk).expect("opens");
    let files = || disk.list(Path::new("/data/spill")).expect("there").len();
    let write = || {
        let mut writer = world.coordinator.create().expect("made");
        writer.write(b"redo in ").expect("written");
        writer.write(b"two pieces").expect("written");
        writer
    };
    drop(write());
    assert_eq!(files(), 0, "it was not finished");
    let file = write().finish().expect("durable");
    assert_eq!((file.bytes, file.crc), (18, 0xcafcc6b5));
    assert_eq!(files(), 1);
    let other_owner = file.clone();
    drop(file);
    assert_eq!(files(), 1);
    drop(other_owner);
    assert_eq!(files(), 0, "the transaction was rolled back");
    let kept = write().finish().expect("durable");
    kept.hold.keep();
    drop(kept);
    assert_eq!(files(), 1, "the commit path sees to it");
}
