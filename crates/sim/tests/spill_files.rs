//! The files of a large transaction go when it is done, not when the next large one comes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cohort_base::{IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::CommitRequest;
use cohort_engine::RedoFiles;
use cohort_sim::{Disk, World, part};
use cohort_vfs::MemFs;

const SPACE: IndexId = IndexId(16);

/// A row of 20 MiB, and as much in the binary log.
fn commit_large(world: &World) {
    let engine = &world.engines[0];
    let mut trx = engine.begin();
    trx.put(SPACE, b"k", &vec![7; 20 << 20]).expect("in memory");
    let redo = vec![(engine.id(), trx.prepare().expect("in memory"))];
    let options = CacheOptions { memory_bytes_max: 1000, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    for _ in 0..20 {
        let event = QueryEvent::new(1, &StatusVars::default(), b"d", &vec![b'x'; 1 << 20]);
        cache.query(0, &event).expect("spilled");
    }
    let binlog = part(cache.seal().expect("spilled"));
    let locks = world.locks.owner(TrxId(1));
    let request = CommitRequest { redo, binlog: Some(binlog), locks, client: None };
    let prepared = world.coordinator.prepare(request).map_err(|(error, _)| error).expect("there is room");
    let seq = world.coordinator.order(prepared);
    world.coordinator.wait_acknowledged(seq).expect("flushed");
}

#[test]
fn spill_files_go_when_their_transaction_is_done() {
    let disk: Disk = Arc::new(MemFs::new());
    let world = World::open(&disk).expect("opens");
    let files = || disk.list(Path::new("/data/spill")).expect("there").len();
    commit_large(&world);
    assert_eq!(files(), 2, "redo and events");
    world.coordinator.tick();
    assert_eq!(files(), 2, "one after the other is no reason to checkpoint after each");
    world.clock.advance(Duration::from_millis(1100));
    world.coordinator.tick();
    assert_eq!(files(), 0, "nobody has to commit another");
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
