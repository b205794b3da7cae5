//! Crashes at every operation: after recovery the files have the contents of the log, and the index names
//! them.

mod support;

use std::sync::Arc;

use cohort_binlog::{BinlogError, BinlogWriterStatus, Tail};
use cohort_vfs::{Fault, FaultFs, Fs, MemFs, OpenMode, SharedFs, TraceFs};
use support::{DIR, Log, Stop, check_files, path, recover, spill_dir, start};

/// Small and spilled transactions, file changes, checkpoints, a stop, and a start after it.
fn workload(fs: &SharedFs, log: &mut Log) -> Result<(), Stop> {
    let mut server = start(fs, log)?;
    for round in 0..12u32 {
        server.transaction(log, 3 + round)?;
        if round % 2 == 0 {
            server.files.step()?;
        }
        if round % 3 == 0 {
            server.transaction(log, 120)?; // Spills.
        }
        if round % 5 == 4 {
            server.checkpoint(log)?;
        }
    }
    server.stop(log)?;
    let mut server = start(fs, log)?;
    server.transaction(log, 1)?;
    server.files.step()?;
    Ok(())
}

fn fresh() -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(DIR.as_ref()).expect("makes a directory");
    fs
}

#[test]
fn crash_at_every_operation_and_the_log_completes_the_files() {
    let mut crashes = 0;
    for k in 0.. {
        let disk = fresh();
        let faulty = FaultFs::new(Arc::new(disk.clone()));
        faulty.set(Fault::CrashAt(k));
        let mut log = Log::default();
        let ended = workload(&(Arc::new(faulty.clone()) as SharedFs), &mut log);
        if !faulty.crashed() {
            ended.expect("nothing fails without a crash");
            break;
        }
        crashes += 1;
        for seed in 0..6 {
            let fs: SharedFs = Arc::new(disk.crash_clone(k * 100 + seed));
            let mut log = log.clone();
            let again = after_crash(&fs, &mut log);
            again.unwrap_or_else(|err| panic!("crash at {k}, seed {seed}: {err:?}"));
        }
    }
    println!("{crashes} crash points");
    assert!(crashes > 60, "the workload has more operations than {crashes}");
}

fn after_crash(fs: &SharedFs, log: &mut Log) -> Result<(), Stop> {
    let spill = spill_dir(fs)?;
    let (_, recovered) = recover(fs, log, &spill)?;
    assert_eq!(recovered.end, log.end);
    assert_eq!(recovered.gtid_state, log.gtid_state);
    if !log.model.is_empty() {
        check_files(fs, log);
    }
    // A second recovery has the same result as the first.
    let (_, again) = recover(fs, log, &spill)?;
    assert_eq!(again.end, recovered.end);
    let mut server = start(fs, log)?;
    server.transaction(log, 2)?;
    server.files.step()?;
    check_files(fs, log);
    Ok(())
}

#[test]
fn a_crash_in_a_purge_leaves_every_file_of_the_index_whole() {
    for k in 0.. {
        let disk = fresh();
        let faulty = FaultFs::new(Arc::new(disk.clone()));
        let fs: SharedFs = Arc::new(faulty.clone());
        let mut log = Log::default();
        let mut server = start(&fs, &mut log).expect("starts");
        while log.model.len() < 5 {
            server.transaction(&mut log, 20).expect("memory");
        }
        server.checkpoint(&mut log).expect("syncs");
        faulty.set(Fault::CrashAt(faulty.ops() + k));
        let purged = server.files.with_files(|files| files.purge_to(4, 4));
        for seed in 0..5 {
            let fs: SharedFs = Arc::new(disk.crash_clone(k * 100 + seed));
            let spill = spill_dir(&fs).expect("opens");
            let (mut files, recovered) = recover(&fs, &log, &spill).expect("recovers");
            assert_eq!(recovered.end, log.end);
            assert!([&[1, 2, 3, 4, 5][..], &[4, 5]].contains(&files.numbers()), "{:?}", files.numbers());
            let sizes = files.sizes().expect("all are there");
            assert!(sizes.iter().all(|size| size.bytes == log.model[&size.file].len() as u64));
            assert_eq!(support::binlog_files_in_dir(&fs), files.numbers().len());
        }
        if !faulty.crashed() {
            purged.expect("nothing fails without a crash");
            break;
        }
    }
}

#[test]
fn without_space_nothing_is_lost_and_service_resumes() {
    for k in 0.. {
        let disk = fresh();
        let faulty = FaultFs::new(Arc::new(disk.clone()));
        let fs: SharedFs = Arc::new(faulty.clone());
        let mut log = Log::default();
        let mut server = start(&fs, &mut log).expect("starts");
        server.files.step().expect("has space");
        faulty.set(Fault::FullFrom(faulty.ops() + k));
        let mut refused = 0;
        for round in 0..12 {
            server.transaction(&mut log, 30 + round).expect("does not spill");
            match server.files.step() {
                Ok(()) => {}
                Err(BinlogError::NoSpace { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        let ended = refused == 0;
        if !ended {
            assert_eq!(server.files.status(), BinlogWriterStatus::NoSpace);
            assert!(server.files.backlog_bytes() > 0);
        }
        faulty.set(Fault::None);
        server.files.catch_up(server.stream.position(), 0).expect("there is space again");
        assert_eq!(server.files.status(), BinlogWriterStatus::Running);
        assert_eq!(server.files.backlog_bytes(), 0);
        check_files(&fs, &log);
        if ended {
            break;
        }
    }
}

#[test]
fn a_failed_sync_stops_the_writing_for_good() {
    let faulty = FaultFs::new(Arc::new(fresh()));
    let fs: SharedFs = Arc::new(faulty.clone());
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    server.files.step().expect("writes");
    faulty.set(Fault::ErrorAt(faulty.ops(), std::io::ErrorKind::Other));
    server.files.sync().expect_err("the sync fails");
    assert!(matches!(server.files.status(), BinlogWriterStatus::Failed(_)));
    server.transaction(&mut log, 1).expect("memory");
    assert!(matches!(server.files.step(), Err(BinlogError::Failed(_))));
}

#[test]
fn a_flipped_bit_is_refused_with_file_and_offset_if_it_was_synced() {
    let disk = fresh();
    let fs: SharedFs = Arc::new(disk.clone());
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    for _ in 0..3 {
        server.transaction(&mut log, 3).expect("writes");
    }
    server.checkpoint(&mut log).expect("syncs");
    server.transaction(&mut log, 3).expect("writes");
    server.files.step().expect("writes");
    let synced = log.checkpoint.0.offset;
    let len = log.end.expect("has an end").offset;
    for at in (0..len).step_by(3) {
        let fs: SharedFs = Arc::new(disk.kill_clone());
        let file = fs.open(&path(1), OpenMode::Write).expect("opens");
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("reads");
        file.write_at(&[byte[0] ^ 0x10], at).expect("writes");
        let spill = spill_dir(&fs).expect("opens");
        let result = recover(&fs, &log, &spill);
        // The flags of the format description are the only place where a bit may change; 0x10 is not among
        // those bits.
        if at < synced {
            let Err(Stop::Binlog(err)) = result else { panic!("flipped bit at {at} was not refused") };
            let BinlogError::Corrupt { offset, .. } = &err else { panic!("{err}") };
            assert!(*offset <= at, "{err}");
            assert!(
                err.to_string().contains("binlog.000001") && err.to_string().contains("Restore"),
                "{err}"
            );
        } else {
            result.expect("the log rewrites what was not synced");
            check_files(&fs, &log);
        }
    }
}

#[test]
fn a_stop_leaves_the_file_closed() {
    let fs: SharedFs = Arc::new(fresh());
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    server.transaction(&mut log, 3).expect("writes");
    server.stop(&mut log).expect("stops");
    let options = cohort_binlog::OpenOptions {
        verify: cohort_binlog::VerifyScope::All,
        synced_to: cohort_base::BinlogPos::default(),
    };
    let (_, recovered) = cohort_binlog::BinlogFiles::open(fs, support::name(), options).expect("opens");
    assert_eq!(recovered.tail, Tail::Closed);
    assert_eq!(recovered.end, log.end);
}

#[test]
fn a_lost_index_or_file_and_a_foreign_line_are_refused() {
    let fs: SharedFs = Arc::new(fresh());
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    for _ in 0..40 {
        server.transaction(&mut log, 10).expect("writes");
    }
    server.checkpoint(&mut log).expect("syncs");
    assert!(log.model.len() > 2);
    let spill = spill_dir(&fs).expect("opens");
    for number in [1, log.checkpoint.0.file] {
        let moved = path(number).with_extension("moved");
        fs.rename(&path(number), &moved).expect("moves");
        let Err(Stop::Binlog(BinlogError::FileMissing { path: missing })) = recover(&fs, &log, &spill) else {
            panic!("file {number} is not missed")
        };
        assert_eq!(missing, path(number));
        fs.rename(&moved, &path(number)).expect("moves");
    }
    recover(&fs, &log, &spill).expect("recovers");
    fs.remove(&support::name().index_path()).expect("removes");
    assert!(matches!(recover(&fs, &log, &spill), Err(Stop::Binlog(BinlogError::IndexMissing { .. }))));
    // Before the first checkpoint a crash may have happened before the index was written.
    let checkpoint = std::mem::take(&mut log.checkpoint);
    recover(&fs, &log, &spill).expect("recovers");
    check_files(&fs, &log);
    log.checkpoint = checkpoint;
    let index = fs.open(&support::name().index_path(), OpenMode::Write).expect("opens");
    index.write_at(b"./other.000001\n", 0).expect("writes");
    assert!(matches!(recover(&fs, &log, &spill), Err(Stop::Binlog(BinlogError::BadIndex { .. }))));
}

#[test]
fn io_trace_of_a_file_change() {
    let traced = TraceFs::new(Arc::new(fresh()));
    let fs: SharedFs = Arc::new(traced.clone());
    let mut log = Log::default();
    let mut server = start(&fs, &mut log).expect("starts");
    server.files.step().expect("writes");
    assert_eq!(
        traced.take(),
        "syncdir d\ncreate binlog.000001\nwrite binlog.000001 0+325\ncreate binlog.index.tmp\n\
         setlen binlog.index.tmp 0\nwrite binlog.index.tmp 0+16\nsync binlog.index.tmp\nrename binlog.index.tmp -> binlog.index\nsyncdir d\n"
    );
    while log.model.len() == 1 {
        server.transaction(&mut log, 10).expect("memory");
    }
    assert_eq!(traced.take(), "", "a commit does not write files");
    server.files.step().expect("writes");
    assert_eq!(
        traced.take(),
        "write binlog.000001 325+3723\nwrite binlog.000001 21+2\ncreate binlog.000002\nwrite binlog.000002 0+339\n\
         create binlog.index.tmp\nsetlen binlog.index.tmp 0\nwrite binlog.index.tmp 0+32\n\
         sync binlog.index.tmp\nrename binlog.index.tmp -> binlog.index\nsyncdir d\n"
    );
    server.checkpoint(&mut log).expect("syncs");
    server.checkpoint(&mut log).expect("has nothing to sync");
    assert_eq!(traced.take(), "sync binlog.000001\nsync binlog.000002\n");
    let end = log.end.expect("has an end").file;
    server.files.with_files(|files| files.purge_to(end, end)).expect("purges");
    assert_eq!(
        traced.take(),
        "create binlog.index.tmp\nsetlen binlog.index.tmp 0\nwrite binlog.index.tmp 0+16\n\
         sync binlog.index.tmp\nrename binlog.index.tmp -> binlog.index\nsyncdir d\nremove binlog.000001\n"
    );
}
