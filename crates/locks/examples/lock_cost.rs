//! Prints the cost of locks: time and bytes per row lock of a large transaction, a metadata lock, and a
//! hand-over of a hot row.
//!
//! `cargo run --release -p cohort-locks --example lock_cost`

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_locks::{
    KillFlag, LockOwner, LockSpan, LockTable, MetadataKey, MetadataMode, RangeScan, RowMode, StepTo, Towards,
    Uncommitted, WaitLimit,
};

const LONG: WaitLimit = WaitLimit::For(Duration::from_secs(60));

fn main() {
    let table = LockTable::new(1, cohort_locks::this_thread);
    large_transaction(&table, 100_000);
    large_transaction(&table, 1_000_000);
    small_transactions(&table);
    ranges(&table);
    for threads in [1, 4, 64, 512] {
        hot_row(&table, threads);
    }
}

fn lock(table: &LockTable, owner: &mut LockOwner, key: u64) {
    let kill = KillFlag::default();
    table
        .lock_row(owner, IndexId(20), &key.to_be_bytes(), RowMode::Exclusive, LONG, &kill)
        .expect("a minute is enough");
}

fn large_transaction(table: &std::sync::Arc<LockTable>, rows: u64) {
    let mut owner = table.owner(TrxId(1));
    let start = Instant::now();
    (0..rows).for_each(|key| lock(table, &mut owner, key));
    let locked = start.elapsed();
    let bytes = table.stats().row_table_bytes as usize / rows as usize + 16;
    let start = Instant::now();
    table.release_early(&mut owner, CommitSeq(1));
    let released = start.elapsed();
    println!(
        "{rows} rows: lock {} ns, early release {} ns, {bytes} bytes each",
        locked.as_nanos() as u64 / rows,
        released.as_nanos() as u64 / rows
    );
    (0..64 * 10_000).for_each(|_| table.set_durable(CommitSeq(1)));
}

/// Measures what range locks cost an insert: with no range, with one in another index of its shard, and with
/// one in its own index. Also measures what a scan pays per entry.
fn ranges(table: &std::sync::Arc<LockTable>) {
    let (count, kill) = (300_000_u64, KillFlag::default());
    let insert = |what: &str| {
        let start = Instant::now();
        for n in 0..count {
            let mut owner = table.owner(TrxId(n + 10));
            for index in [20, 21] {
                let key = (n * 2).to_be_bytes();
                table.put_key(&mut owner, IndexId(index), &key, LONG, &kill).expect("free");
            }
            drop(table.release_early(&mut owner, CommitSeq(n)));
        }
        println!("two keys of a transaction, {what}: {} ns", start.elapsed().as_nanos() as u64 / count);
    };
    insert("no range locked");
    let mut reader = table.owner(TrxId(1));
    for (index, what) in [(84, "a range in its shard"), (20, "a range in its index tree")] {
        let scan = RangeScan::new(IndexId(index), Towards::Up, Uncommitted::Block);
        table.watch(&mut reader, &scan, LockSpan { start: vec![255], end: None });
        table.advance(&mut reader, &scan, StepTo::End, LONG, &kill).expect("there is no other owner");
        insert(what);
    }
    let scan = RangeScan::new(IndexId(30), Towards::Up, Uncommitted::Block);
    table.watch(&mut reader, &scan, LockSpan::default());
    let start = Instant::now();
    for n in 0..count {
        let key = n.to_be_bytes();
        table.advance(&mut reader, &scan, StepTo::Entry(&key), LONG, &kill).expect("there is no other owner");
    }
    println!("an entry that a scan passes: {} ns", start.elapsed().as_nanos() as u64 / count);
}

fn small_transactions(table: &std::sync::Arc<LockTable>) {
    let count = 300_000;
    let name = MetadataKey::Table("test".into(), "t1".into());
    for threads in [1, 2] {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let name = &name;
                scope.spawn(move || {
                    for n in 0..count {
                        let mut owner = table.owner(TrxId(n));
                        let kill = KillFlag::default();
                        table
                            .lock_metadata(&mut owner, name, MetadataMode::SharedWrite, LONG, &kill)
                            .expect("shared");
                        lock(table, &mut owner, thread << 32 | n);
                    }
                });
            }
        });
        println!(
            "{threads} threads: one name, one row, release: {} ns",
            start.elapsed().as_nanos() as u64 / count
        );
    }
}

fn hot_row(table: &std::sync::Arc<LockTable>, threads: u64) {
    let deadline = Instant::now() + Duration::from_secs(1);
    let count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let count = &count;
            scope.spawn(move || {
                while Instant::now() < deadline {
                    let mut owner = table.owner(TrxId(thread));
                    lock(table, &mut owner, u64::MAX);
                    let seq = CommitSeq(count.fetch_add(1, Ordering::Relaxed));
                    table.release_early(&mut owner, seq);
                }
            });
        }
    });
    println!("hot row, {threads} threads: {} hand-overs/s", count.load(Ordering::Relaxed));
}
