//! Model checks: latches, splits, merges, eviction, version references, purge and checkpoints under a
//! scheduler that explores interleavings.
//!
//! The crate's files are compiled here again, with the locks, latches and atomics of `cohort_interleave`.
//! Values are so long that a leaf holds four, and the pool holds four pages, so that a few transactions cause
//! splits, evictions and merges. No wait has a time limit, so a lost wake-up is a deadlock. The scheduler
//! reports it with the schedule that replays it.
//!
//! # Mutations that were found
//! | mutation | check |
//! |---|---|
//! | purge raises the watermark before it has cleaned | `purge_takes_out` |
//! | purge removes a row that no longer belongs to the deleting transaction | `purge_takes_out` |
//! | purge passes what a view, or a checkpoint's horizon, needs | `a_checkpoint_is_one_state` |
//! | a reader releases a page before it has latched its child | `views_are_whole`, `whoever_sleeps` |
//! | a page that is split, or merged, is not captured for the running checkpoint | `a_checkpoint_is_one_state` |
//! | a page with undecided versions is not listed again | `a_checkpoint_is_one_state` |
//! | a page counts as listed in an interval in which it is not | `a_checkpoint_is_one_state` |
//! | a changed page is evicted without an image | `whoever_changes_a_page` |
//! | a page that was changed after its checkpoint image counts as written | `a_page_that_changes_beside` |
//! | a page is evicted although a thread has just pinned it | `whoever_changes_a_page`, with ten times the schedules |
//! | a waiter does not check whether the read is over | `whoever_sleeps` |
//! | the end of a read wakes no waiter | `whoever_sleeps` |
//! | a page that was merged into its neighbour is not marked | `a_reader_that_keeps` |
//! | a reader thread wakes the waiters before the page is available | `whoever_sleeps` |
//! | purge frees or removes what a held view needs | `a_held_view_keeps` |
//! | a chain skips a version that a view needs | `a_held_view_keeps` |
//! | purge prunes transactions that were ordered after it listed the views | `a_view_that_is_taken` |
//! | a reader trusts an unresolved link whose record is gone, without checking it again | `an_unsettled_link` |
//! | a commit low-water mark includes a transaction that is undecided, aborted, or ordered after its CommitSeq | `a_held_view_keeps`; the last one: `tests/odd_views.rs` |
//! | a commit low-water mark is raised before its CommitSeq | `a_reader_whose_chain_changes`, with ten times the schedules |
//! | a reader of the newest row does not check again whether its writer was ordered | `a_row_whose_writer` |
//! | a page of a dropped tree is removed from memory before its eviction image | `a_tree_that`, with `COHORT_LONG_TESTS` |
#![allow(dead_code)]

#[path = "../src/block_set.rs"]
mod block_set;
#[path = "../src/bulk.rs"]
mod bulk;
#[path = "../src/chain.rs"]
mod chain;
#[path = "../src/changes.rs"]
mod changes;
#[path = "../src/checkpoint.rs"]
mod checkpoint;
#[path = "../src/compress.rs"]
mod compress;
#[path = "../src/engine.rs"]
mod engine;
#[path = "../src/frame.rs"]
mod frame;
#[path = "../src/inner.rs"]
mod inner;
#[path = "../src/install.rs"]
mod install;
#[path = "../src/leaf_hint.rs"]
mod leaf_hint;
#[path = "../src/many.rs"]
mod many;
#[path = "../src/map.rs"]
mod map;
#[path = "../src/merge.rs"]
mod merge;
#[path = "../src/page.rs"]
mod page;
#[path = "../src/page_layout.rs"]
mod page_layout;
#[path = "../src/pins.rs"]
mod pins;
#[path = "../src/pool.rs"]
mod pool;
#[path = "../src/pool_dump.rs"]
mod pool_dump;
#[path = "../src/pool_dump_state.rs"]
mod pool_dump_state;
#[path = "../src/prune.rs"]
mod prune;
#[path = "../src/reads.rs"]
mod reads;
#[path = "../src/redo.rs"]
mod redo;
#[path = "../src/replay.rs"]
mod replay;
#[path = "../src/report.rs"]
mod report;
#[path = "../src/scan.rs"]
mod scan;
#[path = "../src/segment.rs"]
mod segment;
#[path = "../src/sound.rs"]
mod sound;
#[path = "../src/space.rs"]
mod space;
#[path = "../src/spill.rs"]
mod spill;
#[path = "../src/store.rs"]
mod store;
#[path = "../src/superblock.rs"]
mod superblock;
#[path = "../src/tree.rs"]
mod tree;
#[path = "../src/trx.rs"]
mod trx;
#[path = "../src/trx_record.rs"]
mod trx_record;
#[path = "../src/undo.rs"]
mod undo;
#[path = "../src/value.rs"]
mod value;
#[path = "../src/verify.rs"]
mod verify;
#[path = "../src/version.rs"]
mod version;
#[path = "../src/version_ref.rs"]
mod version_ref;
#[path = "../src/views.rs"]
mod views;

/// Stands for `crate::sync` in the crate's files.
mod sync {
    pub use cohort_interleave::{
        AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Condvar, ExclusiveGuard, Latch, Mutex, Ordering,
        RwLock, RwLockReadGuard, SharedGuard, downgrade, latch_of, latch_of_shared,
    };

    /// Small, so that blocks of a rollback segment fill up quickly.
    pub const BLOCK: u64 = 2;

    pub fn spawn(_: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        cohort_interleave::thread::spawn(run);
        Ok(())
    }
}

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, Direction, Engine, EngineSetting, EngineSnapshot, KeyRange, MemoryRedo, Participant, ReadAt,
    ReadView, Redo, ScanRequest, SearchHint, WaitSlot, WaitSlotOf,
};
use cohort_interleave::{check, choose, thread};
use cohort_vfs::{FaultFs, MemFs, SharedFs};

use crate::engine::{BtreeEngine, BtreeOptions};
use crate::sync::Mutex;

const TABLE: IndexId = IndexId(16);
const ID: ParticipantId = ParticipantId(1);

/// Wait slot of a thread that plays a fiber.
struct OnThread(thread::Thread);

impl WaitSlot for OnThread {
    fn sleep(&self) {
        thread::park();
    }

    fn wake(&self) {
        self.0.unpark();
    }
}

fn on_thread() -> Option<Arc<dyn WaitSlot>> {
    Some(Arc::new(OnThread(thread::current())))
}

fn open(fs: &SharedFs, wait_slot_of: WaitSlotOf) -> BtreeEngine {
    let options = BtreeOptions {
        pool_bytes: 4 * 16384,
        rollback_segments: 2,
        undo_bytes: 1 << 20,
        young_views: 1,
        has_threads: false,
        wait_slot_of,
    };
    BtreeEngine::open(ID, fs, Path::new("/btree"), options).expect("opens")
}

/// An engine, and the writes of each transaction in commit order.
struct World {
    engine: BtreeEngine,
    order: Mutex<Vec<Vec<(u8, Option<u8>)>>>,
}

type Rows = Vec<(u8, u8)>;

impl World {
    fn new(fs: &SharedFs, wait_slot_of: WaitSlotOf) -> Arc<World> {
        Arc::new(World { engine: open(fs, wait_slot_of), order: Mutex::new(Vec::new()) })
    }

    fn prepare(&self, writes: &[(u8, Option<u8>)]) -> Redo {
        let (mut trx, files) = (self.engine.begin(), MemoryRedo::default());
        for (n, (key, value)) in writes.iter().enumerate() {
            if n == 1 {
                // The statement's rows are searched while a part of the transaction is installed.
                trx.install_part(&files).expect("installs");
            }
            match value {
                // A leaf has room for four.
                Some(value) => trx.put(TABLE, &[*key], &[*value; 3900]).expect("puts"),
                None => trx.delete(TABLE, &[*key]).expect("deletes"),
            }
        }
        files.prepare(&mut *trx).expect("prepares")
    }

    fn commit(&self, writes: &[(u8, Option<u8>)]) {
        let redo = self.prepare(writes);
        let mut order = self.order.lock();
        order.push(writes.to_vec());
        self.engine.commit_ordered(CommitSeq(order.len() as u64), &[&redo]);
    }

    fn rows_after(order: &[Vec<(u8, Option<u8>)>]) -> Rows {
        let mut rows = std::collections::BTreeMap::new();
        for (key, value) in order.iter().flatten() {
            match value {
                Some(value) => drop(rows.insert(*key, *value)),
                None => drop(rows.remove(key)),
            }
        }
        rows.into_iter().collect()
    }

    /// Takes a view and returns it with the rows that it must show.
    fn view(&self) -> (ReadView, Rows) {
        let order = self.order.lock();
        let snapshot: Arc<dyn EngineSnapshot> = self.engine.snapshot();
        (ReadView::new(CommitSeq(order.len() as u64), vec![(ID, snapshot)]), World::rows_after(&order))
    }

    fn look(&self) {
        let (view, expected) = self.view();
        let direction = if choose(2) == 0 { Direction::Forward } else { Direction::Backward };
        let mut found = rows(&self.engine, ReadAt::View(&view), direction);
        found.sort_unstable();
        assert_eq!(found, expected, "a view's rows, {direction:?}");
    }

    /// Reads the rows of a view one by one with a search hint.
    fn look_near(&self, hint: &mut SearchHint, keys: std::ops::RangeInclusive<u8>) {
        let (view, expected) = self.view();
        let trx = self.engine.begin();
        let mut value = Vec::new();
        for key in keys {
            let found =
                trx.get_with_hint(ReadAt::View(&view), TABLE, &[key], &mut value, hint).expect("reads");
            let expected = expected.iter().find(|row| row.0 == key).map(|row| row.1);
            assert_eq!(found.then(|| value[0]), expected, "row {key} of a view");
        }
    }

    fn checkpoint(&self) -> (u64, Rows) {
        let (task, lsn, rows) = {
            let order = self.order.lock();
            let lsn = order.len() as u64;
            (self.engine.begin_checkpoint(Lsn(lsn)).expect("begins"), lsn, World::rows_after(&order))
        };
        task.finish().expect("finishes");
        (lsn, rows)
    }

    /// Checks the final state after all threads have ended.
    fn check_final_state(&self) {
        while self.engine.purge().expect("purges") > 0 {}
        let expected = World::rows_after(&self.order.lock());
        assert_eq!(rows(&self.engine, ReadAt::Latest, Direction::Forward), expected, "the rows in the end");
        assert_eq!(self.engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
        let history = self.engine.status().into_iter().find(|(name, _)| name == "Innodb_history_list_length");
        assert_eq!(history.expect("is reported").1, 0, "purge has passed everything");
    }
}

fn rows(engine: &BtreeEngine, at: ReadAt<'_>, direction: Direction) -> Rows {
    let (trx, mut batch) = (engine.begin(), Batch::default());
    assert!(
        !trx.scan(
            &ScanRequest { at, index: TABLE, range: &KeyRange::default(), direction, limit: 1000 },
            &mut batch
        )
        .expect("scans")
    );
    batch.iter().map(|(key, value)| (key[0], value[0])).collect()
}

fn spawn(run: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(run)
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

fn memory() -> SharedFs {
    Arc::new(MemFs::new())
}

#[test]
fn views_are_consistent_during_splits_and_eviction() {
    check(200, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(20, Some(1)), (40, Some(1)), (60, Some(1))]);
        let writers = [0_u8, 1].map(|writer| {
            let world = world.clone();
            spawn(move || {
                let key = |n: u8| 10 + n * 20 + writer;
                world.commit(&[(key(0), Some(1)), (key(1), Some(1)), (key(2), Some(1))]);
                world.commit(&[(key(0), Some(2)), (key(2), Some(2)), (key(3), Some(2))]);
            })
        });
        let reader = {
            let world = world.clone();
            spawn(move || {
                world.look();
                world.look();
            })
        };
        join(writers);
        join([reader]);
        world.check_final_state();
    });
}

/// Leaves that a search hint refers to are split and merged meanwhile.
#[test]
fn a_reader_that_keeps_its_place_finds_what_is_there() {
    check(300, || {
        let world = World::new(&memory(), || None);
        let all: Vec<_> = (1..=9).map(|n| (n, Some(1))).collect();
        world.commit(&all);
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(1, None), (2, None), (3, None), (4, None), (5, None)]);
                world.engine.purge().expect("purges");
                world.commit(&[(3, Some(2)), (4, Some(2)), (5, Some(2)), (6, Some(2))]);
                world.commit(&[(6, None), (7, None), (8, None), (9, None)]);
                world.engine.purge().expect("purges");
            })
        };
        let readers = [1..=9, 3..=5].map(|keys| {
            let world = world.clone();
            spawn(move || {
                let mut hint = SearchHint::default();
                for _ in 0..3 {
                    world.look_near(&mut hint, keys.clone());
                }
            })
        });
        join([writer]);
        join(readers);
        world.check_final_state();
    });
}

#[test]
fn purge_removes_exactly_the_unneeded_versions() {
    check(200, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1)), (20, Some(1)), (30, Some(1)), (40, Some(1)), (50, Some(1))]);
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(10, None), (20, None), (30, Some(2))]);
                // A row is inserted again under the same key.
                world.commit(&[(20, Some(3))]);
                drop(world.prepare(&[(30, None), (60, Some(9))]));
                world.commit(&[(30, Some(4)), (40, None), (50, None)]);
            })
        };
        let purge = {
            let world = world.clone();
            spawn(move || {
                for _ in 0..3 {
                    world.engine.purge().expect("purges");
                }
            })
        };
        let reader = {
            let world = world.clone();
            spawn(move || {
                world.look();
                world.look();
            })
        };
        join([writer, purge, reader]);
        world.check_final_state();
    });
}

/// Purge prunes while a view is held, concurrently with writers, other views and an aborted transaction.
#[test]
fn a_held_view_keeps_what_it_sees_while_others_come_and_go() {
    check(300, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1)), (20, Some(1)), (30, Some(1))]);
        let held = world.view();
        world.look();
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(10, Some(2)), (15, Some(2))]);
                world.commit(&[(10, Some(3)), (15, None), (20, None)]);
                drop(world.prepare(&[(10, None), (15, Some(9)), (20, Some(9))]));
                world.commit(&[(10, Some(4)), (20, Some(4)), (30, None)]);
                world.commit(&[(10, Some(5)), (25, Some(5))]);
            })
        };
        let purge = {
            let world = world.clone();
            spawn(move || {
                for _ in 0..4 {
                    world.engine.purge().expect("purges");
                }
            })
        };
        let reader = {
            let world = world.clone();
            spawn(move || {
                let (view, expected) = world.view();
                for _ in 0..2 {
                    world.look();
                    assert_eq!(rows(&world.engine, ReadAt::View(&view), Direction::Forward), expected);
                }
            })
        };
        join([writer, purge, reader]);
        let (view, expected) = &held;
        for _ in 0..2 {
            assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
            world.engine.purge().expect("purges");
        }
        drop(held);
        world.check_final_state();
    });
}

/// While a reader follows a chain, pruning skips versions of it and drops their records.
#[test]
fn a_reader_whose_chain_changes_starts_again() {
    check(3000, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1)), (20, Some(1))]);
        let held = world.view();
        for value in 2..5 {
            world.commit(&[(10, Some(value))]);
        }
        world.look();
        let purge = {
            let world = world.clone();
            spawn(move || {
                world.engine.purge().expect("purges");
                world.commit(&[(10, Some(5)), (20, None)]);
                world.look();
                world.engine.purge().expect("purges");
            })
        };
        let (view, expected) = &held;
        for _ in 0..3 {
            assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
        }
        join([purge]);
        assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
        drop(held);
        world.check_final_state();
    });
}

/// A reader is at an unresolved link. Pruning resolves the link, makes it skip versions, and drops the
/// record that it referred to together with the record's block. To the reader this looks as if all views had
/// passed the record.
#[test]
fn an_unsettled_link_is_believed_if_it_is_still_there() {
    check(2000, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1))]);
        let held = world.view();
        for value in 2..8 {
            world.commit(&[(10, Some(value))]);
        }
        world.look();
        let purge = {
            let world = world.clone();
            spawn(move || {
                world.engine.purge().expect("purges");
            })
        };
        let (view, expected) = &held;
        for _ in 0..2 {
            assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
        }
        join([purge]);
        drop(held);
        world.check_final_state();
    });
}

/// The second view may need a version that purge prunes because of the held view.
#[test]
fn a_view_that_is_taken_while_purge_sweeps_sees_its_state() {
    check(2000, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1))]);
        let held = world.view();
        world.commit(&[(10, Some(2))]);
        world.look();
        let purge = {
            let world = world.clone();
            spawn(move || {
                world.engine.purge().expect("purges");
            })
        };
        world.commit(&[(10, Some(3)), (20, Some(3))]);
        let (view, expected) = world.view();
        world.commit(&[(10, Some(4)), (20, None)]);
        join([purge]);
        assert_eq!(rows(&world.engine, ReadAt::View(&view), Direction::Forward), expected, "the later one");
        assert_eq!(rows(&world.engine, ReadAt::View(&held.0), Direction::Forward), held.1, "the held one");
        drop((view, held));
        world.check_final_state();
    });
}

/// A reader of the newest version of a row, whose writer is ordered and pruned at that moment, sees the row
/// from before the write or after it.
#[test]
fn a_row_whose_writer_is_swept_meanwhile_is_found() {
    check(2000, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(20, Some(1))]);
        let held = world.view();
        world.commit(&[(10, Some(1))]);
        world.look();
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(10, Some(2))]);
                world.engine.purge().expect("purges");
            })
        };
        let mut value = Vec::new();
        for _ in 0..4 {
            let found = world.engine.begin().get(ReadAt::Latest, TABLE, &[10], &mut value).expect("reads");
            assert!(found && matches!(value[0], 1 | 2), "the row is there before and after the write");
        }
        join([writer]);
        drop(held);
        world.check_final_state();
    });
}

/// A row is deleted and inserted again, also by aborted transactions, while purge removes its entry.
#[test]
fn a_row_that_goes_and_comes_back_is_what_each_view_saw() {
    check(2000, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(20, Some(1))]);
        let held = world.view();
        world.commit(&[(10, Some(1)), (20, None)]);
        world.look();
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(10, None), (20, Some(2))]);
                drop(world.prepare(&[(10, Some(9)), (20, None)]));
                world.commit(&[(20, None)]);
                drop(world.prepare(&[(10, Some(9)), (20, Some(9))]));
                world.commit(&[(10, Some(3))]);
                world.commit(&[(10, None)]);
            })
        };
        let purge = {
            let world = world.clone();
            spawn(move || {
                for _ in 0..4 {
                    world.look();
                    world.engine.purge().expect("purges");
                }
            })
        };
        let (view, expected) = &held;
        let mut value = Vec::new();
        for _ in 0..3 {
            assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
            let found = world.engine.begin().get(ReadAt::Latest, TABLE, &[10], &mut value).expect("reads");
            assert!(!found || matches!(value[0], 1 | 3), "what was never ordered is not seen");
        }
        join([writer, purge]);
        assert_eq!(&rows(&world.engine, ReadAt::View(view), Direction::Forward), expected, "held");
        drop(held);
        world.check_final_state();
    });
}

/// When a tree is dropped, a page of it that was evicted and has changed since must not be read from its old
/// image, which refers to versions that are gone.
#[test]
fn a_tree_that_is_dropped_while_purge_works_on_it_leaves_nothing() {
    let schedules = if std::env::var_os("COHORT_LONG_TESTS").is_some() { 60_000 } else { 3000 };
    check(schedules, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1))]);
        let held = world.view();
        for value in 2..4 {
            world.commit(&[(10, Some(value))]);
        }
        // The image on disk refers to the last of these.
        for _ in 0..40 {
            world.engine.configure(EngineSetting::PoolBytes(1));
        }
        let status = world.engine.status();
        let is_written = |of: &(String, u64)| of.0 == "Innodb_buffer_pool_pages_evicted_dirty" && of.1 > 0;
        assert!(status.iter().any(is_written), "the page has left memory");
        world.engine.configure(EngineSetting::PoolBytes(4 * 16384));
        for value in 4..6 {
            world.commit(&[(10, Some(value))]);
        }
        world.look();
        world.engine.purge().expect("purges");
        world.commit(&[(10, None)]);
        world.look();
        let purge = {
            let world = world.clone();
            spawn(move || drop(world.engine.purge()))
        };
        world.engine.drop_indexes(&[TABLE]).expect("drops");
        join([purge]);
        drop(held);
        while world.engine.purge().expect("purges") > 0 {}
    });
}

#[test]
fn a_checkpoint_is_one_state_under_concurrent_work() {
    check(200, || {
        let memory = MemFs::new();
        let fs: SharedFs = Arc::new(memory.clone());
        let world = World::new(&fs, || None);
        world.commit(&[(10, Some(1)), (20, Some(1)), (30, Some(1)), (40, Some(1)), (50, Some(1))]);
        let writer = {
            let world = world.clone();
            spawn(move || {
                world.commit(&[(11, Some(2)), (12, Some(2)), (13, Some(2)), (50, Some(2))]);
                world.commit(&[(10, None), (11, None), (12, None), (13, None), (20, None)]);
                world.engine.purge().expect("purges");
                world.commit(&[(41, Some(3)), (42, Some(3)), (43, Some(3))]);
            })
        };
        let checkpoints = {
            let world = world.clone();
            spawn(move || {
                for _ in 0..2 {
                    let (lsn, expected) = world.checkpoint();
                    let left: SharedFs = Arc::new(memory.crash_clone(choose(1000)));
                    let after = open(&left, || None);
                    assert_eq!(after.durable_lsn(), Lsn(lsn));
                    assert_eq!(rows(&after, ReadAt::Latest, Direction::Forward), expected, "what is durable");
                    assert_eq!(after.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
                }
            })
        };
        join([writer, checkpoints]);
        let (_, expected) = world.checkpoint();
        world.check_final_state();
        drop(world);
        assert_eq!(rows(&open(&fs, || None), ReadAt::Latest, Direction::Forward), expected);
    });
}

#[test]
fn a_changed_page_is_found_again() {
    check(200, || {
        let world = World::new(&memory(), || None);
        let all: Vec<_> = (1..=12).map(|n| (n * 10, Some(n))).collect();
        world.commit(&all);
        let evictor = {
            let world = world.clone();
            spawn(move || {
                for _ in 0..60 {
                    world.engine.configure(EngineSetting::PoolBytes(1));
                }
            })
        };
        let writers = [0_u8, 10].map(|first| {
            let world = world.clone();
            spawn(move || {
                for round in 0..6 {
                    world.commit(&[(10 + round * 20 + first, Some(round))]);
                }
            })
        });
        let checkpoint = {
            let world = world.clone();
            spawn(move || drop(world.checkpoint()))
        };
        join([evictor, checkpoint]);
        join(writers);
        // The pool is emptied, so the following reads see what was written.
        for _ in 0..40 {
            world.engine.configure(EngineSetting::PoolBytes(1));
        }
        world.check_final_state();
    });
}

/// A page without versions is written as it is and needs no further image unless it changes meanwhile.
#[test]
fn a_page_that_changes_during_its_checkpoint_is_written_again() {
    check(400, || {
        let world = World::new(&memory(), || None);
        world.commit(&[(10, Some(1)), (20, Some(1))]);
        while world.engine.purge().expect("purges") > 0 {}
        let writer = {
            let world = world.clone();
            spawn(move || world.commit(&[(20, Some(2))]))
        };
        let checkpoint = {
            let world = world.clone();
            spawn(move || drop(world.checkpoint()))
        };
        join([writer, checkpoint]);
        // The pool is emptied, so the following reads see what was written.
        for _ in 0..40 {
            world.engine.configure(EngineSetting::PoolBytes(1));
        }
        world.check_final_state();
    });
}

#[test]
fn a_waiter_for_a_page_is_woken() {
    check(200, || {
        let faulty = FaultFs::new(memory());
        faulty.set_cold();
        let fs: SharedFs = Arc::new(faulty);
        {
            let world = World::new(&fs, || None);
            let all: Vec<_> = (1..=16).map(|n| (n * 10, Some(n))).collect();
            world.commit(&all);
            world.checkpoint();
        }
        let engine = open(&fs, on_thread);
        let world = Arc::new(World { engine, order: Mutex::new(Vec::new()) });
        let readers = [15_u8, 2, 15].map(|first| {
            let world = world.clone();
            spawn(move || {
                for n in [first, 1, 8] {
                    let mut value = Vec::new();
                    let key = [n * 10];
                    let found = world.engine.begin().get(ReadAt::Latest, TABLE, &key, &mut value);
                    assert!(found.expect("reads"), "row {n}");
                    assert_eq!(value[0], n);
                }
            })
        });
        let writer = {
            let world = world.clone();
            spawn(move || world.commit(&[(75, Some(7)), (76, Some(7)), (77, Some(7)), (155, Some(9))]))
        };
        join(readers);
        join([writer]);
        let found = rows(&world.engine, ReadAt::Latest, Direction::Forward);
        assert_eq!(found.len(), 20);
    });
}
