//! Concurrent writers, readers, purge and checkpoints, in a pool that holds a fraction of the pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, Direction, Engine, EngineError, KeyRange, MemoryRedo, Participant, ReadAt, ReadView, ScanRequest,
    WaitSlot,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{FaultFs, Fs, MemFs, OpenMode, Rng, SeededRng, SharedFs};
use parking_lot::Mutex;

const OPTIONS: BtreeOptions = BtreeOptions {
    pool_bytes: 12 * 16384,
    rollback_segments: 4,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: true,
    wait_slot_of: || None,
};
const TABLE: IndexId = IndexId(16);
const ACCOUNTS: u64 = 600;
const WRITERS: u64 = 4;
const TRANSFERS: u64 = 400;

/// Stands for the commit path: a single order, and views between transactions.
struct Order {
    last: Mutex<u64>,
}

impl Order {
    fn commit(&self, engine: &BtreeEngine, redo: &cohort_engine::Redo) {
        let mut last = self.last.lock();
        *last += 1;
        engine.commit_ordered(CommitSeq(*last), &[redo]);
    }

    fn view(&self, engine: &BtreeEngine) -> ReadView {
        let last = self.last.lock();
        ReadView::new(CommitSeq(*last), vec![(engine.id(), engine.snapshot())])
    }

    fn checkpoint(&self, engine: &BtreeEngine) {
        let task = {
            let last = self.last.lock();
            engine.begin_checkpoint(Lsn(*last)).expect("begins")
        };
        task.finish().expect("finishes");
    }
}

fn key(account: u64) -> Vec<u8> {
    let mut key = format!("account {account:05}").into_bytes();
    // Long keys: many pages and splits for few accounts.
    key.resize(300, b'.');
    key
}

fn balance(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("a balance"))
}

/// Returns a balance with padding of varying length, so that updates split leaves.
fn value(rng: &SeededRng, balance: u64) -> Vec<u8> {
    let mut value = balance.to_le_bytes().to_vec();
    let len = if rng.below(100) == 0 { 5000 } else { 8 + rng.below(300) };
    value.resize(len as usize, 7);
    value
}

/// Returns all rows. A scan may return early.
fn values(engine: &BtreeEngine, at: ReadAt<'_>, index: IndexId, direction: Direction) -> Vec<Vec<u8>> {
    let (mut range, mut batch, mut found) = (KeyRange::default(), Batch::default(), Vec::new());
    let trx = engine.begin();
    loop {
        batch.clear();
        let more = trx
            .scan(&ScanRequest { at, index, range: &range, direction, limit: 1 << 20 }, &mut batch)
            .expect("scans");
        found.extend(batch.iter().map(|(_, value)| value.to_vec()));
        if !more {
            return found;
        }
        batch.cut(&mut range, direction);
    }
}

fn sum(engine: &BtreeEngine, at: ReadAt<'_>, direction: Direction) -> (usize, u64) {
    let rows = values(engine, at, TABLE, direction);
    (rows.len(), rows.iter().map(|value| balance(value)).sum())
}

/// Runs a writer. Each writer owns a share of the accounts, which replaces row locks. It moves money between
/// them, closes and opens some, and sometimes rolls back.
fn write(engine: &BtreeEngine, order: &Order, writer: u64) {
    let rng = SeededRng::new(writer);
    let mut own: BTreeMap<u64, u64> =
        (0..ACCOUNTS).filter(|n| n % WRITERS == writer).map(|n| (n, 100)).collect();
    for _ in 0..TRANSFERS {
        let accounts: Vec<u64> = own.keys().copied().collect();
        let pick = |rng: &SeededRng| accounts[rng.below(accounts.len() as u64) as usize];
        let (from, to) = (pick(&rng), pick(&rng));
        let mut next = own.clone();
        let amount = next[&from].min(rng.below(50));
        *next.get_mut(&from).expect("own") -= amount;
        *next.get_mut(&to).expect("own") += amount;
        let (mut trx, files) = (engine.begin(), MemoryRedo::default());
        let has_parts = rng.below(4) == 0;
        if has_parts {
            // Later writes replace those of a part.
            trx.put(TABLE, &key(from), b"never visible").expect("puts");
            trx.delete(TABLE, &key(to)).expect("deletes");
            trx.install_part(&files).expect("installs");
        }
        if rng.below(5) == 0 && from != to && next.len() > 20 {
            // Closed: the rest of the balance goes to another account.
            let left = next.remove(&from).expect("own");
            *next.get_mut(&to).expect("own") += left;
            trx.delete(TABLE, &key(from)).expect("deletes");
        } else {
            trx.put(TABLE, &key(from), &value(&rng, next[&from])).expect("puts");
        }
        let fresh = writer + WRITERS * rng.below(ACCOUNTS / WRITERS);
        if !next.contains_key(&fresh) && fresh != from {
            next.insert(fresh, 0);
            trx.put(TABLE, &key(fresh), &value(&rng, 0)).expect("puts");
        }
        trx.put(TABLE, &key(to), &value(&rng, next[&to])).expect("puts");
        let redo = files.prepare(&mut *trx).expect("prepares");
        if rng.below(6) > 0 {
            order.commit(engine, &redo);
            own = next;
        }
    }
}

#[test]
fn views_are_whole_while_everything_goes_on() {
    let memory: SharedFs = Arc::new(MemFs::new());
    let open = || BtreeEngine::open(ParticipantId(1), &memory, Path::new("/btree"), OPTIONS).expect("opens");
    let engine = open();
    let order = Order { last: Mutex::new(0) };
    let rng = SeededRng::new(99);
    let mut trx = engine.begin();
    (0..ACCOUNTS).for_each(|n| trx.put(TABLE, &key(n), &value(&rng, 100)).expect("puts"));
    order.commit(&engine, &trx.prepare().expect("prepares"));
    let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let total = ACCOUNTS * 100;
    std::thread::scope(|scope| {
        let (engine, order, is_over, looks) = (&engine, &order, &is_over, &looks);
        for reader in 0..2 {
            scope.spawn(move || {
                let mut kept = order.view(engine);
                let mut first = sum(engine, ReadAt::View(&kept), Direction::Forward);
                while !is_over.load(Ordering::Relaxed) {
                    let view = order.view(engine);
                    let direction = if reader == 0 { Direction::Forward } else { Direction::Backward };
                    assert_eq!(sum(engine, ReadAt::View(&view), direction).1, total, "money in a view");
                    // An older view does not change.
                    assert_eq!(sum(engine, ReadAt::View(&kept), direction), first, "an old view");
                    if looks.fetch_add(1, Ordering::Relaxed) % 8 == 0 {
                        kept = view;
                        first = sum(engine, ReadAt::View(&kept), direction);
                    }
                }
            });
        }
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                order.checkpoint(engine);
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        });
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(engine, order, writer))).collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a writer"));
    });
    assert!(looks.load(Ordering::Relaxed) > 4, "readers looked while the writers ran");
    let last = sum(&engine, ReadAt::Latest, Direction::Forward);
    assert_eq!(last.1, total);
    order.checkpoint(&engine);
    drop(engine);
    assert_eq!(sum(&open(), ReadAt::Latest, Direction::Forward), last, "what the last checkpoint holds");
}

const QUEUE: IndexId = IndexId(17);
const QUEUED: u64 = 400;
const ROUNDS: u64 = 120;

fn queue_key(writer: u64, place: u64) -> Vec<u8> {
    format!("{writer} {place:08} {}", "-".repeat(80)).into_bytes()
}

/// Adds rows at one end and removes as many at the other, so that leaves become empty continually.
fn queue(engine: &BtreeEngine, order: &Order, writer: u64) {
    let rng = SeededRng::new(writer + 50);
    let (mut first, mut end) = (0, QUEUED);
    for _ in 0..ROUNDS {
        let moved = 1 + rng.below(200);
        let (mut trx, files) = (engine.begin(), MemoryRedo::default());
        for n in 0..moved {
            if n == 100 {
                trx.install_part(&files).expect("installs");
            }
            trx.delete(QUEUE, &queue_key(writer, first + n)).expect("deletes");
            trx.put(QUEUE, &queue_key(writer, end + n), &[7; 90]).expect("puts");
        }
        let redo = files.prepare(&mut *trx).expect("prepares");
        if rng.below(5) > 0 {
            order.commit(engine, &redo);
            (first, end) = (first + moved, end + moved);
        }
    }
}

#[test]
fn queues_stay_whole_and_small_while_their_pages_come_and_go() {
    let memory: SharedFs = Arc::new(MemFs::new());
    let open = || BtreeEngine::open(ParticipantId(1), &memory, Path::new("/btree"), OPTIONS).expect("opens");
    let engine = open();
    let order = Order { last: Mutex::new(0) };
    let mut trx = engine.begin();
    for writer in 0..WRITERS {
        (0..QUEUED).for_each(|n| trx.put(QUEUE, &queue_key(writer, n), &[7; 90]).expect("puts"));
    }
    order.commit(&engine, &trx.prepare().expect("prepares"));
    let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let all = (WRITERS * QUEUED) as usize;
    let count = |engine: &BtreeEngine, at: ReadAt<'_>, direction: Direction| {
        values(engine, at, QUEUE, direction).len()
    };
    std::thread::scope(|scope| {
        let (engine, order, is_over, looks, count) = (&engine, &order, &is_over, &looks, &count);
        for direction in [Direction::Forward, Direction::Backward] {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let view = order.view(engine);
                    assert_eq!(count(engine, ReadAt::View(&view), direction), all, "rows in a view");
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                order.checkpoint(engine);
                let problems = engine.verify(QUEUE, &mut |_| true).expect("reads");
                assert!(problems.is_empty(), "CHECK TABLE during writes: {problems:?}");
            }
        });
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || queue(engine, order, writer))).collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a writer"));
    });
    assert!(looks.load(Ordering::Relaxed) > 4, "readers looked while the writers ran");
    while engine.purge().expect("purges") > 0 {}
    assert!(engine.stats(QUEUE).bytes < 120 * 16384, "{} bytes", engine.stats(QUEUE).bytes);
    order.checkpoint(&engine);
    drop(engine);
    let engine = open();
    assert_eq!(count(&engine, ReadAt::Latest, Direction::Forward), all);
    assert_eq!(engine.verify(QUEUE, &mut |_| true).expect("reads"), Vec::<String>::new());
}

/// Wait slot for threads that play fibers.
struct OnThread(std::thread::Thread);

impl WaitSlot for OnThread {
    fn sleep(&self) {
        std::thread::park();
    }

    fn wake(&self) {
        self.0.unpark();
    }
}

fn on_thread() -> Option<Arc<dyn WaitSlot>> {
    Some(Arc::new(OnThread(std::thread::current())))
}

fn status(engine: &BtreeEngine, name: &str) -> u64 {
    let status = engine.status();
    status.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name} is reported")).1
}

/// Returns an engine that reads every missing page by a reader thread, with a table of some 700 leaves.
fn cold(pages: usize) -> (MemFs, BtreeEngine) {
    let memory = MemFs::new();
    let faulty = FaultFs::new(Arc::new(memory.clone()));
    faulty.set_cold();
    let fs: SharedFs = Arc::new(faulty);
    let options = BtreeOptions { pool_bytes: pages * 16384, wait_slot_of: on_thread, ..OPTIONS };
    let open = || BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens");
    let engine = open();
    let mut load = engine.bulk_load(TABLE).expect("loads");
    (0..ROWS).for_each(|n| load.add(&n.to_be_bytes(), &[n as u8; 1000]).expect("adds"));
    load.finish().expect("finishes");
    drop(engine);
    (memory, open())
}

const ROWS: u64 = 10_000;

#[test]
fn a_waiter_for_a_page_finds_it_during_eviction() {
    let (_, engine) = cold(16);
    let order = Order { last: Mutex::new(0) };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (engine, order, is_over) = (&engine, &order, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                order.checkpoint(engine);
            }
        });
        for direction in [Direction::Forward, Direction::Backward] {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let view = order.view(engine);
                    let found = values(engine, ReadAt::View(&view), TABLE, direction).len();
                    assert_eq!(found, ROWS as usize);
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let (rng, mut value) = (SeededRng::new(writer), Vec::new());
                    for round in 0..200_u8 {
                        let mut trx = engine.begin();
                        let n = rng.below(ROWS / WRITERS) * WRITERS + writer;
                        // Causes splits and merges, and changes which page is next.
                        trx.put(TABLE, &n.to_be_bytes(), &vec![round; 500 + n as usize % 3000])
                            .expect("puts");
                        order.commit(engine, &trx.prepare().expect("prepares"));
                        let at = rng.below(ROWS).to_be_bytes();
                        assert!(engine.begin().get(ReadAt::Latest, TABLE, &at, &mut value).expect("reads"));
                    }
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a writer"));
    });
    assert!(status(&engine, "Innodb_buffer_pool_read_waits") > 500);
    assert!(status(&engine, "Innodb_buffer_pool_read_ahead") > 50);
    assert_eq!(engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
    // A check that is stopped early must not report the unvisited pages.
    let mut asked = 0;
    let mut ends_early = |_| {
        asked += 1;
        asked != 2
    };
    assert_eq!(engine.verify(TABLE, &mut ends_early).expect("reads"), Vec::<String>::new());
    assert!(status(&engine, "Innodb_buffer_pool_pages_data") < 40, "readers keep the pool to its size");
}

#[test]
fn a_page_read_error_reaches_all_waiting_threads() {
    let (memory, engine) = cold(16);
    let file = memory.open(Path::new("/btree/btree.data"), OpenMode::Write).expect("there");
    let mut bytes = vec![0; file.len().expect("in memory") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    // The leaf with the middle rows, found by its content.
    let row = [5000_u64 as u8; 1000];
    let at = bytes.windows(1000).position(|window| window == row).expect("it is there");
    file.write_at(&[!row[0]], at as u64 + 7).expect("writes");
    let lowest =
        (0..ROWS).rev().find(|n| (n & 0xff) as u8 == row[0] && *n < 300).expect("the first such row");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let read =
                        engine.begin().get(ReadAt::Latest, TABLE, &lowest.to_be_bytes(), &mut Vec::new());
                    assert!(matches!(read, Err(EngineError::Corrupt(what)) if what.contains("checksum")));
                }
            });
        }
    });
}

#[test]
fn a_scan_of_a_large_table_leaves_the_others_in_the_pool() {
    let (_, engine) = cold(128);
    let mut value = Vec::new();
    let mut look_at_hot = || {
        for n in (0..600).step_by(10) {
            let n = (ROWS - 1 - n).to_be_bytes();
            assert!(engine.begin().get(ReadAt::Latest, TABLE, &n, &mut value).expect("reads"));
        }
    };
    look_at_hot();
    // Fills the pool.
    for n in (0..ROWS / 2).step_by(40) {
        assert!(engine.begin().get(ReadAt::Latest, TABLE, &n.to_be_bytes(), &mut Vec::new()).expect("reads"));
        if n % 400 == 0 {
            look_at_hot();
        }
    }
    look_at_hot();
    let before = status(&engine, "Innodb_buffer_pool_reads");
    let range = KeyRange { start: None, end: Some((ROWS - 700).to_be_bytes().to_vec()) };
    let mut batch = Batch::default();
    let (trx, direction) = (engine.begin(), Direction::Forward);
    trx.scan(
        &ScanRequest { at: ReadAt::Latest, index: TABLE, range: &range, direction, limit: 1 << 20 },
        &mut batch,
    )
    .expect("scans");
    let by_scan = status(&engine, "Innodb_buffer_pool_reads") - before;
    assert!(by_scan > 150, "{by_scan} pages read by the scan");
    look_at_hot();
    let again = status(&engine, "Innodb_buffer_pool_reads") - before - by_scan;
    assert!(again < 15, "{again} of some 40 hot pages were read again");
}
