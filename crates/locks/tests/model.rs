//! Model checks of locks, their hand-over, deadlocks and KILL, with a scheduler that explores every
//! interleaving.
//!
//! The source files are compiled here a second time, with `cohort_interleave`'s locks and atomics in place of
//! the real ones. No wait has a limit that expires. So a lock that is released but never granted, or a cycle
//! that is not broken, is a deadlock, which the scheduler reports with the schedule that replays it.
//!
//! # Mutations that were found
//! | mutation | check |
//! |---|---|
//! | KILL does not get the statement's wait slot | `kill_ends_a_wait` |
//! | a waiter that gives up does not grant the waiters after it | `kill_ends_a_wait` |
//! | a grant at the last moment is ignored | `a_killed_waiter_leaves_no_waiter_asleep` |
//! | an early release wakes no waiter | `a_row_is_handed_over` |
//! | a waiter checks its verdict only once | `a_row_is_handed_over` |
//! | no owner is marked as waited for | `every_cycle_is_broken_and_only_cycles_are` |
//! | anonymous holders of a name are not registered when they wait | `names_and_rows_make_one_graph` |
//! | a name is guarded after its anonymous holders are read | `names_and_rows_make_one_graph` |
//! | the last anonymous holder of a guarded name wakes no waiter | `names_and_rows_make_one_graph` |
//! | every owner is a node of its own, even in a session | `owners_of_a_session_are_one_node` |
//! | only the waiting owner's anonymous locks are registered | `owners_of_a_session_are_one_node` |
//! | an owner never waited for skips the search though its session was | `owners_of_a_session_are_one_node` |

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
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_base::{CommitSeq, IndexId, TrxId};
use cohort_interleave::{check, choose, thread};

use crate::kill::{KillFlag, KillLevel};
use crate::mode::{MetadataKey, MetadataMode, RowMode};
use crate::party::{Part, Party};
use crate::sleep::Sleeper;
use crate::sync::{AtomicU64, Ordering};
use crate::table::{LockError, LockTable, WaitLimit};

const INDEX: IndexId = IndexId(30);
/// Longer than any model runs.
const FOREVER: WaitLimit = WaitLimit::For(Duration::from_secs(3600));
const ALONE: u64 = 1 << 32;

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

/// The lock table, and counts of the owners inside two rows and one name.
struct World {
    table: Arc<LockTable>,
    rows: [AtomicU64; 2],
    name: AtomicU64,
    seq: AtomicU64,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            table: LockTable::grouping_from(if choose(2) == 0 { 0 } else { usize::MAX }, 1, here),
            rows: [AtomicU64::new(0), AtomicU64::new(0)],
            name: AtomicU64::new(0),
            seq: AtomicU64::new(1),
        })
    }

    fn owner(&self, trx: u64) -> LockOwner {
        self.table.owner(TrxId(trx))
    }

    fn lock(&self, owner: &mut LockOwner, row: usize, mode: RowMode) -> Result<Inside<'_>, LockError> {
        let kill = KillFlag::default();
        self.table.lock_row(owner, INDEX, &[row as u8], mode, FOREVER, &kill)?;
        Ok(Inside::enter(&self.rows[row], mode == RowMode::Exclusive))
    }

    fn use_name(&self, owner: &mut LockOwner, mode: MetadataMode) -> Result<Inside<'_>, LockError> {
        let name = MetadataKey::Global;
        self.table.lock_metadata(owner, &name, mode, FOREVER, &KillFlag::default())?;
        Ok(Inside::enter(&self.name, mode == MetadataMode::Exclusive))
    }

    /// Commits with early release.
    fn commit(&self, mut owner: LockOwner) {
        let seq = CommitSeq(self.seq.fetch_add(1, Ordering::SeqCst));
        drop(self.table.release_early(&mut owner, seq));
        self.table.set_durable(seq);
    }
}

/// An owner inside a section that its lock protects.
struct Inside<'a> {
    count: &'a AtomicU64,
    weight: u64,
}

impl Inside<'_> {
    fn enter(count: &AtomicU64, is_alone: bool) -> Inside<'_> {
        let weight = if is_alone { ALONE } else { 1 };
        let before = count.fetch_add(weight, Ordering::SeqCst);
        assert!(before == 0 || (!is_alone && before < ALONE), "two are in who exclude each other");
        Inside { count, weight }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(self.weight, Ordering::SeqCst);
    }
}

fn in_threads(world: &Arc<World>, work: Vec<Box<dyn FnOnce(&World) + Send>>) {
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
}

fn row_mode() -> RowMode {
    if choose(3) == 0 { RowMode::Shared } else { RowMode::Exclusive }
}

#[test]
fn a_row_is_handed_over() {
    check(1_500, || {
        let world = World::new();
        let hot = |trx: u64| -> Box<dyn FnOnce(&World) + Send> {
            Box::new(move |world| {
                let mut owner = world.owner(trx);
                drop(world.lock(&mut owner, 0, row_mode()).expect("no cycle over one row"));
                match choose(2) {
                    0 => world.commit(owner),
                    _ => drop(owner),
                }
            })
        };
        in_threads(&world, vec![hot(1), hot(2), hot(3)]);
        assert_eq!(world.table.stats().row_waits_current, 0);
    });
}

#[test]
fn every_cycle_is_broken_and_only_cycles_are() {
    check(1_500, || {
        let world = World::new();
        let both = |trx: u64, first: usize| -> Box<dyn FnOnce(&World) + Send> {
            Box::new(move |world| {
                let mut owner = world.owner(trx);
                let one = world.lock(&mut owner, first, RowMode::Exclusive).expect("holds nothing");
                match world.lock(&mut owner, 1 - first, RowMode::Exclusive) {
                    Ok(two) => drop((one, two)),
                    Err(error) => {
                        assert_eq!(error, LockError::Deadlock);
                        drop(one);
                    }
                }
            })
        };
        in_threads(&world, vec![both(1, 0), both(2, 1), both(3, 0)]);
        let deadlocks = world.table.stats().deadlocks;
        assert!(deadlocks <= 2, "the last one meets no other: {deadlocks}");
    });
}

#[test]
fn names_and_rows_make_one_graph() {
    check(1_500, || {
        let world = World::new();
        let writer: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(1);
            let name = world.use_name(&mut owner, MetadataMode::SharedWrite).expect("holds nothing");
            let row = world.lock(&mut owner, 0, RowMode::Exclusive);
            drop((name, row));
        });
        let alter: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(2);
            let row = world.lock(&mut owner, 0, RowMode::Exclusive).expect("holds nothing");
            let name = world.use_name(&mut owner, MetadataMode::Exclusive);
            drop((name, row));
        });
        let reader: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(3);
            drop(world.use_name(&mut owner, MetadataMode::SharedRead).expect("holds nothing"));
        });
        in_threads(&world, vec![writer, alter, reader]);
    });
}

#[test]
fn owners_of_a_session_are_one_node() {
    check(1_500, || {
        let world = World::new();
        // Its transaction may hold the name anonymously while it, or the other owner, waits.
        let session: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let party = Party::new();
            let (mut transaction, mut other) = (world.owner(1), world.owner(2));
            transaction.join(&party, Part::Transaction);
            other.join(&party, if choose(2) == 0 { Part::Side } else { Part::Lasting });
            let mode = if choose(2) == 0 { MetadataMode::SharedRead } else { MetadataMode::SharedWrite };
            let (first, second) = match choose(2) {
                0 => (&mut transaction, &mut other),
                _ => (&mut other, &mut transaction),
            };
            let name = world.use_name(first, mode).expect("holds nothing");
            let row = world.lock(second, 0, RowMode::Exclusive);
            assert!(row.as_ref().map_or_else(|error| *error == LockError::Deadlock, |_| true));
            drop((name, row));
        });
        let alter: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(3);
            let row = world.lock(&mut owner, 0, RowMode::Exclusive).expect("holds nothing");
            let name = world.use_name(&mut owner, MetadataMode::Exclusive);
            drop((name, row));
        });
        let reader: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(4);
            drop(world.use_name(&mut owner, MetadataMode::SharedRead).expect("holds nothing"));
        });
        in_threads(&world, vec![session, alter, reader]);
    });
}

/// A session can wait for an owner that has left it, as for any other: a transaction that is not published
/// yet.
#[test]
fn a_session_waits_for_what_has_left_it() {
    check(1_000, || {
        let world = World::new();
        let session: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let party = Party::new();
            let (mut committing, mut next) = (world.owner(1), world.owner(2));
            committing.join(&party, Part::Transaction);
            drop(world.lock(&mut committing, 0, RowMode::Exclusive).expect("no cycle"));
            committing.leave();
            next.join(&party, Part::Transaction);
            let pipeline = thread::spawn(move || drop(committing));
            drop(world.lock(&mut next, 0, RowMode::Exclusive).expect("it ends by itself"));
            pipeline.join().expect("no panic");
        });
        let other: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(3);
            drop(world.lock(&mut owner, 0, RowMode::Exclusive).expect("no cycle"));
        });
        in_threads(&world, vec![session, other]);
    });
}

#[test]
fn a_killed_waiter_leaves_no_waiter_asleep() {
    check(1_500, || {
        let world = World::new();
        let kill = KillFlag::default();
        let waiter: Box<dyn FnOnce(&World) + Send> = {
            let kill = kill.clone();
            Box::new(move |world| {
                let mut owner = world.owner(1);
                let mode = RowMode::Exclusive;
                match world.table.lock_row(&mut owner, INDEX, &[0], mode, FOREVER, &kill) {
                    Ok(_) => drop(Inside::enter(&world.rows[0], true)),
                    Err(error) => assert_eq!(error, LockError::Killed(KillLevel::Query)),
                }
            })
        };
        let other = |trx: u64, mode: RowMode| -> Box<dyn FnOnce(&World) + Send> {
            Box::new(move |world| {
                let mut owner = world.owner(trx);
                drop(world.lock(&mut owner, 0, mode).expect("it is not killed"));
            })
        };
        let killer: Box<dyn FnOnce(&World) + Send> = Box::new(move |_| kill.kill(KillLevel::Query));
        in_threads(&world, vec![waiter, killer, other(2, RowMode::Shared), other(3, RowMode::Shared)]);
    });
}

#[test]
fn kill_ends_a_wait() {
    check(1_000, || {
        let world = World::new();
        let mut holder = world.owner(1);
        let inside = world.lock(&mut holder, 0, RowMode::Shared).expect("free");
        let kill = KillFlag::default();
        let waiter: Box<dyn FnOnce(&World) + Send> = {
            let kill = kill.clone();
            Box::new(move |world| {
                let mut owner = world.owner(2);
                let mode = RowMode::Exclusive;
                let ended = world.table.lock_row(&mut owner, INDEX, &[0], mode, FOREVER, &kill);
                assert_eq!(ended.map(drop), Err(LockError::Killed(KillLevel::Query)));
            })
        };
        let killer: Box<dyn FnOnce(&World) + Send> = Box::new(move |_| kill.kill(KillLevel::Query));
        // It may queue after the waiter, and is then granted when that one gives up.
        let reader: Box<dyn FnOnce(&World) + Send> = Box::new(|world| {
            let mut owner = world.owner(3);
            drop(world.lock(&mut owner, 0, RowMode::Shared).expect("it is not killed"));
        });
        // The holder stays until they are finished.
        in_threads(&world, vec![waiter, killer, reader]);
        drop(inside);
        drop(holder);
    });
}
