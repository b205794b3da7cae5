use std::sync::Arc;

use cohort_vfs::{Fs, MemFs};

use super::*;
use crate::history::{Reading, TopStatement, bin_of};

const BEGIN_US: u64 = 1_700_000_000_000_000;

fn schema() -> Schema {
    Schema { counters: vec!["a", "b"], gauges: vec!["g"], histograms: vec!["h"] }
}

/// Runs a history for some seconds from a moment on, as a server that was stopped cleanly.
fn run(fs: &SharedFs, schema: Schema, from: u64, seconds: u64) -> (History, Option<String>) {
    let history = History::new(schema);
    let (mut file, mut warning) = HistoryFile::open(Arc::clone(fs), path(), &history);
    for second in from..=from + seconds {
        let mut bins = vec![0; super::super::BINS];
        bins[bin_of(50)] = second;
        let reading = Reading {
            wall_us: BEGIN_US + second * 1_000_000,
            monotonic_ns: second * 1_000_000_000,
            counters: vec![second, 10 * second],
            gauges: vec![second],
            histograms: vec![bins],
        };
        let top = || vec![TopStatement { digest: u128::from(second) << 70, calls: 1, ..Default::default() }];
        for (tier, slot) in history.tick(reading, top) {
            let failed = file.put(&history, tier, &slot, second * 1_000_000_000);
            warning = warning.or(failed);
        }
    }
    (history, warning)
}

fn path() -> &'static Path {
    Path::new("/d/history")
}

fn directory() -> (Arc<MemFs>, SharedFs) {
    let fs = Arc::new(MemFs::new());
    fs.create_dir_all(Path::new("/d")).expect("made");
    (Arc::clone(&fs), fs)
}

fn slots(history: &History, tier: usize) -> Vec<(u64, Vec<u64>, usize)> {
    history.read(tier, 0, |slot| (slot.begin_us, slot.counters.to_vec(), slot.top.len())).slots
}

#[test]
fn slots_survive_a_restart_and_the_time_between_is_a_gap() {
    let (_, fs) = directory();
    let (before, _) = run(&fs, schema(), 0, 200);
    let (after, warning) = run(&fs, schema(), 1000, 130);
    assert_eq!(warning, None);
    let (old, new) = (slots(&before, 1), slots(&after, 1));
    assert_eq!((old.len(), new.len()), (20, 33));
    assert_eq!(new[..20], old[..]);
    assert_eq!(new[20], (BEGIN_US + 1_000_000_000, vec![10, 100], 0));
    assert_eq!(slots(&after, 2)[1], (BEGIN_US + 60_000_000, vec![60, 600], 1));
    assert_eq!(slots(&after, 0).len(), 130, "seconds are not kept");
}

#[test]
fn more_slots_than_places_wrap_around() {
    let (_, fs) = directory();
    run(&fs, schema(), 0, 10 * 1080 + 500);
    let (after, _) = run(&fs, schema(), 50_000, 20);
    let found = slots(&after, 1);
    assert_eq!(found.len(), 1080);
    assert_eq!(found.last().expect("one").0, BEGIN_US + 50_010_000_000);
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn other_series_keep_those_of_the_same_names() {
    let (_, fs) = directory();
    run(&fs, schema(), 0, 60);
    let other = Schema { counters: vec!["new", "b", "a"], gauges: vec![], histograms: vec!["x", "h"] };
    let (after, warning) = run(&fs, other, 100, 0);
    assert_eq!(warning, None);
    let found = after.read(2, 0, |slot| (slot.counters.to_vec(), slot.histograms[1].count()));
    assert_eq!(found.slots, [(vec![0, 600, 60], 60)]);
}

/// Cuts the file at many places and flips bits in many others: the server starts with a part of the history.
#[test]
fn a_damaged_file_costs_slots_or_is_renamed() {
    let (_, original) = directory();
    run(&original, schema(), 0, 300);
    let file = original.open(path(), OpenMode::Read).expect("there");
    let mut bytes = vec![0; file.len().expect("known") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    let whole = 30;
    let header_end = 16 + names_end(&bytes) + 4;
    let mut dice = 1_u64;
    let mut places: Vec<usize> = (0..header_end).collect();
    for _ in 0..300 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        places.push((dice >> 33) as usize % bytes.len());
    }
    for is_cut in [true, false] {
        for place in &places {
            let (_, fs) = directory();
            let mut damaged = bytes.clone();
            match is_cut {
                true => damaged.truncate(*place),
                false => damaged[*place] ^= 1 << (place % 8),
            }
            let copy = fs.open(path(), OpenMode::CreateNew).expect("made");
            copy.write_at(&damaged, 0).expect("written");
            let history = History::new(schema());
            let (_, warning) = HistoryFile::open(Arc::clone(&fs), path(), &history);
            let found = slots(&history, 1);
            let is_header = *place < header_end && !(is_cut && *place == 0);
            assert_eq!(warning.is_some(), is_header, "{place} {is_cut} {warning:?}");
            assert_eq!(fs.exists(Path::new("/d/history.damaged")), is_header, "{place}");
            match is_cut || is_header {
                true => assert!(found.len() <= whole && !is_header || found.is_empty()),
                false => assert!(found.len() >= whole - 1, "{place}: {}", found.len()),
            }
            // What is left is true.
            for (begin_us, counters, _) in found {
                assert_eq!(counters, [10, 100]);
                assert_eq!((begin_us - BEGIN_US) % 10_000_000, 0);
            }
            // The file that was made instead is in order.
            let again = History::new(schema());
            assert_eq!(HistoryFile::open(Arc::clone(&fs), path(), &again).1, None);
        }
    }
}

fn names_end(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[12..16].try_into().expect("four")) as usize
}

#[test]
fn a_file_of_a_newer_format_is_renamed() {
    let (_, fs) = directory();
    run(&fs, schema(), 0, 60);
    let file = fs.open(path(), OpenMode::Write).expect("there");
    file.write_at(&2_u32.to_le_bytes(), 8).expect("written");
    let (_, warning) = run(&fs, schema(), 100, 0);
    assert!(warning.expect("one").contains("its format has version 2"));
}

/// A file system whose writes fail while it is full.
#[test]
fn a_full_disk_gives_one_warning_and_is_retried_after_an_hour() {
    let (memory, fs) = directory();
    let history = History::new(schema());
    let (mut file, warning) = HistoryFile::open(Arc::clone(&fs), path(), &history);
    assert_eq!(warning, None);
    let slot = |second: u64| {
        let reading = |second: u64| Reading {
            wall_us: BEGIN_US + second * 1_000_000,
            monotonic_ns: second * 1_000_000_000,
            ..Reading::default()
        };
        let mut done = Vec::new();
        (second..second + 11).for_each(|second| done.extend(history.tick(reading(second), Vec::new)));
        done.into_iter().find(|(tier, _)| *tier == 1).expect("ten seconds").1
    };
    let first = slot(0);
    memory.set_capacity_bytes(1);
    let mut put = |slot: &Slot, now_s: u64| file.put(&history, 1, slot, now_s * 1_000_000_000);
    let mut far = first.clone();
    // A place that the file does not reach yet.
    far.number = 500;
    assert!(put(&far, 10).expect("a warning").contains("Cannot write"));
    assert_eq!(put(&far, 20), None);
    assert!(put(&far, 3620).is_some(), "still full");
    memory.set_capacity_bytes(u64::MAX);
    assert_eq!(put(&far, 3630), None, "not before an hour");
    assert_eq!(put(&first, 2 * 3620), None);
    let again = History::new(schema());
    assert_eq!(HistoryFile::open(fs, path(), &again).1, None);
    assert_eq!(slots(&again, 1).len(), 1);
}
