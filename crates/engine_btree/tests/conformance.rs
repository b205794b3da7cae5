//! The engine contract on the B+tree engine, alone and mirrored with the reference engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::conformance::{self, Harness};
use cohort_engine::{
    Batch, Direction, Engine, EngineTrx, KeyRange, MemoryRedo, Mirror, PageFormat, Participant, ReadAt,
    ReadView, ReferenceEngine, ScanRequest,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{MemFs, Rng, SeededRng, SharedFs};

/// A pool of a few pages: everything is evicted and read again continually.
const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 3,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
};

fn open(fs: &Arc<MemFs>, id: u16, options: BtreeOptions) -> BtreeEngine {
    let fs: SharedFs = fs.clone();
    BtreeEngine::open(ParticipantId(id.try_into().expect("small")), &fs, Path::new("/btree"), options)
        .expect("opens")
}

/// All indexes that these tests write.
const ALL: [IndexId; 2] = [IndexId(16), IndexId(17)];

struct InMemory(Arc<MemFs>, BtreeOptions, PageFormat);

impl Harness for InMemory {
    fn open(&self) -> Arc<dyn Engine> {
        let engine = open(&self.0, 1, self.1);
        engine.set_page_format(&ALL, self.2);
        Arc::new(engine)
    }
}

#[test]
fn the_btree_obeys_the_engine_contract() {
    for options in [TINY, BtreeOptions::default()] {
        for form in [PageFormat::Plain, PageFormat::CompressedRows] {
            conformance::run(&|| Box::new(InMemory(Arc::new(MemFs::new()), options, form)));
        }
    }
}

struct Mirrored(Arc<MemFs>);

impl Mirrored {
    fn open(&self) -> (Arc<dyn Engine>, BtreeEngine) {
        let reference = ReferenceEngine::open(ParticipantId(1), self.0.clone(), PathBuf::from("/reference"));
        let btree = open(&self.0, 2, TINY);
        (Arc::new(Mirror::new(Arc::new(reference.expect("opens")), Arc::new(btree.clone()))), btree)
    }
}

/// Returns a value that identifies its transaction, with a length of up to a few pages.
fn value(rng: &SeededRng, seq: u64) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 4096 + rng.below(40_000),
        1..=4 => 500 + rng.below(3000),
        _ => 1 + rng.below(60),
    };
    let mut value = vec![seq as u8; len as usize];
    value[0] = len as u8;
    value
}

fn key(rng: &SeededRng) -> Vec<u8> {
    key_of(rng.below(3000))
}

fn key_of(n: u64) -> Vec<u8> {
    let mut key = format!("key/{n:05}/").into_bytes();
    if n.is_multiple_of(97) {
        key.resize(key.len() + 2000, b'x');
    }
    key
}

fn one_transaction(
    engine: &dyn Engine,
    rng: &SeededRng,
    seq: u64,
    view: &ReadView,
) -> Option<cohort_engine::Redo> {
    let mut trx = engine.begin();
    let files = MemoryRedo::default();
    // Neighbouring keys, so that parts write over each other's keys.
    let (few, has_parts) = (rng.below(3) == 0, rng.below(2) == 0);
    let first = rng.below(2990);
    for _ in 0..rng.below(60) {
        let index = IndexId(16 + rng.below(2) as u32);
        let key = if few { key_of(first + rng.below(10)) } else { key(rng) };
        if has_parts && rng.below(8) == 0 {
            trx.install_part(&files).expect("installs");
        }
        match rng.below(10) {
            0..=2 => trx.delete(index, &key).expect("deletes"),
            3 => {
                let savepoint = trx.savepoint();
                trx.put(index, &key, b"to be undone").expect("puts");
                trx.rollback_to(savepoint);
            }
            4..=7 => trx.put(index, &key, &value(rng, seq)).expect("puts"),
            8 => {
                let mut found = Vec::new();
                trx.get(ReadAt::View(view), index, &key, &mut found).expect("reads");
                trx.get(ReadAt::Latest, index, &key, &mut found).expect("reads");
            }
            _ => {
                let mut bounds = [Some(key), Some(self::key(rng))];
                bounds.sort();
                let [start, end] = bounds;
                let range = KeyRange { start, end: end.filter(|_| rng.below(4) > 0) };
                let direction = if rng.below(2) == 0 { Direction::Forward } else { Direction::Backward };
                let at = if rng.below(2) == 0 { ReadAt::View(view) } else { ReadAt::Latest };
                let mut batch = Batch::default();
                trx.scan(
                    &ScanRequest { at, index, range: &range, direction, limit: rng.below(200) as usize + 1 },
                    &mut batch,
                )
                .expect("scans");
            }
        }
    }
    (rng.below(10) > 0 && !trx.is_read_only()).then(|| files.prepare(&mut *trx).expect("prepares"))
}

/// Random writes, rollbacks before and after prepare, old views, scans, checkpoints and purge. The mirror
/// asserts that all results are equal. From time to time both engines are reopened.
#[test]
fn the_btree_agrees_with_the_reference_engine() {
    for seed in 1..=4 {
        let rng = SeededRng::new(seed);
        let harness = Mirrored(Arc::new(MemFs::new()));
        let (mut engine, mut btree) = harness.open();
        let mut views: Vec<ReadView> = Vec::new();
        for round in 1..=400 {
            let seq = 2 * round;
            if views.is_empty() || rng.below(5) == 0 {
                views.push(ReadView::new(CommitSeq(seq), vec![(engine.id(), engine.snapshot())]));
            }
            if rng.below(8) == 0 {
                views.remove(rng.below(views.len() as u64) as usize);
            }
            let newest = ReadView::new(CommitSeq(seq), vec![(engine.id(), engine.snapshot())]);
            let view =
                if views.is_empty() { &newest } else { &views[rng.below(views.len() as u64) as usize] };
            let redo = one_transaction(&*engine, &rng, seq, view);
            let aborts = rng.below(8) == 0;
            if let Some(redo) = redo.filter(|_| !aborts) {
                engine.commit_ordered(CommitSeq(seq), &[&redo]);
            }
            if rng.below(4) == 0 {
                btree.purge().expect("purges");
            }
            // Like an ALTER TABLE that changes the page format: pages of both formats coexist.
            let form = match rng.below(2) {
                0 => PageFormat::Plain,
                _ => PageFormat::CompressedPages { level: Some(1 + rng.below(9) as u8) },
            };
            engine.set_page_format(&[ALL[rng.below(2) as usize]], form);
            match rng.below(60) {
                0 => {
                    let task = engine.begin_checkpoint(Lsn(seq)).expect("begins");
                    let redo = one_transaction(&*engine, &rng, seq, &newest);
                    if let Some(redo) = redo {
                        engine.commit_ordered(CommitSeq(seq + 1), &[&redo]);
                    }
                    btree.purge().expect("purges");
                    task.finish().expect("finishes");
                }
                1 => {
                    views.clear();
                    drop(newest);
                    engine.begin_checkpoint(Lsn(seq)).expect("begins").finish().expect("finishes");
                    drop((engine, btree));
                    (engine, btree) = harness.open();
                }
                _ => {}
            }
        }
    }
}

#[test]
fn redo_in_a_file_is_that_of_a_record() {
    const INDEX: IndexId = IndexId(40);
    let fs = Arc::new(MemFs::new());
    let engine = open(&fs, 1, BtreeOptions { has_threads: false, ..BtreeOptions::default() });
    let of = |rows: u32| {
        let mut trx = engine.begin();
        for n in 0..rows {
            trx.put(INDEX, &n.to_be_bytes(), &[7; 100]).expect("written");
            trx.delete(IndexId(41), &n.reverse_bits().to_be_bytes()).expect("deleted");
        }
        trx
    };
    let prepared = |trx: &mut Box<dyn EngineTrx>, files: &MemoryRedo| {
        let mut redo = Vec::new();
        trx.prepare_into(files, &mut redo).map(|()| redo)
    };
    let files = MemoryRedo::new(1000);

    let small = prepared(&mut of(3), &files).expect("prepares");
    assert!(small.len() == 1 && small[0].file().is_none() && !small[0].bytes.is_empty());
    drop(small);

    let inline = of(30_000).prepare().expect("prepares");
    let bytes = inline.bytes.clone();
    drop(inline);
    let spilled = prepared(&mut of(30_000), &files).expect("prepares");
    let [spilled] = &spilled[..] else { panic!("{} files", spilled.len()) };
    assert!(spilled.bytes.is_empty() && spilled.file().is_some_and(|file| file.bytes == bytes.len() as u64));
    assert!(files.bytes() == bytes, "the same bytes in either place");
    engine.commit_ordered(CommitSeq(1), &[spilled]);
    assert_eq!(engine.unflushed_bytes(), bytes.len() as u64);

    // A full disk: no write of the transaction may become visible.
    let full = MemoryRedo::of(2 << 20);
    let mut trx = engine.begin();
    for n in 0..30_000_u32 {
        trx.put(INDEX, &n.to_be_bytes(), &[8; 100]).expect("written");
    }
    assert!(prepared(&mut trx, &full).is_err());
    drop(trx);
    let (mut value, reader) = (Vec::new(), engine.begin());
    for n in [0_u32, 15_000, 29_999] {
        assert!(reader.get(ReadAt::Latest, INDEX, &n.to_be_bytes(), &mut value).expect("read"));
        assert_eq!(value, [7; 100]);
    }
}
