//! Tests of append, flush, read and close without a crash.

mod support;

use std::path::Path;
use std::sync::Arc;

use cohort_base::Lsn;
use cohort_log::{FullCause, Log, LogError, LogOptions, Opened, Preallocation, RecordKind, Recovery};
use cohort_vfs::{Fault, FaultFs, MemFs, SharedFs, World};
use support::{DIR, append, open, options, payload, read_durable, recovery};

fn mem() -> (MemFs, SharedFs) {
    let mem = MemFs::new();
    (mem.clone(), Arc::new(mem))
}

#[test]
fn records_come_back_in_order_over_segments_and_restarts() {
    let (_, fs) = mem();
    let mut all = Vec::new();
    for start in 0..3 {
        let (log, found) = open(&fs).expect("opens");
        assert_eq!(found, all);
        for n in 0..50 {
            let bytes = payload(start * 50 + n, (n * n * 7 % 3000) as usize);
            append(&log, &bytes).expect("fits");
            all.push(bytes);
        }
        assert!(log.durable_end() < log.appended());
        assert_eq!(log.flush().expect("flushes"), log.appended());
        assert_eq!(read_durable(&log, Lsn(0)).expect("reads"), all);
        let stats = log.stats();
        assert_eq!((stats.flushes, stats.records), (1, 50), "{stats:?}");
        log.close().expect("closes");
    }
    assert_eq!(recovery(&fs).expect("opens").opened(), Opened::Clean);
}

#[test]
fn a_flush_is_one_write_and_one_sync_and_only_when_there_is_something() {
    let (_, fs) = mem();
    let (log, _) = open(&fs).expect("opens");
    append(&log, b"one").expect("fits");
    append(&log, b"two").expect("fits");
    log.flush().expect("flushes");
    log.flush().expect("nothing to do");
    assert_eq!((log.stats().flushes, log.stats().syncs, log.stats().written_bytes), (1, 1, 4096));
}

#[test]
fn rooms_are_given_back() {
    let (_, fs) = mem();
    let (log, _) = open(&fs).expect("opens");
    for _ in 0..1000 {
        drop(log.reserve(10_000).expect("the last one was given back"));
        append(&log, b"x").expect("fits");
    }
    assert!(matches!(log.reserve(65_537), Err(LogError::RecordTooLarge { .. })));
}

#[test]
fn the_cap_refuses_until_a_checkpoint() {
    let (_, fs) = mem();
    let (log, _) = open(&fs).expect("opens");
    let full = loop {
        if let Err(e) = append(&log, &[1; 10_000]) {
            break e;
        }
    };
    assert!(matches!(full, LogError::Full(FullCause::Cap)), "{full}");
    let at = log.flush().expect("flushes");
    log.checkpoint(at, b"state").expect("checkpoint");
    append(&log, b"room again").expect("fits");
    log.flush().expect("flushes");
    assert!(log.stats().segments_created < 100);
    assert!(matches!(log.read(Lsn(0)), Err(LogError::Released { .. })));
    drop(log);
    let recovery = recovery(&fs).expect("opens");
    assert_eq!(recovery.checkpoint(), (at, &b"state"[..]));
    assert_eq!(recovery.opened(), Opened::AfterCrash);
}

#[test]
fn segments_are_recycled() {
    let (mem, fs) = mem();
    let (log, _) = open(&fs).expect("opens");
    for n in 0..200 {
        append(&log, &payload(n, 2000)).expect("fits");
        let at = log.flush().expect("flushes");
        log.checkpoint(at, &[]).expect("checkpoint");
    }
    let stats = log.stats();
    assert!(stats.segments_created <= 5 && stats.segments_recycled > 20, "{stats:?}");
    assert!(cohort_vfs::Fs::list(&mem, Path::new(DIR)).expect("list").len() <= 6);
}

/// Each checkpoint releases more segments than `segments_spare_max`; they are needed until the next one.
#[test]
fn a_steady_load_makes_no_segments_after_its_first_checkpoints() {
    let (mem, fs) = mem();
    let (log, _) = open(&fs).expect("opens");
    let mut most = 0;
    let mut created_by = Vec::new();
    for n in 0..8 {
        for _ in 0..6 * options().segment_bytes / 2000 {
            append(&log, &payload(n, 2000)).expect("fits");
            log.flush().expect("flushes");
        }
        most = most.max(cohort_vfs::Fs::list(&mem, Path::new(DIR)).expect("list").len());
        log.checkpoint(log.durable_end(), &[]).expect("checkpoint");
        created_by.push((log.stats().segments_created, most));
    }
    assert!(options().segments_spare_max < 6);
    assert_eq!(created_by[2], created_by[7], "{created_by:?}");
    // A checkpoint that releases few segments removes the surplus ones.
    append(&log, &payload(0, 2000)).expect("fits");
    log.checkpoint(log.flush().expect("flushes"), &[]).expect("checkpoint");
    let left = cohort_vfs::Fs::list(&mem, Path::new(DIR)).expect("list").len();
    assert!(left <= options().segments_spare_max + 3, "{left}");
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_space() {
    for preallocation in [Preallocation::Inline, Preallocation::Thread] {
        let (mem, fs) = mem();
        let world = World::sim(fs, 1);
        let options = LogOptions { preallocation, ..options() };
        let log = Recovery::open(&world, Path::new(DIR), options).expect("opens").finish().expect("starts");
        mem.set_capacity_bytes((1 << 20) + 70_000);
        let full = loop {
            if let Err(e) = append(&log, &[1; 5000]) {
                break e;
            }
        };
        assert!(matches!(full, LogError::Full(FullCause::Disk)), "{full}");
        log.flush().expect("what was promised is kept");
        assert!(log.reserve(5000).is_err_and(|e| e.is_full()));
        mem.set_capacity_bytes(u64::MAX);
        append(&log, &[2; 5000]).expect("there is space");
        log.close().expect("closes");
    }
}

/// The disk quota is exhausted while a segment is being recycled.
#[test]
fn a_segment_that_could_not_be_used_again_is_there_for_the_next_attempt() {
    let (_, fs) = mem();
    let faults = FaultFs::new(fs);
    let fs: SharedFs = Arc::new(faults.clone());
    let (log, _) = open(&fs).expect("opens");
    for _ in 0..4 * options().segment_bytes / 2000 {
        append(&log, &payload(1, 2000)).expect("fits");
        log.flush().expect("flushes");
    }
    log.checkpoint(log.durable_end(), &[]).expect("checkpoint");
    let created = log.stats().segments_created;
    let full = loop {
        // An append writes nothing except a segment's header.
        faults.set(Fault::ErrorAt(faults.ops(), std::io::ErrorKind::QuotaExceeded));
        if let Err(e) = append(&log, &payload(1, 2000)) {
            break e;
        }
    };
    assert!(matches!(full, LogError::Full(FullCause::Disk)), "{full}");
    faults.set(Fault::None);
    let recycled = log.stats().segments_recycled;
    append(&log, &payload(1, 2000)).expect("there is space");
    assert_eq!(log.stats().segments_created, created);
    assert_eq!(log.stats().segments_recycled, recycled + 1);
}

#[test]
fn a_failed_sync_poisons_for_good() {
    let (_, fs) = mem();
    let faults = FaultFs::new(fs);
    let fs: SharedFs = Arc::new(faults.clone());
    let (log, _) = open(&fs).expect("opens");
    append(&log, b"good").expect("fits");
    let durable = log.flush().expect("flushes");
    append(&log, b"bad").expect("fits");
    faults.set(Fault::ErrorAt(faults.ops() + 1, std::io::ErrorKind::Other));
    assert!(matches!(log.flush(), Err(LogError::Poisoned { .. })));
    assert_eq!(log.durable_end(), durable);
    assert!(matches!(log.flush(), Err(LogError::Poisoned { .. })), "never retried");
    assert!(log.reserve(1).is_err() && log.checkpoint(durable, b"").is_err() && log.close().is_err());
    assert_eq!(read_durable(&log, Lsn(0)).expect("reading goes on"), [b"good"]);
}

#[test]
fn threads_append_and_flush_together() {
    let dir = tempfile::tempdir().expect("tempdir");
    let world = World::real();
    let options = LogOptions {
        segment_bytes: 256 << 10,
        bytes_max: 1 << 30,
        preallocation: Preallocation::Thread,
        ..options()
    };
    let open = || Recovery::open(&world, dir.path(), options.clone()).expect("opens");
    let log = open().finish().expect("starts");
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let log = &log;
            scope.spawn(move || appender(log, thread));
        }
    });
    let stats = log.stats();
    assert_eq!(stats.records, 4 * 300);
    assert!(stats.flushes < stats.records, "flushes are shared: {stats:?}");
    log.close().expect("closes");
    drop(log);

    let mut recovery = open();
    let mut next = [0; 4];
    while let Some(record) = recovery.next().expect("reads") {
        let number = u64::from_le_bytes(record.payload[..8].try_into().expect("8 bytes"));
        let thread = (number >> 32) as usize;
        assert_eq!(number & 0xffff_ffff, next[thread], "each thread's records are in order");
        next[thread] += 1;
    }
    assert_eq!(next, [300; 4]);
}

fn appender(log: &Log, thread: u64) {
    for n in 0..300u64 {
        let bytes = payload(thread << 32 | n, (n * 37 % 5000) as usize);
        let reservation = log.reserve(bytes.len() as u64).expect("fits");
        let span = log.append(reservation, RecordKind(1), &[&bytes]);
        while log.durable_end() < span.end {
            log.flush().expect("flushes");
        }
    }
}

/// Appends records of every size around the borders of blocks and segments, alone and together with others,
/// with segments that hold two blocks or one block, and with zero to two segments preallocated.
#[test]
fn a_record_may_be_larger_than_the_segments_that_are_ready() {
    const RECORD_BYTES_MAX: u64 = 48 << 10;
    for segment_bytes in [8 << 10, 12 << 10] {
        for segments_ahead in [0, 1, 2] {
            for preallocation in [Preallocation::Thread, Preallocation::Inline] {
                let (_, fs) = mem();
                let options = LogOptions {
                    segment_bytes,
                    segments_ahead,
                    record_bytes_max: RECORD_BYTES_MAX,
                    bytes_max: 256 << 10,
                    preallocation,
                    ..options()
                };
                fill_in_every_size(&World::sim(fs, 1), options);
            }
        }
    }
}

fn fill_in_every_size(world: &World, options: LogOptions) {
    let log =
        Recovery::open(world, Path::new(DIR), options.clone()).expect("opens").finish().expect("starts");
    let capacity = options.segment_bytes - 4096;
    let borders = (0..=options.record_bytes_max).step_by(capacity as usize / 2);
    let sizes =
        borders.flat_map(|border| [border.saturating_sub(40), border.saturating_sub(32), border, border + 8]);
    for (n, size) in sizes.filter(|&size| size <= options.record_bytes_max).enumerate() {
        let bytes = payload(n as u64, size as usize);
        let other = log.reserve(100).expect("fits");
        let span = append(&log, &bytes).unwrap_or_else(|e| panic!("{size} bytes: {e}"));
        drop(other);
        log.flush().expect("flushes");
        assert_eq!(read_durable(&log, span.start).expect("reads"), [bytes]);
        log.checkpoint(span.end, &[]).expect("frees");
    }
    log.close().expect("closes");
}
