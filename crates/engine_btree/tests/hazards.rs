//! Regression tests: sequences that lost, resurrected or leaked data, or might have.

mod stderr_log;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, Direction, Engine, EngineError, KeyRange, MemoryRedo, Participant, PoolDumpRequest, PoolDumpState,
    ReadAt, ReadView, Redo, RedoFile, RedoFileGuard, RedoFiles, RedoWriter, ScanRequest, full_range,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{Fault, FaultFs, MemFs, OpenMode, SharedClock, SharedFs, SimClock};

const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
};
const TABLE: IndexId = IndexId(16);
const OTHER: IndexId = IndexId(17);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn newest(range: &KeyRange, direction: Direction, limit: usize) -> ScanRequest<'_> {
    ScanRequest { at: ReadAt::Latest, index: TABLE, range, direction, limit }
}

/// An engine, with the last CommitSeq.
struct Run {
    engine: BtreeEngine,
    seq: u64,
}

fn open(fs: &SharedFs) -> Result<BtreeEngine, EngineError> {
    BtreeEngine::open(ParticipantId(1), fs, Path::new("/btree"), TINY)
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

impl Run {
    fn new(fs: &SharedFs) -> Run {
        Run { engine: open(fs).expect("opens"), seq: 0 }
    }

    fn prepare(&self, index: IndexId, writes: &[(u64, Option<Vec<u8>>)]) -> Result<Redo, EngineError> {
        let mut trx = self.engine.begin();
        for (n, value) in writes {
            match value {
                Some(value) => trx.put(index, &key(*n), value)?,
                None => trx.delete(index, &key(*n))?,
            }
        }
        trx.prepare()
    }

    fn order(&mut self, redo: &Redo) {
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[redo]);
    }

    fn write(&mut self, index: IndexId, writes: &[(u64, Option<Vec<u8>>)]) {
        let redo = self.prepare(index, writes).expect("prepares");
        self.order(&redo);
    }

    fn put(&mut self, index: IndexId, keys: std::ops::Range<u64>, value: &[u8]) {
        let writes: Vec<_> = keys.map(|n| (n, Some(value.to_vec()))).collect();
        self.write(index, &writes);
    }

    fn delete(&mut self, index: IndexId, keys: std::ops::Range<u64>) {
        let writes: Vec<_> = keys.map(|n| (n, None)).collect();
        self.write(index, &writes);
    }

    fn load(&self, index: IndexId, keys: std::ops::Range<u64>) -> Result<(), EngineError> {
        let mut load = self.engine.bulk_load(index)?;
        keys.into_iter().try_for_each(|n| load.add(&key(n), b"loaded"))?;
        load.finish()
    }

    fn checkpoint(&self) {
        self.engine.begin_checkpoint(Lsn(self.seq)).expect("begins").finish().expect("finishes");
    }

    fn purge(&self) {
        while self.engine.purge().expect("purges") > 0 {}
    }

    fn view(&self) -> ReadView {
        ReadView::new(CommitSeq(self.seq), vec![(self.engine.id(), self.engine.snapshot())])
    }

    /// Takes enough views that earlier ones count as held, so that the versions after them are pruned.
    fn pass_views(&self) {
        (0..=TINY.young_views).for_each(|_| drop(self.view()));
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.engine.status();
        status.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name} is reported")).1
    }

    /// Returns the number of blocks of the data file that are in use.
    fn used_blocks(&self) -> u64 {
        self.status("Innodb_data_file_blocks") - self.status("Innodb_data_file_free_blocks")
    }
}

fn rows_at(engine: &BtreeEngine, at: ReadAt<'_>, index: IndexId) -> Rows {
    let trx = engine.begin();
    let mut rows = Rows::new();
    let mut range = KeyRange::default();
    loop {
        let mut batch = Batch::default();
        let more = trx.scan(&ScanRequest::forward(at, index, &range, 1 << 20), &mut batch).expect("scans");
        rows.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        let Some((last, _)) = rows.last_key_value().filter(|_| more) else { return rows };
        let mut start = last.clone();
        start.push(0);
        range.start = Some(start);
    }
}

fn rows(engine: &BtreeEngine, index: IndexId) -> Rows {
    rows_at(engine, ReadAt::Latest, index)
}

#[test]
fn a_checkpoint_that_began_before_a_further_bulk_load_keeps_what_it_loaded() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let run = Run::new(&fs);
    run.load(TABLE, 0..500).expect("loads");
    let task = run.engine.begin_checkpoint(Lsn(7)).expect("begins");
    run.load(TABLE, 500..3000).expect("loads");
    task.finish().expect("finishes");
    drop(run);
    assert_eq!(rows(&open(&fs).expect("opens"), TABLE).len(), 3000);
}

#[test]
fn a_checkpoint_steps_over_pages_that_a_bulk_load_replaced() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..10, b"written");
    run.load(TABLE, 10..2000).expect("loads");
    run.checkpoint();
    run.put(OTHER, 0..10, b"written");
    run.put(TABLE, 3000..3010, b"written");
    let task = run.engine.begin_checkpoint(Lsn(8)).expect("begins");
    run.load(TABLE, 4000..5000).expect("loads");
    task.finish().expect("finishes");
    drop(run);
    assert_eq!(rows(&open(&fs).expect("opens"), TABLE).len(), 10 + 1990 + 10 + 1000);
}

#[test]
fn no_transaction_installs_over_another_installed_version() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..2, b"old");
    let first = run.prepare(TABLE, &[(0, Some(b"first".to_vec()))]).expect("prepares");
    // The locks of `first` were released before it aborted: a write over it would make its rows live again.
    assert!(run.prepare(TABLE, &[(0, Some(b"second".to_vec()))]).is_err());
    drop(first);
    run.purge();
    run.put(TABLE, 0..1, b"third");
    run.purge();
    assert_eq!(rows(&run.engine, TABLE)[&key(0)], b"third");
}

#[test]
fn a_checkpoint_that_fails_gives_its_space_back_and_is_wanted_again() {
    let memory = MemFs::new();
    let faulty = FaultFs::new(Arc::new(memory));
    let fs: SharedFs = Arc::new(faulty.clone());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..2000, &[7; 200]);
    run.checkpoint();
    run.put(TABLE, 0..2000, &[8; 200]);
    run.purge();
    let (before, unflushed) = (run.used_blocks(), run.engine.unflushed_bytes());
    for round in 0..5 {
        faulty.set(Fault::FullFrom(faulty.ops() + 5 + round));
        let task = run.engine.begin_checkpoint(Lsn(9)).expect("begins");
        assert!(task.finish().is_err());
        faulty.set(Fault::None);
        assert!(run.engine.unflushed_bytes() >= unflushed, "it is still to be written");
    }
    let after = run.used_blocks();
    assert!(
        after <= before + 60,
        "{before} blocks in use before five failed checkpoints, {after} afterwards"
    );
    run.checkpoint();
    drop(run);
    assert!(rows(&open(&fs).expect("opens"), TABLE).values().all(|value| value == &[8; 200]));
}

#[test]
fn a_bulk_load_that_fails_gives_its_space_back() {
    let faulty = FaultFs::new(Arc::new(MemFs::new()));
    let fs: SharedFs = Arc::new(faulty.clone());
    let run = Run::new(&fs);
    run.load(OTHER, 0..100).expect("loads");
    let before = run.used_blocks();
    let mut failures = 0;
    for at in 0.. {
        faulty.set(Fault::ErrorAt(faulty.ops() + at, std::io::ErrorKind::StorageFull));
        let loaded = run.load(TABLE, 0..4000);
        faulty.set(Fault::None);
        if loaded.is_ok() {
            break;
        }
        // After a failed sync the state of the disk is unknown, so only failed writes are checked.
        if loaded.is_err_and(|error| error.to_string().contains("durable")) {
            break;
        }
        failures += 1;
        assert_eq!(run.used_blocks(), before, "failed at write {at}");
        assert!(!run.engine.indexes().expect("lists").contains(&TABLE));
    }
    assert!(failures > 5, "{failures}");
}

#[test]
fn pages_that_a_checkpoint_wrote_need_no_further_image() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    for round in 0..6_u8 {
        run.put(TABLE, 0..8000, &[round; 100]);
        run.purge();
        run.checkpoint();
        assert_eq!(rows(&run.engine, TABLE).len(), 8000);
    }
    let pages = run.engine.stats(TABLE).bytes / 16384;
    let used = run.used_blocks();
    // Images are packed; the map takes some blocks.
    assert!(used < pages * 4 + 100, "{used} blocks of 4 KiB hold {pages} pages of 16 KiB");
    let written = run.status("Innodb_buffer_pool_pages_evicted_dirty");
    assert_eq!(rows(&run.engine, TABLE).len(), 8000);
    assert_eq!(
        run.status("Innodb_buffer_pool_pages_evicted_dirty"),
        written,
        "clean pages leave memory without a write"
    );
}

#[test]
fn a_view_held_open_does_not_make_checkpoints_write_all_again() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..3000, &[1; 100]);
    let old = run.view();
    run.put(TABLE, 0..3000, &[2; 100]);
    run.checkpoint();
    run.checkpoint();
    assert_eq!(run.status("Innodb_buffer_pool_pages_dirty"), 0, "nothing has changed since");
    assert!(rows_at(&run.engine, ReadAt::View(&old), TABLE).values().all(|value| value == &[1; 100]));
    drop(run);
    assert!(rows(&open(&fs).expect("opens"), TABLE).values().all(|value| value == &[2; 100]));
}

#[test]
fn a_queue_stays_small() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    for round in 0..60 {
        run.put(TABLE, round * 1000..(round + 1) * 1000, &[1; 100]);
        if round > 0 {
            run.delete(TABLE, (round - 1) * 1000..round * 1000);
        }
        run.purge();
        if round % 7 == 0 {
            run.checkpoint();
        }
    }
    let pages = run.engine.stats(TABLE).bytes / 16384;
    assert!(pages < 30, "{pages} pages for a thousand rows");
    assert_eq!(rows(&run.engine, TABLE).len(), 1000);
    run.checkpoint();
    drop(run);
    let engine = open(&fs).expect("opens");
    assert_eq!(rows(&engine, TABLE).len(), 1000);
    assert!(engine.stats(TABLE).bytes / 16384 < 30);
}

#[test]
fn an_emptied_tree_is_one_page() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..20_000, &[1; 100]);
    run.checkpoint();
    run.delete(TABLE, 0..20_000);
    run.purge();
    assert_eq!(run.engine.stats(TABLE).bytes, 16384);
    run.put(TABLE, 0..10, b"again");
    run.checkpoint();
    run.checkpoint();
    assert!(run.used_blocks() < 20, "{} blocks for ten rows", run.used_blocks());
    drop(run);
    assert_eq!(rows(&open(&fs).expect("opens"), TABLE).len(), 10);
}

#[test]
fn a_batch_of_long_values_is_bounded() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..40, &vec![3; 1 << 20]);
    let mut own = run.engine.begin();
    own.put(TABLE, &key(50), &vec![3; 1 << 20]).expect("puts");
    for trx in [run.engine.begin(), own] {
        for direction in [Direction::Forward, Direction::Backward] {
            let (mut batch, mut range, mut found) = (Batch::default(), KeyRange::default(), 0);
            loop {
                batch.clear();
                let more = trx.scan(&newest(&range, direction, 1024), &mut batch).expect("scans");
                assert!(batch.size_bytes() <= 6 << 20, "{} bytes in one batch", batch.size_bytes());
                found += batch.len();
                if !more {
                    break;
                }
                let mut last = batch.get(batch.len() - 1).0.to_vec();
                match direction {
                    Direction::Forward => {
                        last.push(0);
                        range.start = Some(last);
                    }
                    Direction::Backward => range.end = Some(last),
                }
            }
            assert_eq!(found, 40 + usize::from(!trx.is_read_only()));
        }
    }
    assert!(full_range(TABLE, &KeyRange::default()).0.len() == 4);
}

#[test]
fn a_scan_over_deleted_rows_comes_back_now_and_then() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    let value = vec![7; 1500];
    run.put(TABLE, 0..3000, &value);
    let view = run.view();
    run.delete(TABLE, 1..2999);
    let mut own = run.engine.begin();
    own.put(TABLE, &key(1500), b"own").expect("puts");
    let none = run.engine.begin();
    for direction in [Direction::Forward, Direction::Backward] {
        for (trx, expected) in [(&own, 3), (&none, 2)] {
            let (mut range, mut batch) = (KeyRange::default(), Batch::default());
            let (mut found, mut calls) = (0, 0);
            loop {
                batch.clear();
                let more = trx.scan(&newest(&range, direction, 10), &mut batch).expect("scans");
                (found, calls) = (found + batch.len(), calls + 1);
                if !more {
                    break;
                }
                batch.cut(&mut range, direction);
            }
            assert_eq!(found, expected, "{direction:?}");
            assert!((4..12).contains(&calls), "some 300 leaves in {calls} calls");
        }
    }
    drop(view);
}

#[test]
fn undo_beyond_its_bound_is_read_from_its_file() {
    let memory = MemFs::new();
    let fs: SharedFs = Arc::new(memory.clone());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..2000, &[1; 300]);
    let view = run.view();
    run.put(TABLE, 0..2000, &[2; 300]);
    for n in 0..2000 {
        run.put(TABLE, n..n + 1, &[3; 200]);
    }
    let aborted: Vec<_> = (500..1500).map(|n| (n, None)).collect();
    drop(run.prepare(TABLE, &aborted).expect("prepares"));
    run.purge();
    let undo = fs.open(Path::new("/btree/btree.undo"), OpenMode::Read).expect("it was spilled");
    assert!(undo.len().expect("in memory") > 500 << 10);
    let trx = run.engine.begin();
    let mut batch = Batch::default();
    trx.scan(&ScanRequest::forward(ReadAt::View(&view), TABLE, &KeyRange::default(), 5000), &mut batch)
        .expect("scans");
    assert_eq!(batch.len(), 2000);
    assert!(batch.iter().all(|(_, value)| value == [1; 300]), "the view's state");
    run.checkpoint();
    drop(view);
    run.purge();
    assert!(undo.len().expect("in memory") <= 8192, "no view needs the old versions any more");
    let expected: Rows = (0..2000).map(|n| (key(n), vec![3; 200])).collect();
    assert_eq!(rows(&run.engine, TABLE), expected);
    // After a crash none of this exists.
    run.put(TABLE, 0..2000, &[4; 300]);
    run.put(TABLE, 0..2000, &[5; 300]);
    drop(run);
    let after = Run::new(&fs);
    assert!(!fs.exists(Path::new("/btree/btree.undo")));
    assert_eq!(rows(&after.engine, TABLE), expected);
}

#[test]
fn damaged_old_versions_are_reported_and_lose_no_page() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..500, &[1; 300]);
    let view = run.view();
    let task = run.engine.begin_checkpoint(Lsn(run.seq)).expect("begins");
    run.put(TABLE, 0..500, &[2; 300]);
    run.purge();
    let undo = fs.open(Path::new("/btree/btree.undo"), OpenMode::Write).expect("it was spilled");
    let len = undo.len().expect("in memory") as usize;
    let mut bytes = vec![0; len];
    undo.read_at(&mut bytes, 0).expect("reads");
    undo.write_at(&bytes.iter().map(|byte| byte ^ 1).collect::<Vec<_>>(), 0).expect("writes");
    let mut value = Vec::new();
    let read = run.engine.begin().get(ReadAt::View(&view), TABLE, &key(3), &mut value);
    assert!(matches!(read, Err(EngineError::Corrupt(what)) if what.contains("btree.undo")));
    assert!(task.finish().is_err(), "the checkpoint needs the versions of its horizon");
    undo.write_at(&bytes, 0).expect("writes");
    assert!(run.engine.begin().get(ReadAt::View(&view), TABLE, &key(3), &mut value).expect("reads"));
    assert_eq!(value, [1; 300]);
    // The pages that the failed checkpoint did not write are in the next one.
    run.checkpoint();
    drop((view, run));
    let after = Run::new(&fs);
    assert_eq!(rows(&after.engine, TABLE), (0..500).map(|n| (key(n), vec![2; 300])).collect::<Rows>());
}

#[test]
fn a_checkpoint_writes_of_the_page_map_what_has_changed() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    let mut load = run.engine.bulk_load(TABLE).expect("loads");
    let long = vec![9; 4000];
    (0..8000).for_each(|n| load.add(&key(n), &long).expect("adds"));
    load.finish().expect("finishes");
    let whole = run.status("Innodb_page_map_written");
    assert!(whole > 50_000, "some 2,700 pages");
    for round in 0..200_u64 {
        run.put(TABLE, round * 40..round * 40 + 1, &[round as u8; 100]);
        run.checkpoint();
    }
    let written = run.status("Innodb_page_map_written") - whole;
    assert!(written < whole, "200 checkpoints of a page or two wrote {written} bytes, all pages are {whole}");
    let expected = rows(&run.engine, TABLE);
    drop(run);
    let after = Run::new(&fs);
    assert_eq!(rows(&after.engine, TABLE), expected);
    assert_eq!(after.engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
}

#[test]
fn parallel_replay_restores_the_last_writes() {
    let memory = MemFs::new();
    let fs: SharedFs = Arc::new(memory.clone());
    let options = BtreeOptions { has_threads: true, ..TINY };
    let open = || BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens");
    let engine = open();
    let (mut log, mut expected) = (Vec::new(), Rows::new());
    for round in 0..60_u64 {
        let mut trx = engine.begin();
        for n in 0..400 {
            let n = (n * 7 + round * 131) % 3000;
            if (n + round).is_multiple_of(5) {
                trx.delete(TABLE, &key(n)).expect("deletes");
                expected.remove(&key(n));
            } else {
                let len = if n.is_multiple_of(97) { 6000 } else { 20 + (n * round % 700) as usize };
                let value = vec![round as u8; len];
                trx.put(TABLE, &key(n), &value).expect("puts");
                expected.insert(key(n), value);
            }
        }
        let redo = trx.prepare().expect("prepares");
        log.push(Redo::new(redo.bytes.clone()));
    }
    drop(engine);
    let engine = open();
    for batch in log.chunks(20) {
        engine.replay(batch).expect("replays");
    }
    // Older redo again, as after a crash during the checkpoint that followed.
    log.chunks(60).for_each(|batch| engine.replay(batch).expect("replays"));
    assert_eq!(rows(&engine, TABLE), expected);
    assert_eq!(engine.verify(TABLE, &mut |_| true).expect("reads"), Vec::<String>::new());
    engine.begin_checkpoint(Lsn(60)).expect("begins").finish().expect("finishes");
    drop(engine);
    assert_eq!(rows(&open(), TABLE), expected);
}

#[test]
fn a_full_undo_file_holds_up_no_purge() {
    let faulty = FaultFs::new(Arc::new(MemFs::new()));
    let fs: SharedFs = Arc::new(faulty.clone());
    let mut run = Run::new(&fs);
    for n in 0..5000 {
        run.put(TABLE, n % 10..n % 10 + 1, b"short");
    }
    let view = run.view();
    for n in 0..200 {
        run.put(TABLE, n % 10..n % 10 + 1, &[7; 200]);
    }
    faulty.set(Fault::FullFrom(faulty.ops()));
    let mut passed = 0;
    while passed < 5000 {
        let some = run.engine.purge().expect("what purge passes does not depend on the undo file");
        assert!(some > 0, "{passed} of 5000 transactions passed");
        passed += some;
    }
    assert!(run.engine.purge().is_err(), "it reports that old versions stay in memory");
    faulty.set(Fault::None);
    assert_eq!(run.engine.purge().expect("there is room again"), 0);
    assert!(fs.exists(Path::new("/btree/btree.undo")));
    let found = rows_at(&run.engine, ReadAt::View(&view), TABLE);
    assert!(found.len() == 10 && found.values().all(|value| value == b"short"));
    drop(view);
    run.purge();
    assert_eq!(run.status("Innodb_history_list_length"), 0);
}

struct NoHold;

impl RedoFileGuard for NoHold {
    fn keep(&self) {}
}

/// Reads the whole table at each write of redo, as another session would.
struct ReadingFiles {
    engine: BtreeEngine,
}

impl RedoFiles for ReadingFiles {
    fn inline_bytes_max(&self) -> usize {
        1000
    }

    fn create(&self) -> std::io::Result<Box<dyn RedoWriter>> {
        Ok(Box::new(ReadingFiles { engine: self.engine.clone() }))
    }
}

impl RedoWriter for ReadingFiles {
    fn write(&mut self, _: &[u8]) -> std::io::Result<()> {
        let engine = self.engine.clone();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (trx, mut range, mut batch) = (engine.begin(), KeyRange::default(), Batch::default());
            let direction = Direction::Forward;
            while trx.scan(&newest(&range, direction, 5000), &mut batch).expect("scans") {
                batch.cut(&mut range, direction);
                batch.clear();
            }
            done.send(()).expect("the receiver exists");
        });
        let waited = is_done.recv_timeout(std::time::Duration::from_secs(30));
        waited.expect("no leaf is latched while redo is written");
        Ok(())
    }

    fn finish(self: Box<Self>) -> std::io::Result<RedoFile> {
        Ok(RedoFile { name: "redo".into(), bytes: 1, crc: 0, hold: Arc::new(NoHold) })
    }
}

#[test]
fn no_leaf_is_latched_while_redo_is_written() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let run = Run::new(&fs);
    let mut trx = run.engine.begin();
    for n in 0..20_000 {
        trx.put(TABLE, &key(n), &[8; 100]).expect("puts");
    }
    let mut redo = Vec::new();
    trx.prepare_into(&ReadingFiles { engine: run.engine.clone() }, &mut redo).expect("prepares");
}

/// Damages undo that purge needs and waits for the process to end.
fn lose_undo() -> ! {
    let fs: SharedFs = Arc::new(MemFs::new());
    let options = BtreeOptions { has_threads: true, ..TINY };
    let engine = BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens");
    let mut run = Run { engine, seq: 0 };
    run.put(TABLE, 0..500, &[1; 300]);
    let view = run.view();
    run.delete(TABLE, 0..500);
    let path = Path::new("/btree/btree.undo");
    let file = loop {
        match fs.open(path, OpenMode::Write) {
            Ok(file) if file.len().expect("in memory") > 100_000 => break file,
            _ => std::thread::yield_now(),
        }
    };
    let mut bytes = vec![0; file.len().expect("in memory") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    bytes.iter_mut().for_each(|byte| *byte ^= 1);
    file.write_at(&bytes, 0).expect("writes");
    let read = run.engine.begin().scan(
        &ScanRequest::forward(ReadAt::View(&view), TABLE, &KeyRange::default(), 1000),
        &mut Batch::default(),
    );
    assert!(read.is_err(), "a statement that needs it gets an error, and the server lives on");
    drop(view);
    std::thread::sleep(std::time::Duration::from_secs(60));
    std::process::exit(4);
}

#[test]
fn damaged_undo_that_purge_needs_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    const NAME: &str = "damaged_undo_that_purge_needs_ends_the_process";
    if std::env::var_os("COHORT_LOSE_UNDO").is_some() {
        stderr_log::install();
        lose_undo();
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
    let run = command.args(["--exact", NAME, "--nocapture"]).env("COHORT_LOSE_UNDO", "1").output();
    let run = run.expect("starts");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.signal(), Some(6), "{:?}: {stderr}", run.status);
    assert!(stderr.contains("[ERROR] purge cannot go on") && stderr.contains("btree.undo"), "{stderr}");
}

/// Loads the list and waits for the result.
fn load_pages(engine: &BtreeEngine) -> PoolDumpState {
    let clock: SharedClock = SimClock::new(7);
    engine.dump_or_load_pool(PoolDumpRequest::Load { file: "/pool".into() }, &clock);
    loop {
        match engine.warmth().expect("it has pages").load {
            PoolDumpState::Running { .. } => std::thread::yield_now(),
            ended => return ended,
        }
    }
}

#[test]
fn pages_that_were_in_memory_are_read_again_after_a_start() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let clock: SharedClock = SimClock::new(7);
    let large = BtreeOptions { pool_bytes: 200 * 16384, ..TINY };
    let open =
        |options| BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), options).expect("opens");
    let dump = |engine: &BtreeEngine, percent| {
        engine.dump_or_load_pool(PoolDumpRequest::Dump { file: "/pool".into(), percent }, &clock);
        match engine.warmth().expect("it has pages").dump {
            PoolDumpState::Completed { pages, .. } => pages,
            other => panic!("{other:?}"),
        }
    };
    let reads = |run: &Run| run.status("Innodb_buffer_pool_reads");
    let mut run = Run { engine: open(large), seq: 0 };
    run.put(TABLE, 0..10_000, &[1; 100]);
    run.put(OTHER, 0..100, &[1; 100]);
    run.purge();
    run.checkpoint();
    let pages = run.status("Innodb_buffer_pool_pages_data") as usize;
    assert!((60..200).contains(&pages), "{pages}");
    assert_eq!((dump(&run.engine, 25), dump(&run.engine, 100)), (pages.div_ceil(4), pages));
    drop(run);

    let run = Run { engine: open(large), seq: 1 };
    assert_eq!(load_pages(&run.engine), PoolDumpState::Completed { pages, at_us: clock.wall_us() });
    let before = reads(&run);
    assert_eq!(before as usize, pages);
    assert_eq!(rows(&run.engine, TABLE).len(), 10_000);
    assert_eq!(reads(&run), before, "all of it is in memory");
    // A second load reads nothing.
    load_pages(&run.engine);
    assert_eq!(reads(&run), before);
    drop(run);

    // A smaller pool is filled, and no page is evicted.
    let run = Run { engine: open(BtreeOptions { pool_bytes: 20 * 16384, ..TINY }), seq: 1 };
    assert_eq!(load_pages(&run.engine), PoolDumpState::Completed { pages: 20, at_us: clock.wall_us() });
    assert_eq!((reads(&run), run.status("Innodb_buffer_pool_pages_evicted")), (20, 0));
    drop(run);

    // A list with a flipped bit, a truncated list and a missing list are ignored.
    let file = fs.open(Path::new("/pool"), OpenMode::Write).expect("opens");
    let len = file.len().expect("in memory");
    for at in [0, 9, 20, len - 1] {
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ 4], at).expect("writes");
        let run = Run { engine: open(large), seq: 1 };
        let state = load_pages(&run.engine);
        assert!(matches!(state, PoolDumpState::Failed(why) if why.contains("damaged")), "{at}");
        assert_eq!((reads(&run), rows(&run.engine, TABLE).len()), (0, 10_000));
        file.write_at(&byte, at).expect("writes");
    }
    for len in [len - 5, 3, 0] {
        file.set_len(len).expect("cuts");
        let run = Run { engine: open(large), seq: 1 };
        assert!(matches!(load_pages(&run.engine), PoolDumpState::Failed(_)), "{len} bytes");
    }
    fs.remove(Path::new("/pool")).expect("removes");
    let run = Run { engine: open(large), seq: 1 };
    assert!(matches!(load_pages(&run.engine), PoolDumpState::Failed(_)));
}

#[test]
fn a_list_of_pages_that_are_gone_reads_none_of_them() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let clock: SharedClock = SimClock::new(7);
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..300, &[1; 100]);
    run.put(OTHER, 0..300, &[1; 100]);
    run.purge();
    run.checkpoint();
    run.engine.dump_or_load_pool(PoolDumpRequest::Dump { file: "/pool".into(), percent: 100 }, &clock);
    run.engine.drop_indexes(&[OTHER]).expect("drops");
    run.delete(TABLE, 0..299);
    run.purge();
    run.checkpoint();
    drop(run);
    let run = Run::new(&fs);
    assert!(matches!(load_pages(&run.engine), PoolDumpState::Completed { pages: 1, .. }));
    assert_eq!(run.status("Innodb_buffer_pool_pages_data"), 1);
    assert_eq!(rows(&run.engine, TABLE).len(), 1);
}

/// Two or three parts write each key in all combinations, with short and long values, over nothing, over a
/// row, and over a deletion that a view does not see.
#[test]
fn later_parts_write_over_earlier_ones() {
    let values: [Option<Vec<u8>>; 3] = [None, Some(vec![1; 40]), Some(vec![2; 9000])];
    let written = |n: u64, part: u32| values[(n / 3_u64.pow(part) % 3) as usize].clone();
    let name = |n: u64| key(1000 + n);
    for (is_committed, has_view, checkpoints) in (0..8).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0))
    {
        let what = format!("committed {is_committed}, view {has_view}, checkpoints {checkpoints}");
        let fs: SharedFs = Arc::new(MemFs::new());
        let mut run = Run::new(&fs);
        // 81 combinations, three times: over nothing, over a row, over a deletion.
        let all = 0..243_u64;
        run.put(TABLE, 1081..1243, &[9; 6000]);
        let view = has_view.then(|| (run.view(), rows_at(&run.engine, ReadAt::Latest, TABLE)));
        run.delete(TABLE, 1162..1243);
        let before = rows_at(&run.engine, ReadAt::Latest, TABLE);

        let (mut trx, files) = (run.engine.begin(), MemoryRedo::default());
        let mut expected = before.clone();
        for part in 0..4 {
            for n in all.clone() {
                let value = written(n % 81, part);
                match &value {
                    // Some parts skip some keys.
                    _ if (n + u64::from(part)).is_multiple_of(5) => continue,
                    Some(value) => trx.put(TABLE, &name(n), value).expect("puts"),
                    None => trx.delete(TABLE, &name(n)).expect("deletes"),
                }
                match value {
                    Some(value) => drop(expected.insert(name(n), value)),
                    None => drop(expected.remove(&name(n))),
                }
            }
            if part < 3 {
                trx.install_part(&files).expect("installs");
            }
            if checkpoints {
                run.checkpoint();
            }
            run.purge();
            let mut batch = Batch::default();
            let found = |batch: &Batch| -> Rows {
                batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
            };
            for direction in [Direction::Forward, Direction::Backward] {
                batch.clear();
                let mut range = KeyRange::default();
                while trx.scan(&newest(&range, direction, 1 << 20), &mut batch).expect("scans") {
                    batch.cut(&mut range, direction);
                }
                assert!(found(&batch) == expected, "{what}: the transaction's own");
            }
            for n in all.clone() {
                let (mut value, there) = (Vec::new(), expected.get(&name(n)));
                assert_eq!(
                    trx.get(ReadAt::Latest, TABLE, &name(n), &mut value).expect("reads"),
                    there.is_some()
                );
                assert!(there.is_none_or(|there| *there == value), "{what}: {n}");
            }
            assert!(rows_at(&run.engine, ReadAt::Latest, TABLE) == before, "{what}: the others'");
        }
        if is_committed {
            let redo = files.prepare(&mut *trx).expect("prepares");
            assert!(rows_at(&run.engine, ReadAt::Latest, TABLE) == before, "{what}: still the others'");
            run.order(&redo);
        }
        drop(trx);
        let after = if is_committed { &expected } else { &before };
        let see = |run: &Run| {
            if let Some((view, rows)) = &view {
                assert!(rows_at(&run.engine, ReadAt::View(view), TABLE) == *rows, "{what}: the view");
            }
        };
        let look = |run: &Run| {
            assert!(rows_at(&run.engine, ReadAt::Latest, TABLE) == *after, "{what}: afterwards");
            see(run);
        };
        look(&run);
        // Pruning and purge process the remaining versions.
        run.put(OTHER, 0..3, b"later");
        run.pass_views();
        run.purge();
        look(&run);
        let younger = run.view();
        run.put(TABLE, 1000..1010, b"newer");
        run.purge();
        assert!(rows_at(&run.engine, ReadAt::View(&younger), TABLE) == *after, "{what}: a younger view");
        run.delete(TABLE, 1000..1300);
        run.pass_views();
        run.purge();
        see(&run);
        drop((view, younger));
        run.purge();
        assert_eq!(run.status("Innodb_history_list_length"), 0, "{what}");
        let problems = run.engine.verify(TABLE, &mut |_| true).expect("verifies");
        assert!(problems.is_empty(), "{what}: {problems:?}");
        run.checkpoint();
        run.checkpoint();
        // All overflow values are freed, and none was freed twice.
        let problems = run.engine.verify(TABLE, &mut |_| true).expect("verifies");
        assert!(problems.is_empty(), "{what}: {problems:?}");
        assert!(run.used_blocks() < 40, "{what}: {} blocks", run.used_blocks());
    }
}

#[test]
#[should_panic(expected = "a part makes savepoints void")]
fn the_attempt_never_falls_after_a_part() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let run = Run::new(&fs);
    let mut trx = run.engine.begin();
    trx.put(TABLE, b"key", b"value").expect("puts");
    let savepoint = trx.savepoint();
    trx.install_part(&MemoryRedo::default()).expect("installs");
    trx.rollback_to(savepoint);
}

#[test]
fn a_part_that_cannot_be_written_is_undone() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let run = Run::new(&fs);
    let (mut trx, files) = (run.engine.begin(), MemoryRedo::of(5 << 20));
    let mut fails = 0;
    for n in 0..200_000 {
        trx.put(TABLE, &key(n), &[5; 20]).expect("puts");
        if n % 50_000 == 0 {
            fails += u32::from(trx.install_part(&files).is_err());
        }
    }
    assert!(fails > 0, "the disk is full");
    assert!(files.prepare(&mut *trx).is_err(), "nothing but dropping it may follow");
    drop(trx);
    assert!(rows_at(&run.engine, ReadAt::Latest, TABLE).is_empty());
    run.purge();
    assert_eq!(run.status("Innodb_history_list_length"), 0);
}

/// A version that a later part replaces is not reachable, so its record does not wait for it.
#[test]
fn records_of_parts_are_dropped_below_a_view() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let mut run = Run::new(&fs);
    run.put(TABLE, 0..10, b"seen");
    let view = run.view();
    let before = run.used_blocks();
    for n in 0..100 {
        let (mut trx, files) = (run.engine.begin(), MemoryRedo::default());
        for part in 0..3 {
            trx.put(TABLE, &key(n % 10), &[part; 9000]).expect("puts");
            trx.install_part(&files).expect("installs");
        }
        let redo = files.prepare(&mut *trx).expect("prepares");
        run.order(&redo);
    }
    run.pass_views();
    run.purge();
    let left = run.status("Innodb_history_list_length");
    assert!(left < 25, "{left} records, of ten rows the first and the last that wrote them");
    run.checkpoint();
    run.checkpoint();
    let more = run.used_blocks().saturating_sub(before);
    assert!(more < 100, "{more} blocks: of three hundred long values ten are left");
    assert!(rows_at(&run.engine, ReadAt::View(&view), TABLE).values().all(|value| value == b"seen"));
}
