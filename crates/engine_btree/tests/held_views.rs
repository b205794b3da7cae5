//! Read views that stay open while rows change: what pruning frees meanwhile, and what it keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Batch, Direction, Engine, KeyRange, Participant, ReadAt, ReadView, Redo, ScanRequest};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{MemFs, OpenMode, Rng, SeededRng, SharedFs};

const OPTIONS: BtreeOptions = BtreeOptions {
    pool_bytes: 64 * 16384,
    rollback_segments: 3,
    undo_bytes: 256 << 10,
    young_views: 1,
    has_threads: false,
    wait_slot_of: || None,
};
const TABLE: IndexId = IndexId(16);

type Rows = BTreeMap<u64, Vec<u8>>;
type Write = (u64, Option<Vec<u8>>);

/// An engine, the last CommitSeq, and the expected rows.
struct Run {
    fs: SharedFs,
    engine: BtreeEngine,
    seq: u64,
    rows: Rows,
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

fn open(fs: &SharedFs) -> BtreeEngine {
    BtreeEngine::open(ParticipantId(1), fs, Path::new("/btree"), OPTIONS).expect("opens")
}

impl Run {
    fn new() -> Run {
        let fs: SharedFs = Arc::new(MemFs::new());
        Run { engine: open(&fs), fs, seq: 0, rows: Rows::new() }
    }

    fn prepare(&self, writes: &[Write]) -> Redo {
        let mut trx = self.engine.begin();
        for (n, value) in writes {
            match value {
                Some(value) => trx.put(TABLE, &key(*n), value).expect("puts"),
                None => trx.delete(TABLE, &key(*n)).expect("deletes"),
            }
        }
        trx.prepare().expect("prepares")
    }

    fn write(&mut self, writes: &[Write]) {
        let redo = self.prepare(writes);
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[&redo]);
        for (n, value) in writes {
            match value {
                Some(value) => drop(self.rows.insert(*n, value.clone())),
                None => drop(self.rows.remove(n)),
            }
        }
    }

    fn put(&mut self, keys: std::ops::Range<u64>, value: u8) {
        for n in keys {
            self.write(&[(n, Some(vec![value; 100]))]);
        }
    }

    /// Takes a view and returns it with the rows that it must show.
    fn view(&self) -> (ReadView, Rows) {
        let view = ReadView::new(CommitSeq(self.seq), vec![(self.engine.id(), self.engine.snapshot())]);
        (view, self.rows.clone())
    }

    /// Runs purge after taking and dropping a view, so that earlier views count as held.
    fn purge(&self) {
        drop(self.view());
        self.engine.purge().expect("purges");
        self.engine.purge().expect("purges");
    }

    fn look(&self, (view, expected): &(ReadView, Rows)) {
        assert_eq!(&rows(&self.engine, ReadAt::View(view)), expected, "at {:?}", view.seq());
    }

    fn checkpoint(&self) {
        self.engine.begin_checkpoint(Lsn(self.seq)).expect("begins").finish().expect("finishes");
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.engine.status();
        status.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name} is reported")).1
    }

    /// Purges everything after all views were dropped, and checks the result.
    fn check_final_state(self) {
        while self.engine.purge().expect("purges") > 0 {}
        assert_eq!(self.status("Innodb_history_list_length"), 0);
        assert_eq!(self.engine.stats(TABLE).entries, self.rows.len() as u64, "no deleted entry is left");
        assert_eq!(rows(&self.engine, ReadAt::Latest), self.rows);
        assert_eq!(self.engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
        self.checkpoint();
        let Run { fs, engine, rows: expected, .. } = self;
        drop(engine);
        assert_eq!(rows(&open(&fs), ReadAt::Latest), expected, "what is durable");
    }
}

fn rows(engine: &BtreeEngine, at: ReadAt<'_>) -> Rows {
    let trx = engine.begin();
    let (mut found, mut range) = (Rows::new(), KeyRange::default());
    loop {
        let mut batch = Batch::default();
        let more = trx.scan(&ScanRequest::forward(at, TABLE, &range, 1 << 20), &mut batch).expect("scans");
        for (key, value) in batch.iter() {
            let n = std::str::from_utf8(&key[4..]).expect("digits").parse().expect("a number");
            found.insert(n, value.to_vec());
        }
        if !more {
            return found;
        }
        batch.cut(&mut range, Direction::Forward);
    }
}

#[test]
fn a_held_view_keeps_one_version_of_each_row() {
    let mut run = Run::new();
    run.put(0..300, 0);
    let first = run.view();
    for round in 1..40 {
        run.put(0..300, round);
        run.purge();
    }
    let second = run.view();
    for round in 40..80 {
        run.put(0..300, round);
        run.purge();
    }
    // Two versions of 300 rows of 100 bytes are far below the memory limit; all eighty would exceed it.
    assert!(!run.fs.exists(Path::new("/btree/btree.undo")), "nothing was too much");
    run.look(&first);
    run.look(&second);
    drop(first);
    run.purge();
    run.look(&second);
    drop(second);
    run.check_final_state();
}

/// The first transaction after the view writes each row and keeps what the view sees; so does the last.
#[test]
fn a_held_view_keeps_the_records_of_two_transactions_for_each_row() {
    const ROWS: u64 = 50;
    let mut run = Run::new();
    run.put(0..ROWS, 0);
    let held = run.view();
    for round in 0..400_u64 {
        for n in 0..ROWS {
            // A row and its entry in a secondary index: the previous entry is deleted, another is inserted.
            let entry = |round: u64| 1000 + n * 1000 + round;
            let mut writes = vec![(n, Some(vec![round as u8; 20])), (entry(round), Some(vec![]))];
            writes.extend(round.checked_sub(1).map(|before| (entry(before), None)));
            run.write(&writes);
        }
        run.purge();
        let records = run.status("Innodb_history_list_length");
        assert!(records <= 3 * ROWS, "{records} records for {ROWS} rows in round {round}");
        if round % 50 == 0 {
            run.look(&held);
            // Transactions on top of pruned versions are dropped.
            drop(run.prepare(&(0..ROWS).map(|n| (n, None)).collect::<Vec<_>>()));
        }
    }
    run.look(&held);
    drop(held);
    run.check_final_state();
}

/// A transaction that stays undecided for long, like a forgotten XA transaction, keeps only its own record.
#[test]
fn undecided_branches_delay_nothing() {
    let mut run = Run::new();
    run.put(0..10, 0);
    let undecided: Vec<Redo> =
        (0..6).map(|n| run.prepare(&[(500 + n, Some(b"in doubt".to_vec()))])).collect();
    for round in 0..200 {
        run.put(0..10, round);
        run.write(&[(300, Some(vec![round; 10]))]);
        run.write(&[(300, None)]);
        run.purge();
        let records = run.status("Innodb_history_list_length");
        assert!(records <= 6, "{records} records in round {round}");
    }
    // The deleted row's entry is removed as well; the undecided entries exist.
    assert_eq!(run.engine.stats(TABLE).entries, 10 + 6);
    let held = run.view();
    for round in 0..200 {
        run.put(0..10, round);
        run.purge();
        let records = run.status("Innodb_history_list_length");
        assert!(records <= 6 + 2 * 10 + 1, "{records} records after a view in round {round}");
    }
    run.look(&held);
    // Half of them are decided while the view is open.
    for (n, redo) in undecided.into_iter().enumerate() {
        if n % 2 == 0 {
            run.seq += 1;
            run.engine.commit_ordered(CommitSeq(run.seq), &[&redo]);
            run.rows.insert(500 + n as u64, b"in doubt".to_vec());
        }
    }
    run.look(&held);
    run.put(0..10, 7);
    run.purge();
    run.look(&held);
    drop(held);
    run.check_final_state();
}

#[test]
fn long_values_that_no_view_needs_make_room_on_disk() {
    let mut run = Run::new();
    run.write(&[(1, Some(vec![0; 5000]))]);
    let held = run.view();
    for round in 0..300_u64 {
        run.write(&[(1, Some(vec![round as u8; 5000]))]);
        run.purge();
        if round % 10 == 0 {
            run.checkpoint();
        }
    }
    let blocks = run.status("Innodb_data_file_blocks");
    assert!(blocks < 150, "{blocks} blocks of 4 KiB for two values");
    run.look(&held);
    drop(held);
    run.check_final_state();
}

#[test]
fn entries_that_no_view_saw_come_are_taken_out() {
    let mut run = Run::new();
    run.put(0..50, 0);
    let first = run.view();
    for round in 0..60_u64 {
        let from = 100 + round * 100;
        run.put(from..from + 100, 1);
        if round == 30 {
            // The rows that this view sees are kept for it.
            let second = run.view();
            run.write(&(from..from + 100).map(|n| (n, None)).collect::<Vec<_>>());
            run.purge();
            run.look(&second);
            assert_eq!(run.engine.stats(TABLE).entries, 150);
            drop(second);
        } else {
            run.write(&(from..from + 100).map(|n| (n, None)).collect::<Vec<_>>());
            run.purge();
        }
        run.look(&first);
    }
    assert_eq!(run.engine.stats(TABLE).entries, 150, "those of the second view wait for the first one");
    assert!(run.engine.stats(TABLE).bytes <= 8 * 16384, "{:?}", run.engine.stats(TABLE));
    // Rows that the first view sees are kept when they are deleted later.
    run.write(&(0..50).map(|n| (n, None)).collect::<Vec<_>>());
    run.purge();
    run.look(&first);
    drop(first);
    run.check_final_state();
}

#[test]
fn a_deletion_that_an_aborted_transaction_wrote_over_is_purged_in_the_end() {
    let mut run = Run::new();
    run.put(0..10, 0);
    let view = run.view();
    // Each of the three has its own rollback segment, so the last one is purged before the others.
    run.write(&(20..40).map(|n| (n, Some(vec![1; 100]))).collect::<Vec<_>>());
    run.write(&(20..40).map(|n| (n, None)).collect::<Vec<_>>());
    let undecided = run.prepare(&(20..40).map(|n| (n, Some(b"never".to_vec()))).collect::<Vec<_>>());
    run.purge();
    drop(undecided);
    run.purge();
    run.look(&view);
    drop(view);
    run.check_final_state();
}

#[test]
fn a_swept_version_comes_back_when_what_replaced_it_is_dropped() {
    let mut run = Run::new();
    run.put(0..10, 0);
    let held = run.view();
    for round in 1..10 {
        run.put(0..10, round);
        run.purge();
    }
    let young = run.view();
    let undecided = run.prepare(&(0..10).map(|n| (n, Some(b"never".to_vec()))).collect::<Vec<_>>());
    run.purge();
    run.look(&held);
    run.look(&young);
    drop(undecided);
    run.purge();
    run.look(&held);
    run.look(&young);
    run.put(0..10, 10);
    run.purge();
    run.look(&held);
    run.look(&young);
    drop((held, young));
    run.check_final_state();
}

/// Views open and close in any order, with long values, deletions, aborts, checkpoints and spilled undo in
/// between.
#[test]
fn random_views_see_their_state() {
    for seed in 1..=12 {
        let rng = SeededRng::new(seed);
        let mut run = Run::new();
        let mut views = Vec::new();
        for step in 0..1500_u64 {
            let writes: BTreeMap<u64, Option<Vec<u8>>> = (0..1 + rng.below(4))
                .map(|_| {
                    let value = match rng.below(20) {
                        0..=5 => None,
                        6 => Some(vec![step as u8; 5000]),
                        _ => Some(vec![step as u8; 10 + rng.below(300) as usize]),
                    };
                    (rng.below(60), value)
                })
                .collect();
            let writes: Vec<Write> = writes.into_iter().collect();
            match rng.below(12) {
                0 => drop(run.prepare(&writes)),
                1 => run.purge(),
                2 if views.len() < 6 => views.push(run.view()),
                3 if !views.is_empty() => drop(views.swap_remove(rng.below(views.len() as u64) as usize)),
                4 if step % 5 == 0 => run.checkpoint(),
                5 => views.iter().for_each(|view| run.look(view)),
                _ => run.write(&writes),
            }
        }
        views.iter().for_each(|view| run.look(view));
        drop(views);
        run.check_final_state();
    }
}

/// All chains of a transaction with many rows skip a version that a view needed when the chains were created.
/// This runs in real time: a search for each link from the first one on would take a minute.
#[test]
fn a_large_transaction_is_sorted_out_link_by_link() {
    const ROWS: u64 = 300_000;
    let write_all =
        |run: &mut Run, value: u8| run.write(&(0..ROWS).map(|n| (n, Some(vec![value]))).collect::<Vec<_>>());
    let mut run = Run::new();
    write_all(&mut run, 0);
    let held = run.view();
    write_all(&mut run, 1);
    let young = run.view();
    write_all(&mut run, 2);
    let begun = std::time::Instant::now();
    write_all(&mut run, 3);
    let written = begun.elapsed();
    drop(young);
    let begun = std::time::Instant::now();
    run.purge();
    let pruned = begun.elapsed();
    assert!(pruned < 6 * written, "{pruned:?} for what was written in {written:?}");
    run.look(&held);
    drop(held);
    run.check_final_state();
}

#[test]
fn sorting_out_leaves_what_is_in_the_undo_file() {
    let mut run = Run::new();
    run.put(0..10, 0);
    let view = run.view();
    // One transaction writes more than the memory limit of undo.
    run.write(&(0..3000).map(|n| (n, Some(vec![1; 200]))).collect::<Vec<_>>());
    run.write(&(0..3000).map(|n| (n, Some(vec![2; 200]))).collect::<Vec<_>>());
    run.write(&(10..3000).map(|n| (n, None)).collect::<Vec<_>>());
    let file = run.fs.open(Path::new("/btree/btree.undo"), OpenMode::Read).expect("it was spilled");
    assert!(file.len().expect("in memory") > 100 << 10);
    run.purge();
    run.look(&view);
    drop(view);
    run.check_final_state();
}
