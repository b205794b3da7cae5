//! The part of the log that is kept for the archive, timelines, and copies that are extended from an archive.

mod support;

use std::path::Path;
use std::sync::Arc;

use cohort_base::Lsn;
use cohort_log::{
    Extension, Log, LogCopy, LogError, LogFile, LogOptions, Opened, Record, Recovery, Timeline,
};
use cohort_vfs::{MemFs, OpenMode, SharedFs, World};
use support::{DIR, SEGMENT_BYTES, append, options, payload, read_durable};

const COPY: &str = "/copy";

fn archived_log(fs: &SharedFs) -> Log {
    let options = LogOptions { is_archived: true, ..options() };
    let recovery = Recovery::open(&World::sim(Arc::clone(fs), 1), Path::new(DIR), options).expect("opens");
    recovery.finish().expect("opens for appending")
}

/// Appends records of some segments and makes them durable. Returns the payloads.
fn fill(log: &Log, first: u64) -> Vec<Vec<u8>> {
    let payloads: Vec<_> = (first..first + 40).map(|n| payload(n, 1500)).collect();
    payloads.iter().for_each(|payload| {
        append(log, payload).expect("fits");
    });
    log.flush().expect("flushes");
    payloads
}

#[test]
fn checkpoints_and_starts_keep_what_is_not_archived() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let log = archived_log(&fs);
    assert_eq!(log.begin_archive().expect("begins"), Lsn(0));
    let mut all = fill(&log, 0);
    let middle = log.durable_end();
    all.extend(fill(&log, 40));
    log.checkpoint(log.durable_end(), b"").expect("checkpoint");
    assert_eq!(read_durable(&log, Lsn(0)).expect("kept"), all);
    drop(log);
    // A crash, and a clean stop.
    for is_clean in [false, true] {
        let log = archived_log(&fs);
        assert_eq!(log.begin_archive().expect("goes on"), Lsn(0), "clean {is_clean}");
        assert_eq!(read_durable(&log, Lsn(0)).expect("kept"), all, "clean {is_clean}");
        if is_clean {
            log.close().expect("closes");
        }
    }
    let log = archived_log(&fs);
    log.set_archived(Some(middle)).expect("released");
    assert!(matches!(log.read(Lsn(0)), Err(LogError::Released { .. })));
    assert_eq!(read_durable(&log, middle).expect("kept"), all[40..]);
    drop(log);
    // After a crash the mark on disk has the segments that were kept.
    let log = archived_log(&fs);
    let from = log.begin_archive().expect("goes on");
    assert!(from <= middle && from.0 + SEGMENT_BYTES > middle.0, "{from} of {middle}");
    log.set_archived(None).expect("given up");
    assert!(log.read(middle).is_err());
    assert_eq!(log.begin_archive().expect("begins again"), log.durable_end());
    drop(log);
    // Without an archive nothing is kept for it.
    let recovery = Recovery::open(&World::sim(Arc::clone(&fs), 1), Path::new(DIR), options()).expect("opens");
    let log = recovery.finish().expect("opens for appending");
    fill(&log, 80);
    log.checkpoint(log.durable_end(), b"").expect("checkpoint");
    assert_eq!(log.archived(), None);
    assert!(log.read(from).is_err());
}

#[test]
fn a_lost_segment_of_the_archive_is_no_reason_to_refuse_the_start() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let log = archived_log(&fs);
    log.begin_archive().expect("begins");
    fill(&log, 0);
    log.checkpoint(log.durable_end(), b"").expect("checkpoint");
    log.close().expect("closes");
    drop(log);
    fs.remove(&Path::new(DIR).join("log.000002")).expect("lost");
    let log = archived_log(&fs);
    assert_eq!(log.begin_archive().expect("begins again"), log.durable_end());
}

/// Receiver of a copy in another directory.
struct ToDir<'f>(&'f SharedFs);

impl LogCopy<LogError> for ToDir<'_> {
    fn record(&mut self, _: &Record<'_>) -> Result<(), LogError> {
        Ok(())
    }

    fn write(&mut self, file: &LogFile<'_>) -> Result<(), LogError> {
        let path = Path::new(COPY).join(&file.name);
        let to = self.0.open(&path, OpenMode::CreateOrOpen).expect("created");
        to.write_at(file.bytes, file.offset).expect("written");
        Ok(())
    }
}

/// Returns the bytes of the stream from an LSN on.
fn stream(log: &Log, from: Lsn) -> Vec<u8> {
    let (mut reader, mut bytes) = (log.read(from).expect("kept"), Vec::new());
    while reader.next().expect("whole").is_some() {
        bytes.extend_from_slice(reader.last_bytes());
    }
    bytes
}

#[test]
fn a_copy_is_extended_over_restarts_of_its_source_and_begins_a_timeline() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let world = World::sim(Arc::clone(&fs), 1);
    let log = archived_log(&fs);
    log.begin_archive().expect("begins");
    let mut all = fill(&log, 0);
    let mut pin = log.pin();
    fs.create_dir_all(Path::new(COPY)).expect("created");
    let mut to = ToDir(&fs);
    pin.copy(Lsn(u64::MAX), u64::MAX, &mut to).expect("copied");
    pin.finish(b"payload".to_vec(), &mut to).expect("copied");
    let cut = pin.position();
    drop(pin);
    all.extend(fill(&log, 40));
    drop(log);
    // Records of three generations, one of which did not end cleanly.
    let log = archived_log(&fs);
    all.extend(fill(&log, 80));
    log.close().expect("closes");
    drop(log);
    let log = archived_log(&fs);
    all.extend(fill(&log, 120));
    let bytes = stream(&log, cut);

    let dir = Path::new(COPY);
    let mut extension = Extension::open(&world, dir).expect("opens").expect("a copy");
    assert_eq!((extension.end(), extension.identity()), (cut, log.identity()));
    assert_eq!(extension.record(cut, &bytes[8..]), None, "not the beginning of a record");
    assert_eq!(extension.record(Lsn(cut.0 + 8), &bytes), None, "another LSN");
    let first = extension.record(cut, &bytes).expect("a record");
    assert_eq!(first.payload, all[40]);
    let (a, b) = bytes.split_at((first.end.0 - cut.0) as usize);
    extension.append(a).expect("appended");
    extension.append(b).expect("appended");
    let end = extension.end();
    assert_eq!(end, log.durable_end());
    extension.finish(b"payload".to_vec()).expect("durable");

    let mut recovery = Recovery::open(&world, dir, options()).expect("opens");
    assert_eq!((recovery.opened(), recovery.checkpoint()), (Opened::Clean, (Lsn(0), &b"payload"[..])));
    let mut found = Vec::new();
    while let Some(record) = recovery.next().expect("whole") {
        found.push(record.payload.to_vec());
    }
    assert_eq!(found, all);
    let opened = recovery.finish().expect("opens for appending");
    let timelines = opened.timelines();
    assert_eq!(timelines[0], Timeline { number: 1, from: Lsn(0) });
    assert_eq!((timelines.len(), timelines[1].from), (2, end));
    drop(opened);
    assert!(Extension::open(&world, dir).expect("opens").is_none(), "a server has opened it");
    // It is no copy any more: a second start begins no timeline.
    let opened = Recovery::open(&world, dir, options()).expect("opens").finish().expect("opens");
    assert_eq!(opened.timelines(), timelines);
}

#[test]
fn a_cut_takes_the_mark_with_it_and_an_undecided_end_no_timeline() {
    for is_decided in [true, false] {
        let fs: SharedFs = Arc::new(MemFs::new());
        let log = archived_log(&fs);
        log.begin_archive().expect("begins");
        fill(&log, 0);
        log.close().expect("closes");
        drop(log);
        let log = archived_log(&fs);
        log.set_archived(Some(log.durable_end())).expect("released");
        log.close().expect("closes");
        drop(log);
        // The archive has all of it, and its last record is cut off.
        let options = LogOptions { is_archived: true, ..options() };
        let machine = World::sim(Arc::clone(&fs), 1);
        let mut recovery = Recovery::open(&machine, Path::new(DIR), options).expect("opens");
        let mut last = Lsn(0);
        while let Some(record) = recovery.next().expect("whole") {
            last = record.lsn;
        }
        match is_decided {
            true => recovery.cut_at(last),
            false => recovery.cut_undecided_at(last),
        }
        let log = recovery.finish().expect("opens for appending");
        assert_eq!(log.durable_end(), last);
        assert_eq!(log.begin_archive().expect("goes on"), last, "not after the end of the log");
        let timelines = log.timelines();
        assert_eq!(timelines.len(), if is_decided { 2 } else { 1 }, "{timelines:?}");
        assert!(timelines.iter().all(|timeline| timeline.from <= last));
    }
}
