//! Tests of versions and undo. They are separate from the modules that they test, because the model check
//! compiles those modules again with locks that work only under its scheduler.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_vfs::{MemFs, SharedFs};

use crate::spill::UndoFile;
use crate::trx_record::TrxState;
use crate::undo::{Before, Cursor, End, Grows, Link, UndoLog};
use crate::version::{Horizon, Shown, Versions};
use crate::version_ref::{TrxNo, VersionRef};
use crate::views::Views;

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
        link: (n % 2 == 1).then(|| Link {
            seq: (n % 8 != 5).then_some(CommitSeq(n as u64)),
            older: reference(n),
            below: reference(n + 1),
            end: if n % 4 == 1 { End::Far } else { End::Nothing },
        }),
        value: (!n.is_multiple_of(7)).then_some(&*values[n]),
        is_overflow: n.is_multiple_of(14) && !n.is_multiple_of(7),
    };
    let mut places = Vec::new();
    for n in 0..5000 {
        places.push(log.push(&before(n)).expect("room").0);
        if n % 1500 == 1499 {
            while let Some(chunk) = log.to_spill(Grows::Yes) {
                // After other bytes in the extent.
                let extent = file.write(&[&[0; 999], chunk].concat()).expect("writes");
                log.spilled(&extent, 999);
            }
            assert!(log.memory_bytes() > 0, "the last chunk stays");
        }
    }
    let mut cursor = Cursor::default();
    for (n, place) in places.iter().enumerate() {
        log.at(*place, |found| assert_eq!(found, before(n))).expect("reads");
        assert_eq!(log.link_at(*place), before(n).link);
        assert_eq!(log.next(&mut cursor).expect("reads"), Some(before(n)));
    }
    assert_eq!(log.next(&mut cursor).expect("reads"), None);
    // Reads in another order do not depend on the blocks that earlier reads have cached.
    for n in (0..5000).rev().chain((0..5000).map(|n| n * 1723 % 5000)) {
        log.at(places[n], |found| assert_eq!(found, before(n))).expect("reads");
    }
    assert!(file.bytes() > 0);
    assert!(log.memory_bytes() > 0 && log.free() > 0);
    assert_eq!((file.bytes(), log.memory_bytes()), (0, 0));
    for (n, place) in places.iter().enumerate() {
        assert_eq!(log.link_at(*place), before(n).link);
        assert!(log.undo_at(*place).expect("without a read").value.is_none());
    }
    assert_eq!(log.next(&mut Cursor::default()).expect("nothing is left"), None);
}

#[test]
fn a_reader_of_a_freed_block_never_sees_its_new_contents() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let file = UndoFile::open(&fs, Path::new("/")).expect("opens");
    for round in 0..200_u8 {
        let extent = file.write(&[round; 10_000]).expect("writes");
        assert_eq!(file.bytes(), 3 * 4096, "the blocks of the round before");
        for from in [5000, 9999, 0, 4000, 5000] {
            let len = 500.min(10_000 - from);
            assert_eq!(extent.read(from, len).expect("reads")[..len], vec![round; len]);
        }
        assert_eq!(extent.read_all(1, 9999).expect("reads"), [round; 9999]);
    }
    assert!(file.reads() < 200 * 6, "a block that was read is kept for a while");
}

/// Readers skip many rows of a large undecided transaction.
#[test]
fn replaced_rows_are_found_without_a_file_read() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let file = UndoFile::open(&fs, Path::new("/")).expect("opens");
    let mut log = UndoLog::default();
    let keys: Vec<[u8; 4]> = (0..5000_u32).map(u32::to_be_bytes).collect();
    let before = |n: usize, value: Option<&'static [u8]>| Before {
        index: IndexId(16),
        key: &keys[n],
        is_deletion: false,
        existed: value.is_some(),
        link: None,
        value,
        is_overflow: false,
    };
    let push = |log: &mut UndoLog, n| {
        let value = (n == 4900).then_some(&b"old"[..]);
        log.push(&before(n, value)).expect("room").0
    };
    let mut places: Vec<u32> = (0..4900).map(|n| push(&mut log, n)).collect();
    // The chunk with the last ones contains a value.
    let spill = |log: &mut UndoLog, grows| {
        while let Some(chunk) = log.to_spill(grows) {
            let extent = file.write(chunk).expect("writes");
            log.spilled(&extent, 0);
        }
    };
    spill(&mut log, Grows::No);
    let with_value = push(&mut log, 4900);
    places.extend((4901..5000).map(|n| push(&mut log, n)));
    spill(&mut log, Grows::No);
    for place in &places[..4900] {
        assert!(log.undo_at(*place).expect("without a read").value.is_none());
    }
    assert_eq!(log.has_value(with_value), None);
    assert_eq!(file.reads(), 0);
    assert_eq!(
        log.undo_at(with_value).expect("reads").value.map(|value| value.bytes),
        Some((*b"old").into())
    );
    assert!(file.reads() > 0);
}

fn versions(segments: usize, undo_bytes_max: usize) -> Versions {
    let fs: SharedFs = Arc::new(MemFs::new());
    let file = UndoFile::open(&fs, Path::new("/")).expect("opens");
    Versions::new(segments, undo_bytes_max, file, Arc::new(Views::new(0)))
}

/// Writes the number of the preceding transaction over `newest`. Returns the new newest version.
fn write_over(versions: &Versions, newest: Option<VersionRef>, seq: u64) -> VersionRef {
    let record = versions.begin();
    let before = Before {
        index: IndexId(16),
        key: b"hot",
        is_deletion: false,
        existed: true,
        link: newest.filter(|newest| !versions.is_seen_by_all(newest.trx)).map(Link::over),
        value: Some(&(seq - 1).to_le_bytes()),
        is_overflow: false,
    };
    let newest = versions.push_undo(&record, &before);
    record.commit(CommitSeq(seq));
    versions.views.advance(CommitSeq(seq));
    newest.expect("there is room")
}

fn seen(versions: &Versions, view: u64, newest: VersionRef) -> u64 {
    match versions.resolve(Horizon::at(CommitSeq(view)), Some(newest)).expect("reads") {
        Shown::Entry => u64::MAX,
        Shown::Older(undo) => {
            u64::from_le_bytes(*undo.value.expect("it was there").bytes.first_chunk().expect("a number"))
        }
    }
}

fn chain_len(versions: &Versions, newest: VersionRef) -> usize {
    let (mut at, mut len) = (newest, 0);
    while let Some(link) = versions.find(at.trx).and_then(|record| record.link(at.undo)) {
        (at, len) = (link.below, len + 1);
    }
    len
}

fn prune(versions: &Versions) {
    let in_use = versions.views.in_use();
    let records = versions.to_prune(in_use.until, usize::MAX);
    let mut dropped = Vec::new();
    versions.resolve_links(records.iter().map(|record| &**record));
    for record in &records {
        let seq = match record.state() {
            TrxState::Committed(seq) => seq,
            other => panic!("{other:?}"),
        };
        versions.shorten(record, &in_use, &mut dropped);
        if !record.is_value_needed(&|from| in_use.is_any_in(from, seq)) {
            versions.free_values(record);
        }
        record.set_pruned();
    }
    versions.pruned(&records, in_use.until);
    dropped.extend(records.into_iter().filter(|record| record.is_droppable()));
    dropped.iter().for_each(|record| versions.free_values(record));
    versions.drop_pruned(&mut dropped);
}

/// Views are held forever, for a while, and between two writes.
#[test]
fn a_hot_row_has_the_versions_that_views_in_use_need() {
    const COUNT: u64 = 5000;
    for undo_bytes_max in [usize::MAX, 10_000] {
        let versions = versions(3, undo_bytes_max);
        let (mut newest, mut held, mut short) = (None, Vec::new(), std::collections::VecDeque::new());
        for seq in 1..=COUNT {
            newest = Some(write_over(&versions, newest, seq));
            let newest = newest.expect("just written");
            match seq % 500 {
                7 | 400 => held.push(versions.views.pin()),
                _ if seq % 3 == 0 => short.push_back(versions.views.pin()),
                _ => {}
            }
            if short.len() > 10 {
                short.pop_front();
            }
            if seq % 100 == 0 {
                versions.spill().expect("spills");
                prune(&versions);
                let needed = held.len() + short.len() + 2;
                assert!(chain_len(&versions, newest) <= needed);
                // The records after the first view that is not held are pruned later.
                assert!(versions.history_len() <= needed + 100, "{} records", versions.history_len());
            }
            if seq % 250 == 0 {
                for pin in held.iter().chain(&short) {
                    let expected = if pin.seq.0 == seq { u64::MAX } else { pin.seq.0 };
                    assert_eq!(seen(&versions, pin.seq.0, newest), expected);
                }
            }
        }
        let newest = newest.expect("written");
        // Views close, the one in the middle first. The others keep what they need.
        short.clear();
        while !held.is_empty() {
            held.remove(held.len() / 2);
            prune(&versions);
            for pin in &held {
                assert_eq!(seen(&versions, pin.seq.0, newest), pin.seq.0);
            }
        }
        let records = versions.purgeable(versions.views.oldest(), usize::MAX);
        assert_eq!(records.len(), versions.history_len());
        assert!(records.len() < 100, "what no view refers to was dropped: {}", records.len());
        versions.forget(&records);
        drop(records);
        assert_eq!((versions.undo_bytes(), versions.spilled_bytes()), (0, 0));
        let shown = versions.resolve(Horizon::LATEST, Some(newest)).expect("without a read");
        assert!(matches!(shown, Shown::Entry));
    }
}

/// An entry is removed before an older transaction that wrote it is pruned.
#[test]
fn links_of_versions_that_have_ended_are_left_alone() {
    let versions = versions(1, usize::MAX);
    let held = versions.views.pin();
    let mut newest = None;
    let written: Vec<_> = (1..=3)
        .map(|seq| {
            let version = write_over(&versions, newest, seq);
            newest = Some(version);
            versions.find(version.trx).expect("after the view")
        })
        .collect();
    let mut dropped = Vec::new();
    written[0].set_pruned();
    versions.end_chain(&written[2], newest.expect("written").undo, &mut dropped);
    assert_eq!(dropped.len(), 1, "the first one was pruned");
    versions.drop_pruned(&mut dropped);
    versions.shorten(&written[1], &versions.views.in_use(), &mut dropped);
    assert_eq!(written[1].link(0).expect("it replaced the first one").seq, None);
    drop(held);
}

#[test]
fn only_versions_between_views_are_freed() {
    let versions = versions(3, usize::MAX);
    let mut newest = None;
    let pins: Vec<_> = (1..=100)
        .filter_map(|seq| {
            newest = Some(write_over(&versions, newest, seq));
            [20, 50, 51].contains(&seq).then(|| versions.views.pin())
        })
        .collect();
    prune(&versions);
    // 21, 51 and 52 replaced versions that the views see.
    let kept: Vec<_> = versions.purgeable(CommitSeq(100), usize::MAX);
    let mut kept: Vec<_> =
        kept.iter().filter(|record| record.undo_bytes() > 0).map(|record| record.state()).collect();
    kept.sort_by_key(|state| format!("{state:?}"));
    let committed = |seq| TrxState::Committed(CommitSeq(seq));
    assert_eq!(kept, [21, 51, 52].map(committed));
    for pin in &pins {
        assert_eq!(seen(&versions, pin.seq.0, newest.expect("written")), pin.seq.0);
    }
}
