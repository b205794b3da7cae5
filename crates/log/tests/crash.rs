//! Crash tests: a crash at every operation that changes the disk, and damage at every byte. `CRASH_SEEDS=100`
//! explores longer.

mod support;

use std::path::Path;
use std::sync::Arc;

use cohort_base::Lsn;
use cohort_log::{LogError, Opened};
use cohort_vfs::{Fault, FaultFs, Fs, MemFs, OpenMode, Rng, SeededRng, SharedFs};
use proptest::prelude::*;
use support::{DIR, append, open, options, payload, recovery};

/// The workload's knowledge when it ends or the machine crashes.
#[derive(Default)]
struct Model {
    /// Records with numbers below this were acknowledged by a flush.
    flushed: u64,
    /// Records with numbers below this were appended.
    appended: u64,
    /// Start of each appended record.
    starts: Vec<Lsn>,
    /// Numbers of the last acknowledged checkpoint, and of the last one attempted.
    checkpoint_done: u64,
    checkpoint_tried: u64,
}

/// Runs random appends, flushes, checkpoints and restarts, until an error.
fn workload(fs: &SharedFs, seed: u64, model: &mut Model) -> Result<(), LogError> {
    let rng = SeededRng::new(seed);
    let (mut log, _) = open(fs)?;
    for _ in 0..45 {
        match rng.below(12) {
            0..7 => {
                let bytes = payload(model.appended, rng.below(4000) as usize);
                model.starts.push(append(&log, &bytes)?.start);
                model.appended += 1;
            }
            7..10 => {
                log.flush()?;
                model.flushed = model.appended;
            }
            10 if model.flushed > 0 => {
                let number = model.checkpoint_done + rng.below(model.flushed - model.checkpoint_done);
                model.checkpoint_tried = number;
                log.checkpoint(model.starts[number as usize], &number.to_le_bytes())?;
                model.checkpoint_done = number;
            }
            _ if rng.below(3) == 0 => {
                match rng.below(2) {
                    0 => log.close()?,
                    _ => log.flush().map(|_| ())?,
                }
                model.flushed = model.appended;
                drop(log);
                log = open(fs)?.0;
            }
            _ => {}
        }
    }
    log.flush()?;
    model.flushed = model.appended;
    Ok(())
}

/// Checks that all acknowledged records are in the log, and that it contains only appended records, in order.
fn check(fs: &SharedFs, model: &Model, context: &str) {
    let mut recovery = match recovery(fs) {
        Ok(recovery) => recovery,
        Err(e) => panic!("{context}: {e}"),
    };
    let (from, state) = recovery.checkpoint();
    let mut next = match state.try_into() {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    };
    assert!(next == model.checkpoint_done || next == model.checkpoint_tried, "{context}: checkpoint {next}");
    assert!(model.starts.get(next as usize).is_none_or(|&start| start == from), "{context}");
    loop {
        match recovery.next() {
            Ok(Some(record)) => {
                let number = u64::from_le_bytes(record.payload[..8].try_into().expect("8 bytes"));
                assert_eq!(number, next, "{context}: order");
                assert_eq!(record.payload, payload(number, record.payload.len()), "{context}");
                next += 1;
            }
            Ok(None) => break,
            Err(e) => panic!("{context}: {e}"),
        }
    }
    assert!(next >= model.flushed, "{context}: {next} records found, {} acknowledged", model.flushed);
    assert!(next <= model.appended, "{context}: records from nowhere");
    recovery.finish().unwrap_or_else(|e| panic!("{context}: {e}"));
}

#[test]
fn crash_at_every_operation() {
    let mut crashes = 0;
    let seeds = std::env::var("CRASH_SEEDS").map_or(5, |n| n.parse().expect("a number"));
    for seed in 0..seeds {
        for k in 0.. {
            let mem = MemFs::new();
            let faults = FaultFs::new(Arc::new(mem.clone()));
            faults.set(Fault::CrashAt(k));
            let mut model = Model::default();
            let result = workload(&(Arc::new(faults.clone()) as SharedFs), seed, &mut model);
            if !faults.crashed() {
                result.expect("without a crash nothing fails");
                break;
            }
            crashes += 1;
            for crash_seed in 0..3 {
                let after: SharedFs = Arc::new(mem.crash_clone(crash_seed * 1000 + k));
                check(&after, &model, &format!("seed {seed}, k {k}, crash seed {crash_seed}"));
            }
        }
    }
    assert!(crashes > 200, "{crashes}");
}

#[test]
fn crash_again_while_recovering() {
    for seed in 0..3 {
        for k in (0..).step_by(7) {
            let mem = MemFs::new();
            let faults = FaultFs::new(Arc::new(mem.clone()));
            faults.set(Fault::CrashAt(k));
            let mut model = Model::default();
            let _ = workload(&(Arc::new(faults.clone()) as SharedFs), seed, &mut model);
            if !faults.crashed() {
                break;
            }
            for again in 0.. {
                let mem = mem.crash_clone(k);
                let faults = FaultFs::new(Arc::new(mem.clone()));
                faults.set(Fault::CrashAt(again));
                let _ = open(&(Arc::new(faults.clone()) as SharedFs));
                if !faults.crashed() {
                    break;
                }
                let after: SharedFs = Arc::new(mem.crash_clone(again));
                check(&after, &model, &format!("seed {seed}, k {k}, again {again}"));
            }
        }
    }
}

/// Makes a log of a few flushes that crosses a segment border; returns the records.
fn small_log(fs: &SharedFs, clean: bool) -> Vec<Vec<u8>> {
    let (log, _) = open(fs).expect("opens");
    let mut all = Vec::new();
    for n in 0..18 {
        let bytes = payload(n, 900);
        append(&log, &bytes).expect("fits");
        all.push(bytes);
        if n % 2 == 1 {
            log.flush().expect("flushes");
        }
    }
    if clean {
        log.close().expect("closes");
    }
    all
}

fn segment(number: u64) -> std::path::PathBuf {
    Path::new(DIR).join(format!("log.{number:06}"))
}

fn flip(fs: &SharedFs, path: &Path, at: u64, bits: u8) {
    let file = fs.open(path, OpenMode::Write).expect("opens");
    let mut byte = [0];
    file.read_at(&mut byte, at).expect("reads");
    file.write_at(&[byte[0] ^ bits], at).expect("writes");
}

fn read_error(fs: &SharedFs) -> Option<LogError> {
    match recovery(fs) {
        Ok(mut recovery) => loop {
            match recovery.next() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(e) => break Some(e),
            }
        },
        Err(e) => Some(e),
    }
}

#[test]
fn every_flipped_byte_is_refused_after_a_clean_stop_and_before_the_last_flush() {
    for clean in [true, false] {
        let mem = MemFs::new();
        let fs: SharedFs = Arc::new(mem.clone());
        let all = small_log(&fs, clean);
        let record = (32 + 904) as u64;
        let end = all.len() as u64 * record - if clean { 0 } else { 2 * record };
        let capacity = support::SEGMENT_BYTES - 4096;
        assert!(end > capacity, "over a border");
        for at in 0..end + 2 * 4096 {
            // The headers of both segments, and the stream.
            let (number, offset) = match at {
                _ if at < 4096 => (1, at),
                _ if at < 8192 => (2, at - 4096),
                _ => ((at - 8192) / capacity + 1, 4096 + (at - 8192) % capacity),
            };
            flip(&fs, &segment(number), offset, 1 << (at % 8));
            let error = read_error(&fs);
            let Some(LogError::Corrupt { file, .. }) = &error else {
                panic!("clean {clean}, byte {at}: {error:?}");
            };
            assert!(file.starts_with(DIR), "{error:?}");
            flip(&fs, &segment(number), offset, 1 << (at % 8));
        }
        assert!(read_error(&fs).is_none());
    }
}

#[test]
fn a_missing_segment_or_control_file_is_refused() {
    let names = [segment(1), segment(2), Path::new(DIR).join("log.control")];
    for name in names {
        let fs: SharedFs = Arc::new(MemFs::new());
        small_log(&fs, true);
        fs.remove(&name).expect("removes");
        let error = read_error(&fs);
        assert!(matches!(error, Some(LogError::Corrupt { .. })), "{}: {error:?}", name.display());
    }
}

#[test]
fn a_last_flush_torn_at_any_sector_is_repaired() {
    let before = MemFs::new();
    let fs: SharedFs = Arc::new(before.clone());
    let mut all = small_log(&fs, false);
    let before = before.kill_clone();
    let kept = all.len();
    // The same log with one more flush, of several records over several blocks.
    let after = before.kill_clone();
    let fs: SharedFs = Arc::new(after.clone());
    let (log, _) = open(&fs).expect("opens");
    for n in 0..6 {
        all.push(payload(100 + n, 900));
        append(&log, &all[kept + n as usize]).expect("fits");
    }
    let stable = after.kill_clone();
    log.flush().expect("flushes");
    drop(log);

    let path = segment(2);
    let read = |fs: &MemFs| {
        let file = fs.open(&path, OpenMode::Read).expect("opens");
        let mut bytes = vec![0; file.len().expect("len") as usize];
        file.read_at(&mut bytes, 0).expect("reads");
        bytes
    };
    let (old, new) = (read(&stable), read(&after));
    let changed: Vec<usize> =
        (0..old.len()).step_by(512).filter(|&at| old[at..at + 512] != new[at..at + 512]).collect();
    assert!(changed.len() > 8);
    let rng = SeededRng::new(5);
    for cut in 0..=changed.len() * 4 {
        let torn = stable.kill_clone();
        let fs: SharedFs = Arc::new(torn);
        let file = fs.open(&path, OpenMode::Write).expect("opens");
        for (i, &at) in changed.iter().enumerate() {
            // First every prefix, then random subsets.
            let keep = if cut <= changed.len() { i < cut } else { rng.below(2) == 0 };
            if keep {
                file.write_at(&new[at..at + 512], at as u64).expect("writes");
            }
        }
        let (log, found) = open(&fs).expect("a torn tail is repaired");
        assert!(found.len() >= kept && found[..] == all[..found.len()], "cut {cut}");
        assert!(cut != changed.len() || found.len() == all.len(), "nothing torn, nothing lost");
        append(&log, b"goes on").expect("fits");
        log.flush().expect("flushes");
        drop(log);
        let (_, again) = open(&fs).expect("opens");
        assert_eq!(again.len(), found.len() + 1, "what the torn tail held does not come back");
    }
}

#[test]
fn records_of_a_torn_tail_never_return_after_a_checkpoint() {
    // Two records of one block each: the first is lost, the second stays on the disk. Then a record of the
    // same size is written in place of the first, and a checkpoint is set after it. Recovery starts exactly
    // at the old second record.
    const BYTES: usize = 4096 - 32;
    let fs: SharedFs = Arc::new(MemFs::new());
    let (log, _) = open(&fs).expect("opens");
    append(&log, &payload(0, BYTES)).expect("fits");
    let second = append(&log, &payload(1, BYTES)).expect("fits");
    log.flush().expect("flushes");
    drop(log);
    flip(&fs, &segment(1), 4096 + 40, 1);
    let (log, found) = open(&fs).expect("damage in the last flush looks like a torn tail");
    assert!(found.is_empty());
    assert_eq!(append(&log, &payload(7, BYTES)).expect("fits").end, second.start);
    log.flush().expect("flushes");
    log.checkpoint(second.start, b"").expect("checkpoint");
    drop(log);
    let mut old = [0; 16];
    let file = fs.open(&segment(1), OpenMode::Read).expect("opens");
    file.read_at(&mut old, 4096 + second.start.0).expect("reads");
    assert_eq!(old[8..16], second.start.0.to_le_bytes(), "the old record is still there");
    let mut recovery = recovery(&fs).expect("opens");
    assert_eq!(recovery.opened(), Opened::AfterCrash);
    assert!(recovery.next().expect("reads").is_none());
}

#[test]
fn a_second_opener_is_refused() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let (_log, _) = open(&fs).expect("opens");
    assert!(matches!(recovery(&fs), Err(LogError::InUse { .. })));
}

#[test]
fn the_stored_segment_size_wins() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let all = small_log(&fs, true);
    let options = cohort_log::LogOptions { segment_bytes: 1 << 20, ..options() };
    let world = cohort_vfs::World::sim(fs, 1);
    let mut recovery = cohort_log::Recovery::open(&world, Path::new(DIR), options).expect("opens");
    let mut count = 0;
    while recovery.next().expect("reads").is_some() {
        count += 1;
    }
    assert_eq!(count, all.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever bytes the files contain, the result is an error, or a prefix of the appended records, but
    /// never a panic.
    #[test]
    fn garbage_gives_errors_or_a_prefix(
        patches in prop::collection::vec((0u64..3, 0u64..20_000, prop::collection::vec(any::<u8>(), 1..600)), 1..4),
        clean: bool,
    ) {
        let fs: SharedFs = Arc::new(MemFs::new());
        let all = small_log(&fs, clean);
        for (file, at, bytes) in patches {
            let path = if file == 0 { Path::new(DIR).join("log.control") } else { segment(file) };
            fs.open(&path, OpenMode::Write).expect("opens").write_at(&bytes, at).expect("writes");
        }
        if let Ok((_, found)) = open(&fs) {
            prop_assert_eq!(&found[..], &all[..found.len()]);
            prop_assert!(!clean || found.len() == all.len());
        }
    }
}
