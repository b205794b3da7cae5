//! Tables with compressed pages: the space saved, and that other tables are not affected.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{
    Batch, Direction, Engine, EngineSetting, KeyRange, PageAlgorithm, PageFormat, Participant, ReadAt,
    ReadView, ScanRequest,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{MemFs, Rng, SeededRng, SharedFs};

const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
};
const TABLE: IndexId = IndexId(16);
const COPY: IndexId = IndexId(17);
const ROWS: u32 = 3000;

struct Run {
    engine: BtreeEngine,
    memory: MemFs,
    seq: u64,
}

impl Run {
    fn new() -> Run {
        let memory = MemFs::new();
        Run { engine: open(&memory), memory, seq: 0 }
    }

    fn put_all(&mut self, value: impl Fn(u32) -> Vec<u8>) {
        let mut trx = self.engine.begin();
        (0..ROWS).for_each(|n| trx.put(TABLE, &n.to_be_bytes(), &value(n)).expect("puts"));
        let redo = trx.prepare().expect("prepares");
        self.seq += 1;
        self.engine.commit_ordered(CommitSeq(self.seq), &[&redo]);
    }

    fn checkpoint(&self) {
        while self.engine.purge().expect("purges") > 0 {}
        self.engine.begin_checkpoint(Lsn(self.seq)).expect("begins").finish().expect("finishes");
    }

    fn reopen(&mut self) {
        self.engine = open(&MemFs::new());
        self.engine = open(&self.memory);
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.engine.status();
        status.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name} is reported")).1
    }

    fn used_blocks(&self) -> u64 {
        self.status("Innodb_data_file_blocks") - self.status("Innodb_data_file_free_blocks")
    }

    fn verify(&self) {
        for index in self.engine.indexes().expect("lists") {
            assert_eq!(self.engine.verify(index, &mut |_| true).expect("looks"), Vec::<String>::new());
        }
    }
}

fn open(memory: &MemFs) -> BtreeEngine {
    let fs: SharedFs = Arc::new(memory.clone());
    BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), TINY).expect("opens")
}

fn scan(
    engine: &BtreeEngine,
    at: ReadAt<'_>,
    index: IndexId,
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut rows, mut range) = (Vec::new(), KeyRange::default());
    loop {
        let mut batch = Batch::default();
        let goes_on = engine
            .begin()
            .scan(&ScanRequest { at, index, range: &range, direction, limit: 100 }, &mut batch)
            .expect("scans");
        rows.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        if !goes_on {
            return rows;
        }
        batch.cut(&mut range, direction);
    }
}

/// Returns a realistic row, half of which compresses well.
fn row(n: u32) -> Vec<u8> {
    let mut value = format!("{:>60}", n).into_bytes();
    value.extend(SeededRng::new(n.into()).bytes_of(40));
    value
}

trait Noise {
    fn bytes_of(&self, len: usize) -> Vec<u8>;
}

impl Noise for SeededRng {
    fn bytes_of(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }
}

fn assert_rows(run: &Run, index: IndexId, value: impl Fn(u32) -> Vec<u8>) {
    let rows = scan(&run.engine, ReadAt::Latest, index, Direction::Forward);
    assert_eq!(rows.len(), ROWS as usize);
    for (n, (key, found)) in (0..ROWS).zip(rows) {
        assert!(key == n.to_be_bytes() && found == value(n), "row {n}");
    }
}

#[test]
fn pages_take_fewer_blocks_and_change_their_form_when_they_are_written() {
    let mut run = Run::new();
    run.put_all(row);
    run.checkpoint();
    let plain = run.used_blocks();
    assert_eq!(run.status("Innodb_num_pages_page_compressed"), 0);

    // ALTER TABLE ... PAGE_COMPRESSED=1: images on disk stay as they are until the pages are written again.
    run.engine.set_page_format(&[TABLE], PageFormat::CompressedPages { level: None });
    run.checkpoint();
    assert_eq!(run.used_blocks(), plain);
    run.put_all(|n| row(n + 1));
    run.checkpoint();
    let compressed = run.used_blocks();
    assert!(compressed * 3 < plain * 2, "{plain} blocks, compressed {compressed}");
    let saved = run.status("Innodb_page_compression_saved") / 4096;
    assert!(saved >= plain - compressed, "{saved} blocks saved, {plain} before and {compressed} now");
    run.verify();

    // A start without page formats reads both formats and writes plain pages.
    run.reopen();
    assert_rows(&run, TABLE, |n| row(n + 1));
    assert!(run.status("Innodb_num_pages_page_decompressed") > 0);
    run.verify();
    run.put_all(row);
    run.checkpoint();
    assert_eq!(run.status("Innodb_num_pages_page_compressed"), 0);
    assert!(run.used_blocks() >= plain);
    assert_rows(&run, TABLE, row);
}

#[test]
fn a_copy_is_compressed_as_its_key_space_says() {
    let run = Run::new();
    let fill = |index: IndexId| {
        let mut load = run.engine.bulk_load(index).expect("loads");
        (0..ROWS).for_each(|n| load.add(&n.to_be_bytes(), &row(n)).expect("adds"));
        load.finish().expect("finishes");
    };
    let before = run.used_blocks();
    fill(TABLE);
    let plain = run.used_blocks() - before;
    run.engine.set_page_format(&[COPY], PageFormat::CompressedRows);
    fill(COPY);
    let compressed = run.used_blocks() - before - plain;
    assert!(compressed * 3 < plain * 2, "{plain} blocks, compressed {compressed}");
    assert_rows(&run, COPY, row);
    run.verify();
    // An index that is later created with the same number is a new one.
    run.engine.drop_indexes(&[COPY]).expect("drops");
    let written = run.status("Innodb_num_pages_page_compressed");
    fill(COPY);
    assert_eq!(run.status("Innodb_num_pages_page_compressed"), written);
}

#[test]
fn noise_is_written_plain() {
    let mut run = Run::new();
    run.engine.set_page_format(&[TABLE], PageFormat::CompressedRows);
    let noise = |n: u32| SeededRng::new(n.into()).bytes_of(100);
    run.put_all(noise);
    run.checkpoint();
    let (compressed, failed) = (
        run.status("Innodb_num_pages_page_compressed"),
        run.status("Innodb_num_pages_page_compression_error"),
    );
    assert!(failed > 10 * compressed, "{compressed} compressed, {failed} not");
    run.reopen();
    assert_rows(&run, TABLE, noise);
}

#[test]
fn the_algorithm_none_compresses_nothing() {
    let mut run = Run::new();
    run.engine.set_page_format(&[TABLE], PageFormat::CompressedPages { level: Some(9) });
    run.engine.configure(EngineSetting::PageAlgorithm(PageAlgorithm::None));
    run.put_all(row);
    run.checkpoint();
    assert_eq!(run.status("Innodb_num_pages_page_compressed"), 0);
    run.engine.configure(EngineSetting::PageAlgorithm(PageAlgorithm::Zlib));
    run.put_all(row);
    run.checkpoint();
    assert!(run.status("Innodb_num_pages_page_compressed") > 0);
}

#[test]
fn long_values_are_compressed_and_read_from_every_side() {
    let text =
        |n: u32| format!("{n} and again ").repeat(if n.is_multiple_of(10) { 3000 } else { 2 }).into_bytes();
    let mut plain = Run::new();
    plain.put_all(text);
    plain.checkpoint();
    let mut run = Run::new();
    run.engine.set_page_format(&[TABLE], PageFormat::CompressedPages { level: None });
    run.put_all(text);
    run.checkpoint();
    let (of_plain, compressed) = (plain.used_blocks(), run.used_blocks());
    assert!(compressed * 5 < of_plain, "{of_plain} blocks, compressed {compressed}");

    let view = ReadView::new(CommitSeq(run.seq), vec![(run.engine.id(), run.engine.snapshot())]);
    run.put_all(|n| text(n + 1));
    let expected =
        |from: u32| -> Vec<_> { (0..ROWS).map(|n| (n.to_be_bytes().to_vec(), text(n + from))).collect() };
    for (at, from) in [(ReadAt::View(&view), 0), (ReadAt::Latest, 1)] {
        let (forward, mut backward) = (
            scan(&run.engine, at, TABLE, Direction::Forward),
            scan(&run.engine, at, TABLE, Direction::Backward),
        );
        backward.reverse();
        assert!(forward == expected(from) && backward == expected(from));
        let (mut value, reader) = (Vec::new(), run.engine.begin());
        for n in [0, 9, 10, 11, ROWS - 1] {
            assert!(reader.get(at, TABLE, &u32::to_be_bytes(n), &mut value).expect("reads"));
            assert_eq!(value, text(n + from));
        }
    }
    drop(view);
    run.checkpoint();
    run.checkpoint();
    assert!(run.used_blocks() <= compressed + compressed / 10, "old values are free");
    run.verify();
    run.reopen();
    assert_rows(&run, TABLE, |n| text(n + 1));
}
