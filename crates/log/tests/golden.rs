//! Golden I/O traces: the files that are written, synced and renamed, in order. A lost sync is a visible
//! diff.
//!
//! `UPDATE_GOLDEN=1 cargo test -p cohort-log --test golden` rewrites `tests/golden/*.trace`.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_log::Log;
use cohort_vfs::{MemFs, RealFs, SharedFs, TraceFs};
use support::{append, open, payload};

/// Runs a scenario after `setup`, whose operations are not in the trace, and compares its trace.
fn golden(name: &str, setup: impl FnOnce(&SharedFs), scenario: impl FnOnce(&SharedFs, &TraceFs)) {
    let trace = TraceFs::new(Arc::new(MemFs::new()));
    let fs: SharedFs = Arc::new(trace.clone());
    setup(&fs);
    trace.take();
    scenario(&fs, &trace);
    let found = trace.take();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.trace"));
    compare(&path, &found);
}

fn compare(path: &Path, found: &str) {
    use cohort_vfs::{Fs, OpenMode};
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let file = RealFs.open(path, OpenMode::CreateOrOpen).expect("opens");
        file.set_len(0).expect("cuts");
        file.write_at(found.as_bytes(), 0).expect("writes");
        return;
    }
    let file = RealFs.open(path, OpenMode::Read).expect("the golden file is there");
    let mut wanted = vec![0; file.len().expect("len") as usize];
    file.read_at(&mut wanted, 0).expect("reads");
    assert_eq!(found, String::from_utf8_lossy(&wanted), "{}", path.display());
}

fn start(fs: &SharedFs) -> Log {
    open(fs).expect("opens").0
}

fn fill(log: &Log, records: u64) {
    for n in 0..records {
        append(log, &payload(n, 1992)).expect("fits");
    }
    log.flush().expect("flushes");
}

#[test]
fn create() {
    golden("create", |_| {}, |fs, _| drop(start(fs)));
}

#[test]
fn append_and_flush() {
    golden(
        "append_and_flush",
        |_| {},
        |fs, trace| {
            let log = start(fs);
            log.reserve(1).expect("makes a segment");
            trace.take();
            for step in ["append", "append to the same block", "append over two blocks"] {
                trace.note(&format!("# {step}"));
                append(&log, &[1; 2000]).expect("fits");
                trace.note("# flush");
                log.flush().expect("flushes");
            }
            trace.note("# flush nothing");
            log.flush().expect("flushes");
        },
    );
}

#[test]
fn segment_change() {
    golden(
        "segment_change",
        |fs| fill(&start(fs), 5),
        |fs, trace| {
            let log = start(fs);
            trace.take();
            trace.note("# reserve over the border");
            append(&log, &[1; 4000]).expect("fits");
            trace.note("# flush");
            log.flush().expect("flushes");
        },
    );
}

#[test]
fn checkpoint_and_recycle() {
    golden(
        "checkpoint_and_recycle",
        |fs| fill(&start(fs), 13),
        |fs, trace| {
            let log = start(fs);
            trace.take();
            trace.note("# checkpoint");
            log.checkpoint(log.durable_end(), b"").expect("checkpoint");
            trace.note("# reserve beyond the last segment");
            append(&log, &[1; 14_000]).expect("fits");
        },
    );
}

#[test]
fn recover_after_crash_and_close() {
    golden(
        "recover_after_crash_and_close",
        |fs| fill(&start(fs), 3),
        |fs, trace| {
            trace.note("# open");
            let log = start(fs);
            trace.note("# close");
            log.close().expect("closes");
            drop(log);
            trace.note("# open after a clean stop");
            start(fs);
        },
    );
}
