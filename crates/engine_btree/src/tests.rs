//! Versions and undo. They stand here and not beside what they test, because the model check compiles those
//! files a second time, over locks that work under its scheduler alone.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_vfs::{MemFs, SharedFs};

use crate::spill::UndoFile;
use crate::undo::{Before, Cursor, Grows, UndoLog, links_of};
use crate::version::{Horizon, Shown, Skip, TrxNo, VersionRef, Versions};

#[test]
fn records_are_found_by_place_and_in_order_in_memory_and_spilled() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let file = UndoFile::open(&fs, Path::new("/")).expect("opens");
    let mut log = UndoLog::default();
    let keys: Vec<Vec<u8>> = (0..5000_u32).map(|n| n.to_be_bytes().repeat(n as usize % 300 + 1)).collect();
    let values: Vec<Vec<u8>> = (0..5000).map(|n| vec![n as u8; n % 4097]).collect();
    let reference = |n: usize| VersionRef { trx: TrxNo(n as u64), undo: 7 };
    let before = |n: usize| Before {
        index: IndexId(n as u32),
        key: &keys[n],
        is_deletion: n.is_multiple_of(3),
        existed: !n.is_multiple_of(5),
        version: (n % 2 == 1).then(|| reference(n)),
        skip: (n % 4 == 1).then(|| Skip { to: reference(n + 1), to_depth: 3, depth: n as u32 }),
        value: (!n.is_multiple_of(7)).then_some(&*values[n]),
        is_overflow: n.is_multiple_of(14) && !n.is_multiple_of(7),
    };
    let mut places = Vec::new();
    for n in 0..5000 {
        places.push(log.push(&before(n)).expect("room").0);
        if n % 1500 == 1499 {
            while let Some(chunk) = log.to_spill(Grows::Yes) {
                // Behind something else.
                let extent = file.write(&[&[0; 999], chunk].concat()).expect("writes");
                let links = links_of(chunk);
                log.spilled(&extent, 999, links);
            }
            assert!(log.memory_bytes() > 0, "the last chunk stays");
        }
    }
    let mut cursor = Cursor::default();
    for (n, place) in places.iter().enumerate() {
        log.at(*place, |found| assert_eq!(found, before(n))).expect("reads");
        let skip = before(n).skip;
        assert_eq!(log.link_at(*place), (before(n).version, skip.filter(|skip| skip.depth > 0)));
        assert_eq!(log.next(&mut cursor).expect("reads"), Some(before(n)));
    }
    assert_eq!(log.next(&mut cursor).expect("reads"), None);
    assert!(file.bytes() > 0);
    drop(log);
    assert_eq!(file.bytes(), 0);
}

fn versions(undo_bytes_max: usize) -> Versions {
    let fs: SharedFs = Arc::new(MemFs::new());
    Versions::new(3, undo_bytes_max, UndoFile::open(&fs, Path::new("/")).expect("opens"))
}

/// Writes the number of the transaction before over it. Returns the newest version.
fn chain(versions: &Versions, numbers: std::ops::Range<u64>) -> VersionRef {
    let mut newest = None;
    for seq in numbers {
        let record = versions.begin();
        let value = (seq - 1).to_le_bytes();
        let (version, skip) = versions.chain_over(newest);
        let before = Before {
            index: IndexId(16),
            key: b"hot",
            is_deletion: false,
            existed: true,
            version,
            skip,
            value: Some(&value),
            is_overflow: false,
        };
        newest = versions.push_undo(&record, &before);
        record.commit(CommitSeq(seq));
    }
    newest.expect("there is room")
}

fn seen(versions: &Versions, view: u64, newest: VersionRef) -> u64 {
    match versions.resolve(Horizon::At(CommitSeq(view)), Some(newest)).expect("reads") {
        Shown::Entry => u64::MAX,
        Shown::Older(undo) => {
            u64::from_le_bytes(*undo.value.expect("it was there").bytes.first_chunk().expect("a number"))
        }
    }
}

#[test]
fn every_view_finds_its_version_of_a_hot_row_in_few_steps() {
    const COUNT: u64 = 5000;
    for undo_bytes_max in [usize::MAX, 10_000] {
        let versions = versions(undo_bytes_max);
        let newest = chain(&versions, 1..COUNT + 1);
        versions.spill().expect("spills");
        assert!(versions.undo_bytes() <= undo_bytes_max);
        for view in (0..COUNT).step_by(7) {
            let reads = versions.spilled_reads();
            assert_eq!(seen(&versions, view, newest), view);
            assert!(versions.spilled_reads() <= reads + 2, "the version itself, and nothing on the way");
        }
        assert_eq!(seen(&versions, COUNT, newest), u64::MAX);
        // The way to the oldest version, as `resolve` goes it.
        let (mut at, mut steps) = (newest, 0);
        loop {
            let (older, skip) = versions.find(at.trx).expect("kept").older(at.undo);
            let Some(older) = older else { break };
            at = skip.map_or(older, |skip| skip.to);
            steps += 1;
        }
        assert!(steps < 40, "{steps} steps");
        // Purge takes the oldest ones while a view needs the others.
        let records = versions.purgeable(CommitSeq(COUNT / 2), usize::MAX);
        versions.forget(&records);
        drop(records);
        for view in (COUNT / 2..COUNT).step_by(7) {
            assert_eq!(seen(&versions, view, newest), view);
        }
        versions.forget(&versions.purgeable(CommitSeq(COUNT), usize::MAX));
        assert_eq!((versions.undo_bytes(), versions.spilled_bytes()), (0, 0));
    }
}
