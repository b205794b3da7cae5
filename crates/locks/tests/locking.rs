//! Scenarios with one, two or three transactions: modes, grant order, deadlocks, limits, early release.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_locks::{
    Granted, KillFlag, KillLevel, LockError, LockOwner, LockTable, MetadataKey, MetadataMode, RowMode,
    Sleeper, WaitLimit,
};

const INDEX: IndexId = IndexId(20);
const LONG: WaitLimit = WaitLimit::For(Duration::from_secs(20));
const FREE: Granted = Granted { predecessor: None };

fn table() -> Arc<LockTable> {
    LockTable::new(7, cohort_locks::this_thread)
}

fn row(
    table: &LockTable,
    owner: &mut LockOwner,
    key: &str,
    mode: RowMode,
    wait: WaitLimit,
) -> Result<Granted, LockError> {
    table.lock_row(owner, INDEX, key.as_bytes(), mode, wait, &KillFlag::default())
}

fn name(table: &str) -> MetadataKey {
    MetadataKey::Table("test".into(), table.into())
}

fn meta(
    table: &LockTable,
    owner: &mut LockOwner,
    on: &str,
    mode: MetadataMode,
    wait: WaitLimit,
) -> Result<(), LockError> {
    table.lock_metadata(owner, &name(on), mode, wait, &KillFlag::default())
}

/// Waits until `count` row locks are waiting.
fn until_waiting(table: &LockTable, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while table.stats().row_waits_current != count {
        assert!(Instant::now() < deadline, "{:?}", table.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
fn row_modes_conflict_as_they_should() {
    use RowMode::{Exclusive, Shared};
    for (held, wanted, free) in [
        (Shared, Shared, true),
        (Shared, Exclusive, false),
        (Exclusive, Shared, false),
        (Exclusive, Exclusive, false),
    ] {
        let table = table();
        let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
        row(&table, &mut a, "k", held, WaitLimit::NoWait).expect("free");
        let second = row(&table, &mut b, "k", wanted, WaitLimit::NoWait);
        assert_eq!(second, if free { Ok(FREE) } else { Err(LockError::NoWait) }, "{held:?} {wanted:?}");
        row(&table, &mut b, "other", wanted, WaitLimit::NoWait).expect("another row");
        assert_eq!(
            table.lock_row(&mut b, IndexId(21), b"k", wanted, WaitLimit::NoWait, &KillFlag::default()),
            Ok(FREE),
            "another index"
        );
        drop(a);
        row(&table, &mut b, "k", Exclusive, WaitLimit::NoWait).expect("released by drop");
    }
}

#[test]
fn a_lock_held_is_taken_again_and_strengthened() {
    let table = table();
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    row(&table, &mut a, "k", RowMode::Shared, WaitLimit::NoWait).expect("free");
    row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("alone");
    row(&table, &mut a, "k", RowMode::Shared, WaitLimit::NoWait).expect("covered");
    assert_eq!(a.row_locks(), 1);
    assert_eq!(row(&table, &mut b, "k", RowMode::Shared, WaitLimit::NoWait), Err(LockError::NoWait));
    table.release_all(&mut a);
    row(&table, &mut b, "k", RowMode::Shared, WaitLimit::NoWait).expect("free");
    row(&table, &mut a, "k", RowMode::Shared, WaitLimit::NoWait).expect("shared");
    assert_eq!(row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait), Err(LockError::NoWait));
}

#[test]
fn unlock_row_gives_one_row_back() {
    let table = table();
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    for key in ["x", "y", "z"] {
        row(&table, &mut a, key, RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    }
    table.unlock_row(&mut a, INDEX, b"y");
    table.unlock_row(&mut a, INDEX, b"never locked");
    assert_eq!(a.row_locks(), 2);
    row(&table, &mut b, "y", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    assert_eq!(row(&table, &mut b, "x", RowMode::Exclusive, WaitLimit::NoWait), Err(LockError::NoWait));
    drop((a, b));
    assert_eq!(table.stats().rows, 0, "nothing is left");
}

#[test]
fn waiters_go_on_in_order_of_arrival_and_readers_together() {
    use RowMode::{Exclusive, Shared};
    let table = table();
    let mut first = table.owner(TrxId(0));
    row(&table, &mut first, "k", Exclusive, WaitLimit::NoWait).expect("free");
    let order = parking_lot::Mutex::new(Vec::new());
    let inside = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (n, mode) in [Exclusive, Shared, Shared, Exclusive, Shared].into_iter().enumerate() {
            let (table, order, inside) = (&table, &order, &inside);
            scope.spawn(move || {
                let mut owner = table.owner(TrxId(1 + n as u64));
                row(table, &mut owner, "k", mode, LONG).expect("granted");
                let others = inside.fetch_add(1, Ordering::SeqCst);
                order.lock().push((n, others > 0));
                std::thread::sleep(Duration::from_millis(30));
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            until_waiting(table, n as u64 + 1);
        }
        assert!(table.waits_for(&first));
        table.release_all(&mut first);
    });
    let order = order.into_inner();
    let mut numbers: Vec<_> = order.iter().map(|o| o.0).collect();
    numbers[1..3].sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(order.iter().map(|o| o.1).collect::<Vec<_>>(), [false, false, true, false, false]);
}

#[test]
fn a_weakened_lock_lets_readers_in_and_no_writers() {
    let table = table();
    let [mut a, mut b, mut c] = [1, 2, 3].map(|trx| table.owner(TrxId(trx)));
    row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| row(&table, &mut b, "k", RowMode::Shared, LONG));
        until_waiting(&table, 1);
        table.downgrade_row(&mut a, INDEX, b"k");
        reader.join().expect("no panic").expect("is let in");
    });
    assert_eq!(row(&table, &mut c, "k", RowMode::Exclusive, WaitLimit::NoWait), Err(LockError::NoWait));
    row(&table, &mut c, "k", RowMode::Shared, WaitLimit::NoWait).expect("shared");
    assert_eq!(row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait), Err(LockError::NoWait));
    // Without other holders the downgrade works as well, and the lock can be upgraded again.
    row(&table, &mut a, "alone", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    table.downgrade_row(&mut a, INDEX, b"alone");
    row(&table, &mut a, "alone", RowMode::Exclusive, WaitLimit::NoWait).expect("alone");
    assert_eq!(row(&table, &mut c, "alone", RowMode::Shared, WaitLimit::NoWait), Err(LockError::NoWait));
}

#[test]
fn a_reader_does_not_overtake_a_waiting_writer() {
    let table = table();
    let mut reader = table.owner(TrxId(1));
    row(&table, &mut reader, "k", RowMode::Shared, WaitLimit::NoWait).expect("free");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writer = table.owner(TrxId(2));
            row(&table, &mut writer, "k", RowMode::Exclusive, LONG)
        });
        until_waiting(&table, 1);
        let mut late = table.owner(TrxId(3));
        assert_eq!(row(&table, &mut late, "k", RowMode::Shared, WaitLimit::NoWait), Err(LockError::NoWait));
        table.release_all(&mut reader);
        assert_eq!(writer.join().expect("no panic"), Ok(FREE));
    });
}

/// Runs `n` transactions that each lock their own row, synchronize, and then request the next one's row.
fn ring(n: usize, weights: &[u64]) -> Vec<Result<Granted, LockError>> {
    let table = table();
    let barrier = std::sync::Barrier::new(n);
    let mut results = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n)
            .map(|me| {
                let (table, barrier) = (&table, &barrier);
                scope.spawn(move || {
                    let mut owner = table.owner(TrxId(me as u64));
                    owner.add_weight(weights[me]);
                    row(table, &mut owner, &me.to_string(), RowMode::Exclusive, LONG).expect("free");
                    barrier.wait();
                    row(table, &mut owner, &((me + 1) % n).to_string(), RowMode::Exclusive, LONG)
                })
            })
            .collect();
        results = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    });
    assert_eq!(table.stats().deadlocks, 1);
    assert_eq!(table.stats().rows, 0);
    results
}

#[test]
fn a_deadlock_costs_the_lightest_and_only_him() {
    for _ in 0..20 {
        assert_eq!(ring(2, &[5, 1]), [Ok(FREE), Err(LockError::Deadlock)]);
        assert_eq!(ring(3, &[1, 0, 9]), [Ok(FREE), Err(LockError::Deadlock), Ok(FREE)]);
        let results = ring(5, &[0; 5]);
        assert_eq!(results.iter().filter(|r| r.is_err()).count(), 1, "{results:?}");
    }
}

#[test]
fn two_readers_that_both_write_deadlock() {
    let table = table();
    let barrier = std::sync::Barrier::new(2);
    let both: Vec<_> = std::thread::scope(|scope| {
        let upgrade = |trx: u64| {
            let (table, barrier) = (&table, &barrier);
            scope.spawn(move || {
                let mut owner = table.owner(TrxId(trx));
                row(table, &mut owner, "k", RowMode::Shared, LONG).expect("shared");
                barrier.wait();
                row(table, &mut owner, "k", RowMode::Exclusive, LONG)
            })
        };
        [upgrade(1), upgrade(2)].map(|t| t.join().expect("no panic")).into()
    });
    assert_eq!(both.iter().filter(|r| **r == Err(LockError::Deadlock)).count(), 1, "{both:?}");
}

#[test]
fn a_cycle_over_rows_and_names_is_found() {
    // A reads t1 (an anonymous lock) and waits for B's row; B requests t1 exclusively.
    let table = table();
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    meta(&table, &mut a, "t1", MetadataMode::SharedRead, WaitLimit::NoWait).expect("free");
    row(&table, &mut b, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    b.add_weight(10);
    std::thread::scope(|scope| {
        let table = &table;
        let reader = scope.spawn(move || {
            let mut a = a;
            row(table, &mut a, "k", RowMode::Shared, LONG)
        });
        until_waiting(table, 1);
        meta(table, &mut b, "t1", MetadataMode::Exclusive, LONG).expect("the other one is lighter");
        assert_eq!(reader.join().expect("no panic"), Err(LockError::Deadlock));
    });
}

#[test]
fn a_cycle_that_the_anonymous_holder_closes_is_found() {
    let table = table();
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    meta(&table, &mut a, "t1", MetadataMode::SharedWrite, WaitLimit::NoWait).expect("free");
    row(&table, &mut b, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    b.add_weight(10);
    std::thread::scope(|scope| {
        let table = &table;
        let ddl = scope.spawn(move || {
            let mut b = b;
            meta(table, &mut b, "t1", MetadataMode::Exclusive, LONG)
        });
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(row(table, &mut a, "k", RowMode::Exclusive, LONG), Err(LockError::Deadlock));
        table.release_all(&mut a);
        assert_eq!(ddl.join().expect("no panic"), Ok(()));
    });
}

#[test]
fn a_wait_ends_at_its_limit() {
    let table = table();
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    meta(&table, &mut a, "t", MetadataMode::Exclusive, WaitLimit::NoWait).expect("free");
    for _ in 0..3 {
        let limit = Duration::from_millis(50);
        let start = Instant::now();
        assert_eq!(row(&table, &mut b, "k", RowMode::Shared, WaitLimit::For(limit)), Err(LockError::Timeout));
        assert_eq!(
            meta(&table, &mut b, "t", MetadataMode::SharedRead, WaitLimit::For(limit)),
            Err(LockError::Timeout)
        );
        // A busy machine may wake it late, but never early.
        assert!((100..5000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    }
    let stats = table.stats();
    assert_eq!((stats.timeouts, stats.row_waits, stats.row_waits_current), (6, 3, 0));
    table.release_all(&mut a);
    row(&table, &mut b, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("no waiter was left");
    meta(&table, &mut b, "t", MetadataMode::Exclusive, WaitLimit::NoWait).expect("no waiter was left");
}

#[test]
fn kill_wakes_the_waiter() {
    for level in [KillLevel::Query, KillLevel::Connection] {
        let table = table();
        let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
        row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
        let kill = KillFlag::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| table.lock_row(&mut b, INDEX, b"k", RowMode::Shared, LONG, &kill));
            until_waiting(&table, 1);
            kill.kill(level);
            assert_eq!(waiter.join().expect("no panic"), Err(LockError::Killed(level)));
        });
        kill.clear_query();
        assert_eq!(kill.killed().is_some(), level == KillLevel::Connection);
    }
}

#[test]
fn an_early_release_is_remembered_until_it_is_durable() {
    use RowMode::{Exclusive, Shared};
    let table = table();
    let (mut a, mut b, mut c) = (table.owner(TrxId(1)), table.owner(TrxId(2)), table.owner(TrxId(3)));
    row(&table, &mut a, "written", Exclusive, WaitLimit::NoWait).expect("free");
    row(&table, &mut a, "read", Shared, WaitLimit::NoWait).expect("free");
    meta(&table, &mut a, "t", MetadataMode::SharedWrite, WaitLimit::NoWait).expect("free");
    table.release_early(&mut a, CommitSeq(10));
    assert_eq!(a.row_locks(), 0);
    assert_eq!(
        meta(&table, &mut b, "t", MetadataMode::Exclusive, WaitLimit::NoWait),
        Err(LockError::NoWait),
        "metadata locks stay"
    );

    let after = |seq| Ok(Granted { predecessor: Some(CommitSeq(seq)) });
    assert_eq!(
        row(&table, &mut b, "read", Shared, WaitLimit::NoWait),
        Ok(FREE),
        "two readers are independent"
    );
    assert_eq!(row(&table, &mut b, "written", Shared, WaitLimit::NoWait), after(10));
    assert_eq!(b.depends_on(), CommitSeq(10));
    table.release_early(&mut b, CommitSeq(11));
    assert_eq!(
        row(&table, &mut c, "read", Exclusive, WaitLimit::NoWait),
        after(11),
        "a writer follows readers"
    );
    assert_eq!(
        row(&table, &mut c, "written", Shared, WaitLimit::NoWait),
        after(10),
        "a reader follows writers"
    );
    assert_eq!(row(&table, &mut c, "written", Exclusive, WaitLimit::NoWait), after(11));
    table.release_all(&mut c);
    table.set_durable(CommitSeq(10));
    assert_eq!(row(&table, &mut c, "written", Shared, WaitLimit::NoWait), Ok(FREE));
    assert_eq!(row(&table, &mut c, "read", Exclusive, WaitLimit::NoWait), after(11));
    table.release_all(&mut c);
    (0..64).for_each(|_| table.set_durable(CommitSeq(11)));
    assert_eq!(table.stats().rows, 0, "all is forgotten");
}

#[test]
fn a_waiter_learns_whom_it_follows() {
    let table = table();
    let mut a = table.owner(TrxId(1));
    row(&table, &mut a, "k", RowMode::Exclusive, WaitLimit::NoWait).expect("free");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut b = table.owner(TrxId(2));
            row(&table, &mut b, "k", RowMode::Exclusive, LONG)
        });
        until_waiting(&table, 1);
        table.release_early(&mut a, CommitSeq(5));
        assert_eq!(waiter.join().expect("no panic"), Ok(Granted { predecessor: Some(CommitSeq(5)) }));
    });
}

#[test]
fn remembered_rows_do_not_pile_up() {
    let table = table();
    for seq in 1..20_000u64 {
        let mut owner = table.owner(TrxId(seq));
        row(&table, &mut owner, &seq.to_string(), RowMode::Exclusive, WaitLimit::NoWait).expect("free");
        table.release_early(&mut owner, CommitSeq(seq));
        if seq % 100 == 0 {
            table.set_durable(CommitSeq(seq));
        }
    }
    assert!(table.stats().rows < 1000, "{:?}", table.stats());
}

#[test]
fn metadata_modes_conflict_as_the_matrix_says() {
    use MetadataMode::{Exclusive, SharedNoWrite, SharedRead, SharedUpgradable, SharedWrite};
    let modes = [SharedRead, SharedWrite, SharedUpgradable, SharedNoWrite, Exclusive];
    let matrix = ["++++-", "+++--", "++---", "+--+-", "-----"];
    for (held, line) in modes.iter().zip(matrix) {
        for (wanted, free) in modes.iter().zip(line.chars()) {
            let table = table();
            let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
            meta(&table, &mut a, "t", *held, WaitLimit::NoWait).expect("free");
            let second = meta(&table, &mut b, "t", *wanted, WaitLimit::NoWait);
            assert_eq!(second.is_ok(), free == '+', "{held:?} {wanted:?}");
            table.release_all(&mut a);
            table.unlock_name(&mut b, &name("t"));
            meta(&table, &mut a, "t", Exclusive, WaitLimit::NoWait).expect("nothing is left");
        }
    }
}

#[test]
fn a_metadata_lock_is_strengthened() {
    use MetadataMode::{Exclusive, SharedRead, SharedUpgradable, SharedWrite};
    let table = table();
    let (mut ddl, mut reader) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    meta(&table, &mut reader, "t", SharedRead, WaitLimit::NoWait).expect("free");
    meta(&table, &mut ddl, "t", SharedRead, WaitLimit::NoWait).expect("free");
    meta(&table, &mut ddl, "t", SharedUpgradable, WaitLimit::NoWait).expect("compatible");
    assert_eq!(meta(&table, &mut ddl, "t", Exclusive, WaitLimit::NoWait), Err(LockError::NoWait));
    std::thread::scope(|scope| {
        let (table, ddl) = (&table, &mut ddl);
        let upgrade = scope.spawn(move || meta(table, ddl, "t", Exclusive, LONG));
        std::thread::sleep(Duration::from_millis(30));
        let mut late = table.owner(TrxId(3));
        let refused = meta(table, &mut late, "t", SharedRead, WaitLimit::NoWait);
        assert_eq!(refused, Err(LockError::NoWait), "not past a waiting DDL");
        table.unlock_names(&mut reader);
        assert_eq!(upgrade.join().expect("no panic"), Ok(()));
    });
    assert_eq!(meta(&table, &mut reader, "t", SharedRead, WaitLimit::NoWait), Err(LockError::NoWait));
    table.unlock_names(&mut ddl);
    meta(&table, &mut reader, "t", SharedWrite, WaitLimit::NoWait).expect("free again");
}

#[test]
fn waiters_sleep_in_the_given_wait_slot() {
    /// Wakes its thread and counts the sleeps.
    struct Bed(std::thread::Thread);
    static SLEPT: AtomicU64 = AtomicU64::new(0);
    static WOKEN: AtomicU64 = AtomicU64::new(0);
    impl Sleeper for Bed {
        fn sleep(&self, deadline: Option<Instant>) {
            SLEPT.fetch_add(1, Ordering::SeqCst);
            let deadline = deadline.expect("the limit's");
            std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        fn wake(&self) {
            WOKEN.fetch_add(1, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let table = LockTable::new(1, || Arc::new(Bed(std::thread::current())));
    let (mut a, mut b) = (table.owner(TrxId(1)), table.owner(TrxId(2)));
    row(&table, &mut a, "k", RowMode::Exclusive, LONG).expect("free");
    assert_eq!((SLEPT.load(Ordering::SeqCst), WOKEN.load(Ordering::SeqCst)), (0, 0));
    let limit = WaitLimit::For(Duration::from_millis(10));
    assert_eq!(row(&table, &mut b, "k", RowMode::Exclusive, limit), Err(LockError::Timeout));
    assert!(SLEPT.load(Ordering::SeqCst) > 0);
    assert_eq!(WOKEN.load(Ordering::SeqCst), 0);
    std::thread::scope(|scope| {
        let (table, b) = (&table, &mut b);
        let waiter = scope.spawn(move || row(table, b, "k", RowMode::Exclusive, LONG));
        while table.stats().row_waits_current == 0 {
            std::thread::yield_now();
        }
        table.release_all(&mut a);
        assert!(waiter.join().expect("no panic").is_ok());
    });
    assert!(WOKEN.load(Ordering::SeqCst) > 0);
}

#[test]
fn many_locks_of_one_transaction_stay_small() {
    let table = table();
    let mut owner = table.owner(TrxId(1));
    let count = 100_000u64;
    for n in 0..count {
        let key = n.to_be_bytes();
        table
            .lock_row(&mut owner, INDEX, &key, RowMode::Exclusive, WaitLimit::NoWait, &KillFlag::default())
            .expect("free");
    }
    let bytes = table.stats().row_table_bytes / count + 2 * 16;
    assert!(bytes <= 200, "{bytes} bytes per lock");
    table.release_early(&mut owner, CommitSeq(1));
    (0..64 * 3).for_each(|_| table.set_durable(CommitSeq(1)));
    assert!(table.stats().row_table_bytes < 2_000_000, "{:?}", table.stats());
}
