//! Separate logs with threads: everything acknowledged before a power failure must survive, even if
//! `binlog_group_commit_sync_engine` changes between a transaction's prepare and its group's flush. A leader
//! that skipped a sync because of the option, or that took its group after the engines' sync, would lose some
//! of it.
//!
//! Groups overlap: one is written and synced to the logs while the previous one is being decided. A full disk
//! must not block threads that can continue.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use cohort_base::{IndexId, ServerId, TrxId};
use cohort_binlog::event::{QueryEvent, StatusVars};
use cohort_binlog::{CacheOptions, Stamp, TrxCache};
use cohort_commit::{BinlogPart, CommitError, CommitRequest, LogLayout, Overlap, PurgeRule};
use cohort_engine::{Batch, Engine, KeyRange, ReadAt, ScanRequest};
use cohort_sim::{Disk, Holder, Setup, World, part};
use cohort_vfs::{Fault, FaultFs, MemFs, Operation};
use parking_lot::Mutex;

const SPACE: IndexId = IndexId(16);
const WRITERS: u64 = 4;
const CRASHES: u64 = 12;

fn disk(memory: &MemFs) -> Disk {
    Arc::new(memory.clone())
}

fn binlog_part(world: &World, n: u64) -> BinlogPart {
    let mut cache = TrxCache::new(CacheOptions::default(), Some(world.coordinator.spill_dir().clone()));
    cache.begin_statement(Stamp { timestamp: 1, server_id: ServerId(1), flags: 0 }, None);
    let event = QueryEvent::new(1, &StatusVars::default(), b"d", format!("insert {n}").as_bytes());
    cache.query(0, &event).expect("in memory");
    part(cache.seal().expect("in memory"))
}

/// Commits a key in one engine or in both, with or without the binlog. Returns whether it was acknowledged.
fn commit(world: &World, n: u64) -> bool {
    let mut redo = Vec::new();
    for engine in world.engines.iter().take(1 + (n % 2) as usize) {
        let mut trx = engine.begin();
        trx.put(SPACE, &n.to_be_bytes(), b"v").expect("in memory");
        redo.push((engine.id(), trx.prepare().expect("in memory")));
    }
    let binlog = (!n.is_multiple_of(5)).then(|| binlog_part(world, n));
    let mut locks = world.locks.owner(TrxId(n));
    let permit = world.permit(&mut locks);
    let request = CommitRequest { redo, binlog, locks, permit, client: None };
    let Ok(prepared) = world.coordinator.prepare(request) else { return false };
    let seq = world.coordinator.order(prepared);
    world.coordinator.wait_acknowledged(seq).is_ok()
}

fn keys(engine: &dyn Engine) -> BTreeSet<u64> {
    let (mut batch, trx) = (Batch::default(), engine.begin());
    trx.scan(&ScanRequest::forward(ReadAt::Latest, SPACE, &KeyRange::default(), 1 << 20), &mut batch)
        .expect("in memory");
    batch.iter().map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes"))).collect()
}

/// Runs writers and a thread that changes the option, until the machine stops at operation `at`. Returns the
/// acknowledged keys.
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
                world.coordinator.set_group_overlap(if is_on { Overlap::Off } else { Overlap::On });
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

/// Crashes this disk, recovers, commits and crashes once more. Returns the keys found after the first
/// recovery, in both engines.
fn recovered(memory: &MemFs, seed: u64) -> BTreeSet<u64> {
    let left = memory.crash_clone(seed);
    let world = World::open_as(&disk(&left), Setup::of(LogLayout::Separate)).expect("recovers");
    let [all, odd] = world.engines.each_ref().map(|engine| keys(&**engine));
    let expected: BTreeSet<u64> = all.iter().copied().filter(|n| n % 2 == 1).collect();
    assert_eq!(odd, expected, "I2: both engines or none");
    assert!(commit(&world, 1001), "it goes on");
    drop(world);
    let again = World::open_as(&disk(&left.crash_clone(seed)), Setup::of(LogLayout::Separate));
    let again = keys(&*again.expect("recovers").engines[0]);
    assert!(again.contains(&1001) && again.is_superset(&all), "I4: {all:?}, then {again:?}");
    all
}

/// Two transactions in two groups: the first is being decided, the second is synced in the logs. Wherever the
/// machine stops, the second never survives without the first.
#[test]
fn a_crash_with_two_groups_under_way_keeps_a_prefix() {
    // The second transaction is in the binlog, or needs a record of its own and waits with it.
    for second in [4, 5] {
        for held in [Operation::Write, Operation::Sync] {
            let memory = MemFs::new();
            let holder = Holder::default();
            let shared = holder.over(disk(&memory));
            let world = World::open_as(&shared, Setup::of(LogLayout::Separate)).expect("opens");
            world.coordinator.set_group_overlap(Overlap::On);
            assert!(commit(&world, 1));
            let syncs = || world.coordinator.engine_group_syncs(world.engines[0].name()).expect("an engine");
            holder.hold(held, "binlog.");
            std::thread::scope(|scope| {
                let first = scope.spawn(|| commit(&world, 3));
                holder.await_held();
                let before = syncs();
                let later = scope.spawn(|| commit(&world, second));
                while syncs() == before {
                    std::thread::yield_now();
                }
                for seed in 0..40 {
                    let found = recovered(&memory, seed);
                    let allowed = [BTreeSet::from([1]), BTreeSet::from([1, 3])];
                    assert!(allowed.contains(&found), "{held:?} is held: {found:?}");
                    assert!(held == Operation::Sync || found.len() == 1, "nothing is in the binlog yet");
                }
                holder.release();
                assert!(first.join().expect("no panic") && later.join().expect("no panic"));
            });
            assert_eq!(recovered(&memory, 0), BTreeSet::from([1, 3, second]));
        }
    }
}

#[test]
fn without_overlap_one_group_is_under_way() {
    let memory = MemFs::new();
    let holder = Holder::default();
    let shared = holder.over(disk(&memory));
    let world = World::open_as(&shared, Setup::of(LogLayout::Separate)).expect("opens");
    world.coordinator.set_group_overlap(Overlap::Off);
    let syncs = || world.coordinator.engine_group_syncs(world.engines[0].name()).expect("an engine");
    holder.hold(Operation::Sync, "binlog.");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| commit(&world, 1));
        holder.await_held();
        let before = syncs();
        let second = scope.spawn(|| commit(&world, 2));
        while world.coordinator.placed() < cohort_base::CommitSeq(2) {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(syncs(), before);
        holder.release();
        assert!(first.join().expect("no panic") && second.join().expect("no panic"));
    });
}

/// Bytes that are written but not synced are invisible to all readers of the files.
#[test]
fn readers_of_the_binlog_get_what_is_synced() {
    let memory = MemFs::new();
    let holder = Holder::default();
    let shared = holder.over(disk(&memory));
    let world = World::open_as(&shared, Setup::of(LogLayout::Separate)).expect("opens");
    assert!(commit(&world, 1));
    let files = world.coordinator.binlog_files().expect("the binlog is on");
    let (end, _) = world.coordinator.binlog_status().expect("the binlog is on");
    assert_eq!(files.written(), Some(end));
    holder.hold(Operation::Sync, "binlog.");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| commit(&world, 2));
        holder.await_held();
        let sizes = world.coordinator.with_binlog_files(|files| files.sizes());
        let sizes = sizes.expect("the binlog is on").expect("nothing to wait for").expect("reads");
        assert!(sizes.last().expect("a file").bytes > end.offset, "they are in the file");
        files.step().expect("nothing to do");
        assert_eq!(files.written(), Some(end), "a dump would read up to there");
        holder.release();
        assert!(writer.join().expect("no panic"));
    });
    assert!(files.written() > Some(end));
}

/// Stops the server when a test fails, so that the writer thread ends.
struct Ends<'a>(&'a World, &'a MemFs);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.1.set_capacity_bytes(u64::MAX);
        self.0.is_stopped.store(true, SeqCst);
    }
}

/// The disk is full when a group is to be decided.
#[test]
fn a_full_binlog_disk_blocks_no_other_session() {
    let memory = MemFs::new();
    let world = World::open_as(&disk(&memory), Setup::of(LogLayout::Separate)).expect("opens");
    let coordinator = &world.coordinator;
    let mut n = 1;
    while coordinator.binlog_status().expect("on").0.file < 4 {
        assert!(commit(&world, n));
        n += 1;
    }
    coordinator.checkpoint().expect("there is space");
    let files = coordinator.binlog_files().expect("the binlog is on");
    let out_of_space = || {
        const LARGE: u64 = 1 << 40;
        memory.set_capacity_bytes(LARGE);
        let free = disk(&memory).free_bytes(Path::new("/data")).expect("known");
        memory.set_capacity_bytes(LARGE - free);
        while !files.is_without_space() {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !world.is_stopped.load(SeqCst) {
                n += u64::from(commit(&world, n));
            }
        });
        let _ends = Ends(&world, &memory);
        out_of_space();
        let refused = coordinator.rotate_binlog();
        assert!(matches!(refused, Err(CommitError::DiskFull(_))), "{refused:?}");
        assert!(coordinator.acknowledged() < coordinator.placed(), "a commit waits");
        let purged = coordinator.purge_binlog(PurgeRule::Before(4)).expect("a purge makes space");
        assert_eq!(purged.files, [1, 2, 3]);
        memory.set_capacity_bytes(u64::MAX);
        while files.is_without_space() {
            std::thread::yield_now();
        }
        coordinator.rotate_binlog().expect("there is space again");
        out_of_space();
        assert!(!world.is_stopped.load(SeqCst), "each commit that has a CommitSeq waits");
        coordinator.leave_gates();
        writer.join().expect("no panic");
        assert!(world.is_stopped.load(SeqCst), "a stop does not wait for space");
    });
    memory.set_capacity_bytes(u64::MAX);
    let acknowledged = coordinator.acknowledged().0;
    let left = keys(
        &*World::open_as(&disk(&memory.crash_clone(0)), Setup::of(LogLayout::Separate))
            .expect("starts")
            .engines[0],
    );
    assert!(left.len() as u64 >= acknowledged, "I4: {acknowledged} acknowledged, {} there", left.len());
}
