//! Separate logs under threads: what was acknowledged before the power fails is there, whatever
//! `binlog_group_commit_sync_engine` was set to between a transaction's prepare and its group's flush. A
//! leader that left a sync out because of the option, or that took its group after the engines' sync, would
//! lose some.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohort_base::{IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::{BinlogPart, CommitRequest, LogLayout};
use cohort_engine::{Batch, Direction, Engine, KeyRange, ReadAt};
use cohort_sim::{Disk, Setup, World, part};
use cohort_vfs::{Fault, FaultFs, MemFs};
use parking_lot::Mutex;

const SPACE: IndexId = IndexId(16);
const WRITERS: u64 = 4;
const CRASHES: u64 = 12;

fn disk(memory: &MemFs) -> Disk {
    Arc::new(memory.clone())
}

fn told(world: &World, n: u64) -> BinlogPart {
    let mut cache = TrxCache::new(CacheOptions::default(), Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    let event = QueryEvent::new(1, &StatusVars::default(), b"d", format!("insert {n}").as_bytes());
    cache.query(0, &event).expect("in memory");
    part(cache.seal().expect("in memory"))
}

/// Commits a key in one engine or in both, in the binlog or not; true when it was acknowledged.
fn commit(world: &World, n: u64) -> bool {
    let mut redo = Vec::new();
    for engine in world.engines.iter().take(1 + (n % 2) as usize) {
        let mut trx = engine.begin();
        trx.put(SPACE, &n.to_be_bytes(), b"v").expect("in memory");
        redo.push((engine.id(), trx.prepare().expect("in memory")));
    }
    let binlog = (!n.is_multiple_of(5)).then(|| told(world, n));
    let request = CommitRequest { redo, binlog, locks: world.locks.owner(TrxId(n)), client: None };
    let Ok(prepared) = world.coordinator.prepare(request) else { return false };
    let seq = world.coordinator.order(prepared);
    world.coordinator.wait_acknowledged(seq).is_ok()
}

fn keys(engine: &dyn Engine) -> BTreeSet<u64> {
    let (mut batch, trx) = (Batch::default(), engine.begin());
    trx.scan(ReadAt::Latest, SPACE, &KeyRange::default(), Direction::Forward, 1 << 20, &mut batch)
        .expect("in memory");
    batch.iter().map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes"))).collect()
}

/// Runs writers, and somebody who changes the option, until the machine stops at operation `at`. Returns what
/// was acknowledged.
fn run_until(memory: &MemFs, at: u64) -> BTreeSet<u64> {
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let faulty: Disk = Arc::new(faults.clone());
    let world = World::open_as(&faulty, Setup::of(LogLayout::Separate)).expect("opens");
    faults.set(Fault::CrashAt(faults.ops() + at));
    let acknowledged: Mutex<BTreeSet<u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (world, acknowledged) = (&world, &acknowledged);
            scope.spawn(move || {
                let acknowledge = |n: &u64| acknowledged.lock().insert(*n);
                (writer..)
                    .step_by(WRITERS as usize)
                    .take_while(|n| commit(world, *n))
                    .for_each(|n| assert!(acknowledge(&n)));
            });
        }
        let (world, faults) = (&world, &faults);
        scope.spawn(move || {
            let mut is_on = false;
            while !faults.crashed() {
                world.coordinator.set_group_sync(is_on);
                is_on = !is_on;
                std::thread::yield_now();
            }
        });
    });
    acknowledged.into_inner()
}

#[test]
fn an_option_that_changes_in_flight_loses_nothing() {
    let mut seen = 0;
    for crash in 0..CRASHES {
        let memory = MemFs::new();
        let acknowledged = run_until(&memory, 60 + 17 * crash);
        for seed in 0..3 {
            let left = memory.crash_clone(crash << 8 | seed);
            let recovered = World::open_as(&disk(&left), Setup::of(LogLayout::Separate)).expect("recovers");
            let [all, odd] = recovered.engines.each_ref().map(|engine| keys(&**engine));
            let lost: Vec<&u64> = acknowledged.difference(&all).collect();
            assert!(lost.is_empty(), "I4: acknowledged and lost: {lost:?}");
            let expected: BTreeSet<u64> = all.iter().copied().filter(|n| n % 2 == 1).collect();
            assert_eq!(odd, expected, "I2: both engines or none");
        }
        seen += acknowledged.len();
    }
    assert!(seen > 100, "only {seen} were acknowledged");
}

#[test]
fn the_option_adds_syncs_and_the_leader_s_stay() {
    let memory = MemFs::new();
    let world = World::open_as(&disk(&memory), Setup::of(LogLayout::Separate)).expect("opens");
    let name = world.engines[0].name();
    let syncs = || {
        let log = world.coordinator.engine_log_stats(name).expect("an engine");
        (log.syncs, world.coordinator.engine_group_syncs(name).expect("an engine"))
    };
    let mut n = 0;
    let mut of_ten = |is_on| {
        world.coordinator.set_group_sync(is_on);
        let before = syncs();
        for _ in 0..10 {
            assert!(commit(&world, n));
            n += 1;
        }
        (syncs().0 - before.0, syncs().1 - before.1)
    };
    assert_eq!(of_ten(true), (10, 10), "one sync for each group");
    assert_eq!(of_ten(false), (20, 10), "and one for each transaction");
    assert_eq!(of_ten(true), (10, 10));
}
