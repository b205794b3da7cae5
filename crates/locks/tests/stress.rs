//! Real threads on few locks: no conflicting owners are inside at the same time, no waiter is lost, every
//! deadlock is resolved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_locks::{
    KillFlag, LockError, LockOwner, LockTable, MetadataKey, MetadataMode, RowMode, WaitLimit,
};

const ROWS: usize = 8;
const LIMIT: WaitLimit = WaitLimit::For(Duration::from_secs(30));

struct World {
    table: Arc<LockTable>,
    /// Per row: the number of readers inside, or -1 for a writer.
    inside: [AtomicI64; ROWS],
    names: [MetadataKey; 2],
    /// Per name: the number of shared users inside, or a large negative number for an exclusive one.
    using: [AtomicI64; 2],
    seq: AtomicU64,
    deadlocks: AtomicU64,
}

/// A small generator (xorshift64), one per thread.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn transaction(world: &World, owner: &mut LockOwner, random: &mut Random) -> Result<(), LockError> {
    let mut rows: [Option<RowMode>; ROWS] = [None; ROWS];
    let mut name: Option<(usize, i64)> = None;
    let result = steps(world, owner, random, &mut rows, &mut name);
    // Leave the counts before the locks are released.
    for (n, mode) in rows.iter().enumerate() {
        match mode {
            Some(RowMode::Shared) => assert!(world.inside[n].fetch_sub(1, Ordering::SeqCst) > 0),
            Some(RowMode::Exclusive) => assert_eq!(world.inside[n].swap(0, Ordering::SeqCst), -1),
            None => {}
        }
    }
    if let Some((n, by)) = name {
        world.using[n].fetch_sub(by, Ordering::SeqCst);
    }
    result
}

fn steps(
    world: &World,
    owner: &mut LockOwner,
    random: &mut Random,
    rows: &mut [Option<RowMode>; ROWS],
    name: &mut Option<(usize, i64)>,
) -> Result<(), LockError> {
    let kill = KillFlag::default();
    let which = random.below(2) as usize;
    let (mode, by) = match random.below(20) {
        0 => (MetadataMode::Exclusive, -1_000_000),
        n if n < 10 => (MetadataMode::SharedRead, 1),
        _ => (MetadataMode::SharedWrite, 1),
    };
    // Half of the time the name is locked last, so that cycles include both kinds of locks.
    let name_last = random.below(2) == 0;
    if !name_last {
        take_name(world, owner, which, mode, by, name)?;
    }
    for _ in 0..1 + random.below(3) {
        let n = random.below(ROWS as u64) as usize;
        let mode = if random.below(3) == 0 { RowMode::Shared } else { RowMode::Exclusive };
        world.table.lock_row(owner, IndexId(30), &[n as u8], mode, LIMIT, &kill)?;
        enter(world, n, mode, &mut rows[n]);
        if random.below(4) == 0 {
            // Without this, a busy machine runs one thread after the other, and no locks conflict.
            std::thread::yield_now();
        }
    }
    if name_last {
        take_name(world, owner, which, mode, by, name)?;
    }
    Ok(())
}

fn take_name(
    world: &World,
    owner: &mut LockOwner,
    which: usize,
    mode: MetadataMode,
    by: i64,
    name: &mut Option<(usize, i64)>,
) -> Result<(), LockError> {
    world.table.lock_metadata(owner, &world.names[which], mode, LIMIT, &KillFlag::default())?;
    let before = world.using[which].fetch_add(by, Ordering::SeqCst);
    assert!(if by < 0 { before == 0 } else { before >= 0 }, "{before} were inside, {by} came");
    *name = Some((which, by));
    Ok(())
}

fn enter(world: &World, n: usize, mode: RowMode, mine: &mut Option<RowMode>) {
    match (*mine, mode) {
        (Some(RowMode::Exclusive), _) | (Some(RowMode::Shared), RowMode::Shared) => return,
        (Some(RowMode::Shared), RowMode::Exclusive) => {
            assert_eq!(world.inside[n].swap(-1, Ordering::SeqCst), 1, "the only reader");
        }
        (None, RowMode::Shared) => assert!(world.inside[n].fetch_add(1, Ordering::SeqCst) >= 0),
        (None, RowMode::Exclusive) => assert_eq!(world.inside[n].swap(-1, Ordering::SeqCst), 0),
    }
    *mine = Some(mode);
}

#[test]
fn threads_on_few_rows_and_names() {
    let world = World {
        table: LockTable::new(3, cohort_locks::this_thread),
        inside: Default::default(),
        names: [MetadataKey::Global, MetadataKey::Table("a".into(), "b".into())],
        using: Default::default(),
        seq: AtomicU64::new(0),
        deadlocks: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for thread in 0..12u64 {
            let world = &world;
            scope.spawn(move || run(world, thread));
        }
    });
    let stats = world.table.stats();
    assert!(world.deadlocks.load(Ordering::SeqCst) > 0 && stats.deadlocks > 0, "{stats:?}");
    assert_eq!((stats.timeouts, stats.row_waits_current), (0, 0), "{stats:?}");
    (0..64).for_each(|_| world.table.set_durable(CommitSeq(u64::MAX)));
    assert_eq!(world.table.stats().rows, 0);
}

fn run(world: &World, thread: u64) {
    let mut random = Random(thread * 7919 + 1);
    for n in 0..std::env::var("STRESS").map_or(400, |n| n.parse().expect("a number")) {
        let mut owner = world.table.owner(TrxId(thread << 32 | n));
        match transaction(world, &mut owner, &mut random) {
            Ok(()) if random.below(2) == 0 => {
                let seq = CommitSeq(1 + world.seq.fetch_add(1, Ordering::SeqCst));
                world.table.release_early(&mut owner, seq);
                world.table.set_durable(seq);
            }
            Ok(()) => {}
            Err(LockError::Deadlock) => {
                world.deadlocks.fetch_add(1, Ordering::SeqCst);
            }
            Err(e) => panic!("{e:?}"),
        }
    }
}

#[test]
fn a_queue_of_512_on_one_row_hands_over_one_by_one() {
    let table = LockTable::new(3, cohort_locks::this_thread);
    let counter = AtomicU64::new(0);
    let mut first = table.owner(TrxId(0));
    let lock = |owner: &mut LockOwner| {
        table
            .lock_row(owner, IndexId(30), b"hot", RowMode::Exclusive, LIMIT, &KillFlag::default())
            .expect("granted")
    };
    lock(&mut first);
    std::thread::scope(|scope| {
        for n in 1..=512 {
            let (table, lock, counter) = (&table, &lock, &counter);
            let body = move || {
                let mut owner = table.owner(TrxId(n));
                lock(&mut owner);
                // Exclusive: a separate read and write must not lose an update.
                let value = counter.load(Ordering::Relaxed);
                counter.store(value + 1, Ordering::Relaxed);
                table.release_early(&mut owner, CommitSeq(value + 1));
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).expect("spawns");
        }
        while table.stats().row_waits_current < 512 {
            std::thread::sleep(Duration::from_millis(1));
        }
        table.release_all(&mut first);
    });
    assert_eq!(counter.load(Ordering::Relaxed), 512);
    assert_eq!(table.stats().deadlocks, 0);
}
