//! Two prepared transactions with the same sequence number: the later one is rolled back completely.

use std::sync::Arc;

use cohort_base::{IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::{BinlogPart, CommitError, CommitRequest, Prepared};
use cohort_engine::ReadAt;
use cohort_locks::{KillFlag, RowMode, WaitLimit};
use cohort_sim::{Disk, World, part};
use cohort_vfs::MemFs;

const SPACE: IndexId = IndexId(16);

/// Writes a row under its lock. The events exceed the cache and go to a spill file.
fn prepared(world: &World, row: u64, seq_no: Option<u64>) -> Prepared {
    let engine = &world.engines[0];
    let mut locks = world.locks.owner(TrxId(row));
    let key = row.to_be_bytes();
    world
        .locks
        .lock_row(&mut locks, SPACE, &key, RowMode::Exclusive, WaitLimit::NoWait, &KillFlag::default())
        .expect("free");
    let mut trx = engine.begin();
    trx.put(SPACE, &key, b"x").expect("in memory");
    let redo = vec![(engine.id(), trx.prepare().expect("in memory"))];
    let options = CacheOptions { memory_bytes_max: 100, ..CacheOptions::default() };
    let mut cache = TrxCache::new(options, Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    let event = QueryEvent::new(1, &StatusVars::default(), b"d", "x".repeat(1000).as_bytes());
    cache.query(0, &event).expect("in memory");
    let binlog = BinlogPart { seq_no, ..part(cache.seal().expect("in memory")) };
    let permit = world.permit(&mut locks);
    let request = CommitRequest { redo, binlog: Some(binlog), locks, permit, client: None };
    world.coordinator.prepare(request).map_err(|(error, _)| error).expect("there is room")
}

fn has(world: &World, row: u64) -> bool {
    world.engines[0]
        .begin()
        .get(ReadAt::Latest, SPACE, &row.to_be_bytes(), &mut Vec::new())
        .expect("in memory")
}

#[test]
fn of_two_prepared_with_one_number_the_later_is_rolled_back() {
    let memory = MemFs::new();
    let disk: Disk = Arc::new(memory.clone());
    let world = World::open(&disk).expect("opens");
    let (first, second) = (prepared(&world, 1, Some(7)), prepared(&world, 2, Some(7)));
    let (automatic, third) = (prepared(&world, 3, None), prepared(&world, 4, Some(8)));
    let coordinator = &world.coordinator;
    coordinator.order_in_sequence(first).expect("the first number of all");
    let Err(CommitError::OutOfOrderGtid(text)) = coordinator.order_in_sequence(second) else {
        panic!("7 twice");
    };
    assert!(text.contains("GTID 0-1-7 which would create"), "{text}");
    coordinator.order(automatic);
    assert!(coordinator.order_in_sequence(third).is_err(), "the automatic one took it");
    let last = coordinator.order_in_sequence(prepared(&world, 2, Some(9))).expect("its lock is free again");
    coordinator.wait_acknowledged(last).expect("flushed");
    assert_eq!(coordinator.binlog_status().expect("on").1.to_string(), "0-1-9");
    assert_eq!([1, 2, 3, 4].map(|row| has(&world, row)), [true, true, true, false]);
    let spilled = |disk: &Disk| disk.list(std::path::Path::new("/data/spill")).expect("there").len();
    assert_eq!(spilled(&disk), 3, "the files of those that were refused are gone");

    let left: Disk = Arc::new(memory.kill_clone());
    let world = World::open(&left).expect("recovers");
    assert_eq!([1, 2, 3, 4].map(|row| has(&world, row)), [true, true, true, false]);
}
