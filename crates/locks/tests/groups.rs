//! Grouped locks behave like any other locks: compares a table that groups from the first lock on with one
//! that never groups, over random requests of transactions that do not wait.

use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_locks::{KillFlag, LockOwner, LockTable, RowMode, WaitLimit, this_thread};

struct Side {
    table: Arc<LockTable>,
    owners: Vec<LockOwner>,
}

impl Side {
    fn new(grouped_from: usize) -> Side {
        let table = LockTable::grouping_from(grouped_from, 7, this_thread);
        let owners = (0..4).map(|n| table.owner(TrxId(n + 1))).collect();
        Side { table, owners }
    }

    fn lock(&mut self, who: usize, index: u32, key: &[u8], mode: RowMode) -> String {
        let (limit, kill) = (WaitLimit::NoWait, KillFlag::default());
        let answer = self.table.lock_row(&mut self.owners[who], IndexId(index), key, mode, limit, &kill);
        format!("{answer:?}")
    }

    fn end(&mut self, who: usize, trx: u64) {
        self.owners[who] = self.table.owner(TrxId(trx));
    }

    fn states(&self) -> Vec<(usize, CommitSeq)> {
        self.owners.iter().map(|owner| (owner.row_locks(), owner.depends_on())).collect()
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn both<T: PartialEq + std::fmt::Debug>(sides: &mut [Side; 2], mut act: impl FnMut(&mut Side) -> T) -> T {
    let [grouping, apart] = sides;
    let (one, other) = (act(grouping), act(apart));
    assert_eq!(one, other, "grouped, then apart");
    one
}

#[test]
fn grouped_locks_are_locks_like_any_other() {
    let mut most = 0;
    for seed in 1..=60 {
        let mut random = Random(seed);
        let mut sides = [Side::new(0), Side::new(usize::MAX)];
        let (mut trx, mut seq, mut durable) = (100, 0, 0);
        for _ in 0..1500 {
            let who = random.below(4) as usize;
            let index = 5 + random.below(2) as u32;
            let mode = if random.below(3) == 0 { RowMode::Shared } else { RowMode::Exclusive };
            let start = random.below(40) as u8;
            let key = [1, (random.below(3)) as u8, start];
            match random.below(40) {
                // A scan locks neighbours one after the other.
                0..=9 => {
                    for last in start..start + random.below(12) as u8 {
                        both(&mut sides, |side| side.lock(who, index, &[1, key[1], last], mode));
                    }
                }
                10..=27 => {
                    let taken = both(&mut sides, |side| side.lock(who, index, &key, mode));
                    // READ COMMITTED releases rows that did not match.
                    if taken.starts_with("Ok") && random.below(4) == 0 {
                        both(&mut sides, |side| {
                            let table = Arc::clone(&side.table);
                            table.unlock_row(&mut side.owners[who], IndexId(index), &key);
                        });
                    }
                }
                28..=31 => both(&mut sides, |side| {
                    let table = Arc::clone(&side.table);
                    table.downgrade_row(&mut side.owners[who], IndexId(index), &key);
                }),
                32..=33 => {
                    (trx, seq) = (trx + 1, seq + 1);
                    both(&mut sides, |side| {
                        let table = Arc::clone(&side.table);
                        drop(table.release_early(&mut side.owners[who], CommitSeq(seq)));
                        side.end(who, trx);
                    });
                }
                34..=35 => {
                    trx += 1;
                    both(&mut sides, |side| side.end(who, trx));
                }
                36 => {
                    durable = seq.min(durable + random.below(3));
                    both(&mut sides, |side| side.table.set_durable(CommitSeq(durable)));
                }
                _ => drop(both(&mut sides, |side| side.states())),
            }
            most = most.max(sides[0].owners.iter().map(LockOwner::row_locks).max().expect("owners"));
        }
        (0..4).for_each(|who| both(&mut sides, |side| side.end(who, 1000 + who as u64)));
        for _ in 0..200 {
            both(&mut sides, |side| side.table.set_durable(CommitSeq(seq)));
        }
        both(&mut sides, |side| assert_eq!(side.table.stats().rows, 0, "nothing is left"));
    }
    assert!(most > 30, "no transaction had many rows: {most}");
}

#[test]
fn a_million_locks_of_a_scan_take_hardly_any_memory() {
    let table = LockTable::new(3, this_thread);
    let mut owner = table.owner(TrxId(1));
    let (limit, kill) = (WaitLimit::NoWait, KillFlag::default());
    for n in 0..1_000_000_u32 {
        let locked =
            table.lock_row(&mut owner, IndexId(9), &n.to_be_bytes(), RowMode::Exclusive, limit, &kill);
        assert!(locked.is_ok());
    }
    assert_eq!((owner.row_locks(), table.stats().rows), (1_000_000, 1_000_000));
    assert!(table.stats().row_table_bytes < 4_000_000, "{}", table.stats().row_table_bytes);
    let mut other = table.owner(TrxId(2));
    for n in [0, 77_777, 999_999_u32] {
        let key = n.to_be_bytes();
        let refused = table.lock_row(&mut other, IndexId(9), &key, RowMode::Shared, limit, &kill);
        assert!(refused.is_err(), "{n}");
    }
    drop(owner);
    let free = table.lock_row(&mut other, IndexId(9), &7_u32.to_be_bytes(), RowMode::Shared, limit, &kill);
    assert!(free.is_ok());
    assert_eq!(table.stats().rows, 1);
}

#[test]
fn a_scan_that_gives_its_rows_back_leaves_no_groups() {
    let table = LockTable::grouping_from(0, 3, this_thread);
    let mut owner = table.owner(TrxId(1));
    let (limit, kill) = (WaitLimit::NoWait, KillFlag::default());
    let mut kept = 0;
    // READ COMMITTED reads a secondary index and its rows, and one row in 4,096 matches.
    for n in 0..100_000_u32 {
        for index in [IndexId(9), IndexId(10)] {
            let locked =
                table.lock_row(&mut owner, index, &n.to_be_bytes(), RowMode::Exclusive, limit, &kill);
            assert!(locked.is_ok());
        }
        match n % 4096 {
            0 => kept += 2,
            _ => {
                for index in [IndexId(9), IndexId(10)] {
                    table.unlock_row(&mut owner, index, &n.to_be_bytes());
                }
            }
        }
    }
    assert_eq!((owner.row_locks(), table.stats().rows), (kept, kept as u64));
    assert!(owner.release_steps() <= 2 * kept, "{} steps for {kept} rows", owner.release_steps());
    assert!(owner.row_lock_bytes() < 1 << 17, "{} bytes", owner.row_lock_bytes());
    assert!(table.stats().row_table_bytes < 1 << 18, "{}", table.stats().row_table_bytes);
    drop(owner);
    assert_eq!(table.stats().rows, 0);
}
