//! Model checks of range locks: scans, inserts and their ends, with a scheduler that explores every
//! interleaving. As in `model.rs`, the source files are compiled a second time, and a wait that never ends is
//! a deadlock that the scheduler reports.
//!
//! # Mutations that were found
//! | mutation | check |
//! |---|---|
//! | an insert reads the guard only before storing its point | `no_row_appears_in_a_range_that_was_scanned` |
//! | the guard is raised after the points are read | `a_killed_wait_for_a_range_leaves_no_waiter_asleep` |
//! | an inserted point notifies no scan | `no_row_appears_in_a_range_that_was_scanned` |
//! | a point granted after a wait notifies no scan | `every_wait_for_a_range_ends` |
//! | scans that saw a point which then waits are not woken | `no_row_appears_in_a_range_that_was_scanned` |
//! | a release checks for waiters before it stores | `every_wait_for_a_range_ends` |
//! | a waiter does not check again after it has marked its blockers | `every_wait_for_a_range_ends` |
//! | a scan over the key of a waiting insert does not mark the scan's owner | `every_wait_for_a_range_ends` |
//! | waiting points block scans | `scans_never_meet_by_a_point_that_waits` |

#![allow(dead_code)]

#[path = "../src/graph.rs"]
mod graph;
#[path = "../src/groups.rs"]
mod groups;
#[path = "../src/intervals.rs"]
mod intervals;
#[path = "../src/kill.rs"]
mod kill;
#[path = "../src/lock_owner.rs"]
mod lock_owner;
#[path = "../src/mode.rs"]
mod mode;
#[path = "../src/names.rs"]
mod names;
#[path = "../src/owner.rs"]
mod owner;
#[path = "../src/party.rs"]
mod party;
#[path = "../src/permit.rs"]
mod permit;
#[path = "../src/points.rs"]
mod points;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/ranges.rs"]
mod ranges;
#[path = "../src/row_key.rs"]
mod row_key;
#[path = "../src/rows.rs"]
mod rows;
#[path = "../src/scan.rs"]
mod scan;
#[path = "../src/sleep.rs"]
mod sleep;
#[path = "../src/table.rs"]
mod table;
#[path = "../src/wait_report.rs"]
mod wait_report;
#[path = "../src/waits.rs"]
mod waits;

/// The module that the files import as `crate::sync`.
mod sync {
    pub use cohort_interleave::{
        AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, RwLock,
    };
}

use crate::table::LockOwner;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_interleave::{Mutex, check, choose, thread};

use crate::kill::{KillFlag, KillLevel};
use crate::party::{Part, Party};
use crate::points::{LockSpan, Towards};
use crate::ranges::{RangeScan, Step, StepTo, Uncommitted};
use crate::sleep::Sleeper;
use crate::sync::{AtomicU64, Ordering};
use crate::table::{LockError, LockTable, WaitLimit};

const INDEX: IndexId = IndexId(30);
const FOREVER: WaitLimit = WaitLimit::For(Duration::from_secs(3600));

struct Parked(thread::Thread);

impl Sleeper for Parked {
    fn sleep(&self, _: Option<Instant>) {
        thread::park();
    }

    fn wake(&self) {
        self.0.unpark();
    }
}

fn here() -> Arc<dyn Sleeper> {
    Arc::new(Parked(thread::current()))
}

/// The lock table, and one index with its ordered keys.
struct World {
    table: Arc<LockTable>,
    keys: Mutex<BTreeSet<u8>>,
    seq: AtomicU64,
}

type Work = Box<dyn FnOnce(&World) + Send>;

impl World {
    fn new(keys: &[u8]) -> Arc<World> {
        Arc::new(World {
            table: LockTable::new(1, here),
            keys: Mutex::new(keys.iter().copied().collect()),
            seq: AtomicU64::new(1),
        })
    }

    /// Creates the transaction of a session of its own.
    fn owner(&self, trx: u64) -> LockOwner {
        let mut owner = self.table.owner(TrxId(trx));
        owner.join(&Party::new(), Part::Transaction);
        owner
    }

    fn put(&self, owner: &mut LockOwner, key: u8) -> Result<(), LockError> {
        self.table.put_key(owner, INDEX, &[key], FOREVER, &KillFlag::default()).map(drop)
    }

    /// Returns the ordered keys from `start` (inclusive) to `end` (exclusive).
    fn read(&self, span: &LockSpan) -> Vec<u8> {
        self.keys.lock().iter().copied().filter(|key| span.contains(&[*key])).collect()
    }

    /// Commits new keys with early release.
    fn commit(&self, mut owner: LockOwner, keys: &[u8]) {
        let seq = CommitSeq(self.seq.fetch_add(1, Ordering::SeqCst));
        self.keys.lock().extend(keys);
        drop(self.table.release_early(&mut owner, seq));
        self.table.set_durable(seq);
    }

    /// Scans like a cursor, two entries at a time. Returns the keys found.
    fn scan(
        &self,
        owner: &mut LockOwner,
        towards: Towards,
        mut rest: LockSpan,
    ) -> Result<Vec<u8>, LockError> {
        let scan = RangeScan::new(INDEX, towards, Uncommitted::Block);
        let kill = KillFlag::default();
        let mut found = Vec::new();
        'batches: loop {
            self.table.watch(owner, &scan, rest.clone());
            let mut batch = self.read(&rest);
            if towards == Towards::Down {
                batch.reverse();
            }
            let is_more = batch.len() > 2;
            batch.truncate(2);
            for key in batch {
                let to = StepTo::Entry(&[key]);
                if self.table.advance(owner, &scan, to, FOREVER, &kill)? == Step::Again {
                    continue 'batches;
                }
                found.push(key);
                match towards {
                    Towards::Up => rest.start = vec![key, 0],
                    Towards::Down => rest.end = Some(vec![key]),
                }
            }
            if !is_more && self.table.advance(owner, &scan, StepTo::End, FOREVER, &kill)? == Step::Passed {
                found.sort_unstable();
                return Ok(found);
            }
        }
    }

    /// Scans, and checks twice that no other keys have appeared.
    fn scan_and_look(&self, owner: &mut LockOwner, span: LockSpan) -> Result<Vec<u8>, LockError> {
        let towards = if choose(2) == 0 { Towards::Up } else { Towards::Down };
        let found = self.scan(owner, towards, span.clone())?;
        for _ in 0..2 {
            assert_eq!(self.read(&span), found, "a row appeared in a range that is locked");
            thread::yield_now();
        }
        Ok(found)
    }
}

fn span(start: u8, end: u8) -> LockSpan {
    LockSpan { start: vec![start], end: Some(vec![end]) }
}

fn in_threads(world: &Arc<World>, work: Vec<Work>) {
    let threads: Vec<_> = work
        .into_iter()
        .map(|work| {
            let world = world.clone();
            thread::spawn(move || work(&world))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(world.table.stats().range_holders, 0, "no range is left");
    assert_eq!(world.table.stats().row_waits_current, 0);
}

/// Inserts keys and commits them, or rolls back; a deadlock victim inserts nothing.
fn inserter(trx: u64, keys: &'static [u8]) -> Work {
    Box::new(move |world| {
        let mut owner = world.owner(trx);
        for key in keys {
            if let Err(error) = world.put(&mut owner, *key) {
                assert_eq!(error, LockError::Deadlock);
                return;
            }
        }
        match choose(3) {
            0 => drop(owner),
            _ => world.commit(owner, keys),
        }
    })
}

fn scanner(trx: u64, start: u8, end: u8) -> Work {
    Box::new(move |world| {
        let mut owner = world.owner(trx);
        match world.scan_and_look(&mut owner, span(start, end)) {
            Ok(_) if choose(2) == 0 => world.commit(owner, &[]),
            Ok(_) => {}
            Err(error) => assert_eq!(error, LockError::Deadlock),
        }
    })
}

#[test]
fn no_row_appears_in_a_range_that_was_scanned() {
    check(3_000, || {
        let world = World::new(&[10, 20, 30]);
        in_threads(&world, vec![scanner(1, 5, 40), inserter(2, &[15, 35]), inserter(3, &[12])]);
        assert!(world.table.stats().deadlocks <= 1, "{:?}", world.table.stats());
    });
}

#[test]
fn every_wait_for_a_range_ends() {
    check(3_000, || {
        let world = World::new(&[10]);
        let work = vec![scanner(1, 5, 20), scanner(2, 8, 40), inserter(3, &[15]), inserter(4, &[9, 12])];
        in_threads(&world, work);
    });
}

#[test]
fn ascending_inserts_and_a_scan_over_them_do_not_meet_twice() {
    check(2_000, || {
        let world = World::new(&[]);
        let scan: Work = Box::new(|world| {
            let mut owner = world.owner(1);
            let found = world.scan(&mut owner, Towards::Up, span(0, 90)).expect("no cycle");
            assert_eq!(world.read(&span(0, 90)), found);
        });
        // The scan's locked part ends at the first key in its way; keys after that are free.
        in_threads(&world, vec![scan, inserter(2, &[1, 2, 3])]);
        assert_eq!(world.table.stats().deadlocks, 0);
    });
}

#[test]
fn scans_never_meet_by_a_point_that_waits() {
    check(2_000, || {
        let world = World::new(&[]);
        // Both scan one range and then lock one row, in turn: only an inserter between them could close a
        // cycle.
        let scan = |trx: u64| -> Work {
            Box::new(move |world| {
                let mut owner = world.owner(trx);
                world.scan_and_look(&mut owner, span(5, 20)).expect("no cycle");
            })
        };
        in_threads(&world, vec![scan(1), scan(2), inserter(3, &[10])]);
        assert_eq!(world.table.stats().deadlocks, 0);
    });
}

#[test]
fn a_key_that_is_put_again_does_not_wait_for_its_waiters() {
    check(1_000, || {
        let world = World::new(&[]);
        // INSERT, DELETE and INSERT of one row.
        in_threads(&world, vec![inserter(1, &[10, 10, 10]), scanner(2, 5, 20)]);
        assert_eq!(world.table.stats().deadlocks, 0);
    });
}

#[test]
fn a_killed_wait_for_a_range_leaves_no_waiter_asleep() {
    check(2_000, || {
        let world = World::new(&[10]);
        let kill = KillFlag::default();
        let waiter: Work = {
            let kill = kill.clone();
            Box::new(move |world| {
                let mut owner = world.owner(1);
                match world.table.put_key(&mut owner, INDEX, &[12], FOREVER, &kill) {
                    Ok(_) => world.commit(owner, &[12]),
                    Err(error) => assert_eq!(error, LockError::Killed(KillLevel::Query)),
                }
            })
        };
        let killer: Work = Box::new(move |_| kill.kill(KillLevel::Query));
        in_threads(&world, vec![waiter, killer, scanner(2, 5, 40), inserter(3, &[13])]);
    });
}

#[test]
fn a_put_key_depends_on_the_range_released_early() {
    check(1_000, || {
        let world = World::new(&[]);
        let ordered = Arc::new(AtomicU64::new(0));
        let scan: Work = {
            let ordered = ordered.clone();
            Box::new(move |world| {
                let mut owner = world.owner(1);
                world.scan(&mut owner, Towards::Up, span(5, 20)).expect("no cycle");
                let seq = world.seq.fetch_add(1, Ordering::SeqCst);
                ordered.store(seq, Ordering::SeqCst);
                drop(world.table.release_early(&mut owner, CommitSeq(seq)));
                // Never published: the point stays with its owner, which outlives the model.
                std::mem::forget(owner);
            })
        };
        let insert: Work = Box::new(move |world| {
            let mut owner = world.owner(2);
            let before = ordered.load(Ordering::SeqCst);
            world.put(&mut owner, 10).expect("no cycle");
            if before != 0 {
                assert_eq!(owner.depends_on(), CommitSeq(before));
            }
        });
        let threads: Vec<_> = [scan, insert]
            .into_iter()
            .map(|work| {
                let world = world.clone();
                thread::spawn(move || work(&world))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}
