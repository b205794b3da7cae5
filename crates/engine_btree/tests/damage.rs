//! Damage to the data file: refused with file, place and cure, or without effect. Never a wrong answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Batch, Direction, Engine, EngineError, KeyRange, PageForm, Participant, ReadAt};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{Fs, MemFs, OpenMode, Rng, SeededRng, SharedFs};

const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    bed_of: || None,
};
const TABLE: IndexId = IndexId(16);
const FILE: &str = "/btree/btree.data";

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(memory: &MemFs) -> Result<BtreeEngine, EngineError> {
    let fs: SharedFs = Arc::new(memory.clone());
    BtreeEngine::open(ParticipantId(1), &fs, Path::new("/btree"), TINY)
}

fn rows(engine: &BtreeEngine) -> Result<Rows, EngineError> {
    let mut batch = Batch::default();
    let range = KeyRange::default();
    assert!(!engine.begin().scan(ReadAt::Latest, TABLE, &range, Direction::Forward, 1 << 20, &mut batch)?);
    Ok(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
}

/// A file with short and long values, after two checkpoints and a bulk load. Values are half noise, so that a
/// compressed page still takes some blocks.
fn file(form: PageForm) -> (MemFs, Rows, Lsn) {
    let memory = MemFs::new();
    let engine = open(&memory).expect("opens");
    engine.set_page_form(&[TABLE, IndexId(17)], form);
    let rng = SeededRng::new(1);
    let mut load = engine.bulk_load(IndexId(17)).expect("loads");
    (0..300_u32).for_each(|n| load.add(&n.to_be_bytes(), &[1; 100]).expect("adds"));
    load.finish().expect("finishes");
    for round in 1..=2_u8 {
        let mut trx = engine.begin();
        for n in 0..400_u32 {
            let len = if n.is_multiple_of(50) { 6000 } else { 100 };
            let mut value = vec![round; len];
            rng.fill(&mut value[..len / 2]);
            trx.put(TABLE, &n.to_be_bytes(), &value).expect("puts");
        }
        engine.commit_ordered(CommitSeq(round.into()), &[&trx.prepare().expect("prepares")]);
        engine.purge().expect("purges");
        let lsn = Lsn(u64::from(round) * 100);
        engine.begin_checkpoint(lsn).expect("begins").finish().expect("finishes");
    }
    let rows = rows(&engine).expect("reads");
    let lsn = engine.durable_lsn();
    (memory, rows, lsn)
}

fn is_helpful(error: &EngineError) -> bool {
    let text = error.to_string();
    text.contains(FILE)
        && text.contains("backup")
        && (text.contains("block") || text.contains("ends at byte"))
}

/// Opens and reads what is damaged. True: it was noticed.
fn look(memory: &MemFs, truth: &Rows, lsn: Lsn, what: &str) -> bool {
    let engine = match open(memory) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(is_helpful(&error), "{what}: {error}");
            return true;
        }
    };
    assert_eq!(engine.durable_lsn(), lsn, "{what}: an older state came up");
    let is_read = match rows(&engine) {
        Ok(found) => {
            assert!(found == *truth, "{what}: a wrong answer");
            true
        }
        Err(error) => {
            assert!(is_helpful(&error), "{what}: {error}");
            false
        }
    };
    let problems: Vec<String> = [TABLE, IndexId(17)]
        .into_iter()
        .flat_map(|index| match engine.verify(index, &mut || true) {
            Ok(problems) => problems,
            Err(error) => vec![error.to_string()],
        })
        .collect();
    assert!(is_read || !problems.is_empty(), "{what}: CHECK TABLE says nothing");
    !problems.is_empty()
}

const FORMS: [PageForm; 2] = [PageForm::Plain, PageForm::CompressedRows];

#[test]
fn a_flipped_bit_is_noticed_where_it_is_read() {
    FORMS.into_iter().for_each(flip_bits);
}

fn flip_bits(form: PageForm) {
    let (memory, truth, lsn) = file(form);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("told");
    let superblocks = (0..52).chain(4096..4096 + 52);
    let elsewhere = (8192..len).step_by(53);
    let mut noticed = 0;
    for at in superblocks.chain(elsewhere) {
        let damaged = memory.kill_clone();
        let file = damaged.open(Path::new(FILE), OpenMode::Write).expect("opens");
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ (1 << (at % 8))], at).expect("writes");
        noticed += u64::from(look(&damaged, &truth, lsn, &format!("bit flipped in byte {at}")));
    }
    assert!(noticed > (len - 8192) / 53 / 4, "{noticed} of {} flips noticed", (len - 8192) / 53);
}

#[test]
fn a_superblock_that_rots_is_mended_from_the_other() {
    let (memory, truth, lsn) = file(PageForm::Plain);
    for copy in [0, 4096] {
        let damaged = memory.kill_clone();
        let file = damaged.open(Path::new(FILE), OpenMode::Write).expect("opens");
        file.write_at(&[0; 512], copy).expect("writes");
        assert!(!look(&damaged, &truth, lsn, "one superblock is zeros"), "the other is enough");
        file.write_at(&[0; 512], 4096 - copy).expect("writes");
        drop(file);
        // Zeros in both: a file that never had one, but for its length.
        let both = open(&damaged).map(|engine| engine.durable_lsn());
        assert!(both.is_err_and(|error| is_helpful(&error)), "both superblocks are gone");
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let (memory, truth, lsn) = file(PageForm::Plain);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("told");
    let mut noticed = 0;
    for at in (0..len).step_by(1777) {
        let damaged = memory.kill_clone();
        damaged.open(Path::new(FILE), OpenMode::Write).expect("opens").set_len(at).expect("cuts");
        // A file of no length is a new one; the log knows that it had been durable (row EngineBehind).
        if at > 8192 + 52 {
            noticed += u64::from(look(&damaged, &truth, lsn, &format!("cut to {at} bytes")));
        }
    }
    assert!(noticed > 10);
}

#[test]
fn pages_that_change_places_are_noticed() {
    FORMS.into_iter().for_each(swap_blocks);
}

fn swap_blocks(form: PageForm) {
    let (memory, truth, lsn) = file(form);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("told");
    for at in (8192..len - 8192).step_by(8192) {
        let damaged = memory.kill_clone();
        let file = damaged.open(Path::new(FILE), OpenMode::Write).expect("opens");
        let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
        file.read_at(&mut first, at).expect("reads");
        file.read_at(&mut second, at + 4096).expect("reads");
        file.write_at(&second, at).expect("writes");
        file.write_at(&first, at + 4096).expect("writes");
        look(&damaged, &truth, lsn, &format!("blocks at {at} swapped"));
    }
}
