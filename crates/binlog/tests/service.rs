//! The files in service: background thread, readers of the live file, purge, and MariaDB's own tool.

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cohort_base::BinlogPos;
use cohort_binlog::{
    BinlogError, BinlogFileWriter, BinlogFileWriterOptions, BinlogFiles, EventReader, OpenOptions,
    VerifyScope,
};
use cohort_vfs::{Fault, FaultFs, Fs, MemFs, OpenMode, SharedFs};
use support::{
    DIR, Log, Server, binlog_files_in_dir, check_files, name, path, read_file, recover, spill_dir, start,
};

fn fresh() -> SharedFs {
    let fs = MemFs::new();
    fs.create_dir_all(DIR.as_ref()).expect("makes a directory");
    Arc::new(fs)
}

/// A server with a background thread.
fn threaded(fs: &SharedFs, log: &mut Log, options: BinlogFileWriterOptions) -> Server {
    let mut server = start(fs, log).expect("starts");
    let spill = spill_dir(fs).expect("opens");
    let (files, _) = recover(fs, log, &spill).expect("recovers");
    server.files = Arc::new(BinlogFileWriter::start(files, spill, options));
    server
}

#[test]
fn the_thread_writes_by_itself_and_callers_catch_up() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = threaded(&fs, &mut log, BinlogFileWriterOptions::default());
    for round in 0..50 {
        server.transaction(&mut log, 10).expect("writes");
        if round % 10 == 0 {
            let end = log.end.expect("has an end");
            server.files.catch_up(end, 0).expect("catches up");
            assert!(read_file(&fs, &path(end.file)).len() as u64 >= end.offset);
        }
    }
    let end = log.end.expect("has an end");
    for _ in 0..2000 {
        if server.files.written() == Some(end) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.files.written(), Some(end), "the thread writes unasked");
    check_files(&fs, &log);
    server.stop(&mut log).expect("stops");
    check_files(&fs, &log);
}

#[test]
fn without_space_the_caller_does_not_wait_and_nothing_is_lost() {
    let faulty = FaultFs::new(fresh());
    let fs: SharedFs = Arc::new(faulty.clone());
    let mut log = Log::default();
    let options = BinlogFileWriterOptions {
        delay: Duration::from_millis(1),
        queue_bytes_max: 2000,
        retry: Duration::from_millis(5),
        ..BinlogFileWriterOptions::default()
    };
    let mut server = threaded(&fs, &mut log, options);
    server.files.catch_up(log.end.expect("has an end"), 0).expect("catches up");
    faulty.set(Fault::FullFrom(faulty.ops()));
    // The caller is a leader: if it waited, all acknowledgements would wait with it.
    for _ in 0..200 {
        server.transaction(&mut log, 40).expect("is handed over");
    }
    assert!(server.files.backlog_bytes() > options.queue_bytes_max);
    assert!(server.files.is_without_space(), "new writes are refused until it has gone");
    faulty.set(Fault::None);
    server.files.catch_up(log.end.expect("has an end"), 0).expect("catches up");
    check_files(&fs, &log);
}

#[test]
fn a_reader_of_the_live_file_goes_on_where_it_stood() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    server.files.step().expect("writes");
    let mut reader = EventReader::open(&fs, &path(1)).expect("opens");
    let mut seen = 0;
    for _ in 0..5 {
        while let Some(raw) = reader.next_event().expect("whole") {
            assert_eq!(u64::from(raw.header.log_pos), raw.end());
            seen += 1;
        }
        assert_eq!(reader.offset(), log.end.expect("has an end").offset);
        server.transaction(&mut log, 2).expect("writes");
        assert!(reader.next_event().expect("whole").is_none(), "nothing is there before it is written");
        server.files.step().expect("writes");
    }
    assert_eq!(seen, 3 + 4 * 5);
    let mut limited = EventReader::open(&fs, &path(1)).expect("opens");
    limited.seek(325);
    limited.set_limit(400);
    while limited.next_event().expect("whole").is_some() {}
    assert_eq!(limited.offset(), 367, "the event over the limit is not there yet");
}

/// Dumps read up to this position without the writer's lock, and treat a file that ends inside an event as
/// damaged.
#[test]
fn the_reported_position_is_the_end_of_a_transaction() {
    let fs = fresh();
    let mut log = Log::default();
    let options = BinlogFileWriterOptions { delay: Duration::ZERO, ..BinlogFileWriterOptions::default() };
    let mut server = threaded(&fs, &mut log, options);
    let mut ends = vec![log.end];
    let files = Arc::clone(&server.files);
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut seen = vec![files.written()];
            while !is_over.load(Ordering::Relaxed) {
                let written = files.written();
                if seen.last() != Some(&written) {
                    seen.push(written);
                }
                // Callers that need the files get them between two batches.
                files.with_files(|_| ());
            }
            seen
        });
        for _ in 0..30 {
            // More than the buffer holds, in several slices.
            server.transaction(&mut log, 100_000).expect("no faults");
            ends.push(log.end);
        }
        let end = log.end.expect("something was written");
        files.catch_up(end, 0).expect("no faults");
        is_over.store(true, Ordering::Relaxed);
        looker.join().expect("no panic")
    });
    assert!(seen.len() > 5, "{} places", seen.len());
    for place in &seen[1..] {
        assert!(ends.contains(place), "{place:?} is inside a transaction");
    }
}

#[test]
fn purge_keeps_the_floor_and_the_last_file() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    while log.model.len() < 6 {
        server.transaction(&mut log, 40).expect("writes");
    }
    server.checkpoint(&mut log).expect("syncs");
    let sizes = server.files.with_files(|files| files.sizes()).expect("lists");
    let expected: Vec<u64> = log.model.values().map(|bytes| bytes.len() as u64).collect();
    assert_eq!(sizes.iter().map(|size| size.bytes).collect::<Vec<_>>(), expected);
    assert_eq!(sizes[5].name, "binlog.000006");

    server.files.with_files(|files| {
        assert_eq!(files.find("binlog.000003").expect("there"), 3);
        assert_eq!(files.purge_to(3, 2).expect("purges"), [1], "the floor is 2");
        assert_eq!(purge_before(files, 1000, 6), [], "files of that second stay");
        assert!(matches!(files.find("binlog.000001"), Err(BinlogError::UnknownFile { .. })));
        assert_eq!(purge_before(files, 1001, 4), [2, 3]);
        assert_eq!(files.purge_to(99, 99).expect("purges"), [4, 5], "the last file stays");
        assert!(!files.state_at_start(6).expect("reads").is_empty());
    });
    assert_eq!(read_file(&fs, &name().index_path()), b"./binlog.000006\n");
    // The log still names files that were purged.
    log.checkpoint = (BinlogPos::default(), 0);
    let spill = spill_dir(&fs).expect("opens");
    let (files, recovered) = recover(&fs, &log, &spill).expect("recovers");
    assert_eq!(files.numbers(), [6]);
    assert_eq!(recovered.end, log.end);
}

#[test]
fn a_start_removes_what_a_purge_that_was_cut_off_has_left() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    while log.model.len() < 4 {
        server.transaction(&mut log, 40).expect("writes");
    }
    server.checkpoint(&mut log).expect("syncs");
    let index = fs.open(&name().index_path(), OpenMode::Write).expect("opens");
    index.set_len(0).expect("cuts");
    index.write_at(b"./binlog.000003\n./binlog.000004\n", 0).expect("writes");
    let spill = spill_dir(&fs).expect("opens");
    assert_eq!(binlog_files_in_dir(&fs), 4);
    let (files, _) = recover(&fs, &log, &spill).expect("recovers");
    assert_eq!(files.numbers(), [3, 4]);
    assert_eq!(binlog_files_in_dir(&fs), 2);
}

#[test]
fn a_hole_between_file_and_log_is_refused() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    server.transaction(&mut log, 3).expect("writes");
    server.checkpoint(&mut log).expect("syncs");
    server.transaction(&mut log, 3).expect("writes");
    let options = OpenOptions { verify: VerifyScope::Tail, synced_to: BinlogPos::default() };
    let (mut files, _) = BinlogFiles::open(fs.clone(), name(), options).expect("opens");
    let end = log.checkpoint.0;
    let beyond = BinlogPos { offset: end.offset + 10, ..end };
    assert!(matches!(files.apply_chunk(beyond, b"x"), Err(BinlogError::Gap { .. })));
    let no_file = BinlogPos { file: 9, offset: 10 };
    assert!(matches!(files.apply_chunk(no_file, b"x"), Err(BinlogError::Gap { .. })));
}

/// Skipped if the tool is not installed.
#[test]
fn mariadb_binlog_reads_the_files() {
    let fs = fresh();
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    for rows in [1, 2, 300, 5, 100, 2000, 3] {
        server.transaction(&mut log, rows).expect("writes");
    }
    server.stream.set_checksum(cohort_binlog::Checksum::None, &mut server.out, 1000);
    server.transaction(&mut log, 2).expect("writes");
    server.files.step().expect("writes");
    assert!(log.model.len() >= 4);
    let dir = tempdir();
    for &file in log.model.keys() {
        let copy = dir.join(name().file(file));
        std::fs::write(&copy, read_file(&fs, &path(file))).expect("writes");
        let run = Command::new("mariadb-binlog")
            .args(["--no-defaults", "-v", "--verify-binlog-checksum"])
            .arg(&copy)
            .output();
        let Ok(output) = run else { return };
        let (text, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{err}");
        assert!(err.is_empty(), "{err}");
        if file == 1 {
            assert!(text.contains("### INSERT INTO `test`.`t1`"), "{text}");
            assert!(text.contains("GTID 0-7-1 trans"), "{text}");
        }
    }
    std::fs::remove_dir_all(&dir).expect("removes");
}

fn tempdir() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("cohort-binlog-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("makes a directory");
    assert!(Path::new(&dir).exists());
    dir
}

/// Purges like PURGE BINARY LOGS BEFORE.
fn purge_before(files: &mut BinlogFiles, time: u32, floor: u32) -> Vec<u32> {
    let keep_from = files.first_closed_at(time).expect("reads");
    files.purge_to(keep_from, floor).expect("purges")
}
