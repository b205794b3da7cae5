//! Damage to the data file: it is rejected with file, location and remedy, or has no effect. There is never a
//! wrong result, unless the damage is older than the checksum; even then there is no panic.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, Reader};
use cohort_engine::{
    Batch, Direction, Engine, EngineError, KeyRange, PageFormat, Participant, ReadAt, ScanRequest,
};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{Fs, MemFs, OpenMode, Rng, SeededRng, SharedFs};

const TINY: BtreeOptions = BtreeOptions {
    pool_bytes: 8 * 16384,
    rollback_segments: 2,
    undo_bytes: 4096,
    young_views: 2,
    has_threads: false,
    wait_slot_of: || None,
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
    assert!(!engine.begin().scan(&ScanRequest::forward(ReadAt::Latest, TABLE, &range, 1 << 20), &mut batch)?);
    Ok(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
}

/// Returns a file with short and long values, after two checkpoints and a bulk load. Half of each value is
/// noise, so that a compressed page still takes several blocks.
fn file(form: PageFormat) -> (MemFs, Rows, Lsn) {
    let memory = MemFs::new();
    let engine = open(&memory).expect("opens");
    engine.set_page_format(&[TABLE, IndexId(17)], form);
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
        && ["block", "ends at byte", "page map"].iter().any(|place| text.contains(place))
}

/// Opens and reads a damaged file. Returns true if the damage was detected.
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
        .flat_map(|index| match engine.verify(index, &mut |_| true) {
            Ok(problems) => problems,
            Err(error) => vec![error.to_string()],
        })
        .collect();
    assert!(is_read || !problems.is_empty(), "{what}: CHECK TABLE says nothing");
    !problems.is_empty()
}

const FORMS: [PageFormat; 2] = [PageFormat::Plain, PageFormat::CompressedRows];

#[test]
fn a_flipped_bit_is_noticed_where_it_is_read() {
    FORMS.into_iter().for_each(flip_bits);
}

fn flip_bits(form: PageFormat) {
    let (memory, truth, lsn) = file(form);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("known");
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
    let (memory, truth, lsn) = file(PageFormat::Plain);
    for copy in [0, 4096] {
        let damaged = memory.kill_clone();
        let file = damaged.open(Path::new(FILE), OpenMode::Write).expect("opens");
        file.write_at(&[0; 512], copy).expect("writes");
        assert!(!look(&damaged, &truth, lsn, "one superblock is zeros"), "the other is enough");
        file.write_at(&[0; 512], 4096 - copy).expect("writes");
        drop(file);
        // Zeros in both copies: like a file that never had a superblock, except for its length.
        let both = open(&damaged).map(|engine| engine.durable_lsn());
        assert!(both.is_err_and(|error| is_helpful(&error)), "both superblocks are gone");
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let (memory, truth, lsn) = file(PageFormat::Plain);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("known");
    let mut noticed = 0;
    for at in (0..len).step_by(1777) {
        let damaged = memory.kill_clone();
        damaged.open(Path::new(FILE), OpenMode::Write).expect("opens").set_len(at).expect("cuts");
        // An empty file is a new one. The log knows that the file had been durable (row EngineBehind).
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

fn swap_blocks(form: PageFormat) {
    let (memory, truth, lsn) = file(form);
    let len = memory.open(Path::new(FILE), OpenMode::Read).expect("opens").len().expect("known");
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

/// A byte range of the data file.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    at: u64,
    len: usize,
}

fn read(memory: &MemFs, stretch: Stretch) -> Vec<u8> {
    let mut bytes = vec![0; stretch.len];
    let file = memory.open(Path::new(FILE), OpenMode::Read).expect("opens");
    assert_eq!(file.read_at(&mut bytes, stretch.at).expect("reads"), stretch.len);
    bytes
}

fn write(memory: &MemFs, at: u64, bytes: &[u8]) {
    memory.open(Path::new(FILE), OpenMode::Write).expect("opens").write_at(bytes, at).expect("writes");
}

fn with_checksum(mut bytes: Vec<u8>, from: usize, at: usize) -> Vec<u8> {
    let crc = if at == 0 { crc32c::crc32c(&bytes[from..]) } else { crc32c::crc32c(&bytes[..at]) };
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Returns the parts of the page map: the position of each reference in the superblock, and the location of
/// the part.
fn parts(memory: &MemFs) -> (usize, Vec<(usize, Stretch)>) {
    let superblock = read(memory, Stretch { at: 0, len: 4096 });
    let mut r = Reader::new(&superblock[32..]);
    let count = r.u32().expect("a superblock") as usize;
    let mut found = Vec::new();
    for n in 0..count {
        r.u8().expect("a superblock");
        let block = r.u64().expect("a superblock");
        let len = r.u32().expect("a superblock") as usize;
        r.u32().expect("a superblock");
        found.push((36 + n * 17, Stretch { at: block * 4096, len }));
    }
    (36 + count * 17, found)
}

/// Returns the images in the page map, unless a newer image of the page exists.
fn images(memory: &MemFs) -> Vec<Stretch> {
    let mut newest = BTreeMap::new();
    for (_, part) in parts(memory).1 {
        let bytes = read(memory, part);
        let mut r = Reader::new(&bytes);
        let mut index = 0;
        while !r.is_empty() {
            match r.u8().expect("a record") {
                2 => {
                    index = r.u32().expect("a record");
                    r.u64().expect("a record");
                    r.u64().expect("a record");
                }
                5 => {
                    r.u32().expect("a record");
                    let id = r.u64().expect("a record");
                    let at = r.u64().expect("a record") * 4096;
                    let len = r.u32().expect("a record") as usize;
                    newest.insert((index, id), Stretch { at, len });
                    for _ in 0..r.u16().expect("a record") {
                        r.u64().expect("a record");
                        r.u32().expect("a record");
                    }
                }
                other => panic!("no record of this kind was expected: {other}"),
            }
        }
    }
    newest.into_values().collect()
}

/// Uses a damaged file in all ways. Nothing may panic, and each error must name location and remedy. Returns
/// true if the damage was detected.
fn survives(memory: &MemFs, what: &str) -> bool {
    let mut noticed = false;
    let mut accept = |error: EngineError| {
        assert!(is_helpful(&error), "{what}: {error}");
        noticed = true;
    };
    let engine = match open(memory) {
        Ok(engine) => engine,
        Err(error) => {
            accept(error);
            return noticed;
        }
    };
    rows(&engine).map_or_else(&mut accept, drop);
    let mut batch = Batch::default();
    let backward = engine.begin().scan(
        &ScanRequest {
            at: ReadAt::Latest,
            index: TABLE,
            range: &KeyRange::default(),
            direction: Direction::Backward,
            limit: 1 << 20,
        },
        &mut batch,
    );
    backward.map_or_else(&mut accept, drop);
    for n in (0..400_u32).step_by(9) {
        let mut trx = engine.begin();
        let key = n.to_be_bytes();
        trx.get(ReadAt::Latest, TABLE, &key, &mut Vec::new()).map_or_else(&mut accept, drop);
        let put = match n % 2 {
            0 => trx.put(TABLE, &key, &[7; 300]),
            _ => trx.delete(TABLE, &key),
        };
        put.expect("it is kept in memory");
        match trx.prepare() {
            Ok(redo) => engine.commit_ordered(CommitSeq(u64::from(n) + 100), &[&redo]),
            Err(error) => accept(error),
        }
    }
    engine.purge().map_or_else(&mut accept, drop);
    let checkpoint = engine.begin_checkpoint(Lsn(1000)).and_then(|task| task.finish());
    checkpoint.map_or_else(&mut accept, drop);
    for index in [TABLE, IndexId(17)] {
        match engine.verify(index, &mut |_| true) {
            Ok(problems) => noticed |= !problems.is_empty(),
            Err(error) => noticed |= is_helpful(&error),
        }
    }
    noticed
}

/// Changes bytes, mostly among the first ones, where headers and slots are, or exchanges two words.
fn scramble(bytes: &mut [u8], from: usize, rng: &SeededRng) {
    let random = |below: usize| {
        let mut n = [0; 8];
        rng.fill(&mut n);
        (u64::from_le_bytes(n) % below.max(1) as u64) as usize
    };
    let room = bytes.len() - from;
    let place = |reach: usize| from + random(room.min(reach));
    match random(4) {
        0 => {
            // Two slots, or two children.
            let (a, b) = (place(400) & !7, place(400) & !7);
            if a.max(b) + 8 <= bytes.len() && a.min(b) >= from {
                (0..8).for_each(|n| bytes.swap(a + n, b + n));
            }
        }
        kind => {
            for _ in 0..=random(3) {
                let at = place([48, 400, usize::MAX][kind - 1]);
                bytes[at] = [0, 1, 255, random(256) as u8, bytes[at].wrapping_add(1)][random(5)];
            }
        }
    }
}

#[test]
fn wrong_content_under_a_right_checksum_panics_nowhere() {
    for form in FORMS {
        let (memory, _, _) = file(form);
        let images = images(&memory);
        assert!(images.len() > 5, "{} images", images.len());
        let rng = SeededRng::new(7);
        let mut noticed = 0;
        for round in 0..600 {
            let image = images[round % images.len()];
            let damaged = memory.kill_clone();
            let mut bytes = read(&damaged, image);
            scramble(&mut bytes, 4, &rng);
            write(&damaged, image.at, &with_checksum(bytes, 4, 0));
            noticed +=
                u64::from(survives(&damaged, &format!("{form:?}, round {round}, image at {}", image.at)));
        }
        assert!(noticed > 200, "{noticed} noticed");
    }
}

#[test]
fn a_wrong_page_map_under_a_right_checksum_panics_nowhere() {
    let (memory, _, _) = file(PageFormat::Plain);
    let (end, parts) = parts(&memory);
    let rng = SeededRng::new(11);
    let mut noticed = 0;
    for round in 0..300 {
        let damaged = memory.kill_clone();
        let mut superblock = read(&damaged, Stretch { at: 0, len: end + 4 });
        if round % 3 == 0 {
            scramble(&mut superblock[..end], 8, &rng);
        } else {
            let (named_at, part) = parts[round % parts.len()];
            let mut bytes = read(&damaged, part);
            scramble(&mut bytes, 0, &rng);
            write(&damaged, part.at, &bytes);
            superblock[named_at + 13..named_at + 17].copy_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        }
        let superblock = with_checksum(superblock, 0, end);
        [0, 4096].into_iter().for_each(|copy| write(&damaged, copy, &superblock));
        noticed += u64::from(survives(&damaged, &format!("round {round}")));
    }
    assert!(noticed > 100, "{noticed} noticed");
}

/// A data file of a build before the first release is rejected by name, not as damage, and stays as it is.
#[test]
fn an_earlier_format_is_rejected_with_the_cure() {
    let (memory, ..) = file(PageFormat::Plain);
    let file = memory.open(Path::new(FILE), OpenMode::Write).expect("opens");
    [0, 4096].into_iter().for_each(|copy| file.write_at(b"COHBTR01", copy).expect("writes"));
    let contents = || {
        let mut bytes = vec![0; file.len().expect("known") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        bytes
    };
    let before = contents();
    let refused = open(&memory).err().expect("it is outdated").to_string();
    for part in [FILE, "COHBTR01", "before the first release", "docs/upgrade.md"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(contents() == before, "the file was changed");
}
