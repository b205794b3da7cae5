//! Closing an engine keeps exactly what its last checkpoint sealed.

use std::path::{Path, PathBuf};

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Engine, Participant, ReadAt};
use cohort_engine_rocks::{RocksEngine, RocksOptions};

const INDEX: IndexId = IndexId(16);

fn open(dir: &Path) -> Result<RocksEngine, cohort_engine::EngineError> {
    RocksEngine::open(ParticipantId(1), dir, RocksOptions::default())
}

fn put(engine: &RocksEngine, key: &[u8]) {
    let mut trx = engine.begin();
    trx.put(INDEX, key, &[7; 1000]).expect("puts");
    let redo = trx.prepare().expect("prepares");
    engine.commit_ordered(CommitSeq(1), &[&redo]);
}

fn has(engine: &RocksEngine, key: &[u8]) -> bool {
    engine.begin().get(ReadAt::Latest, INDEX, key, &mut Vec::new()).expect("reads")
}

fn checkpoint(engine: &RocksEngine, lsn: u64) {
    engine.begin_checkpoint(Lsn(lsn)).expect("begins").finish().expect("durable");
}

#[test]
fn closing_writes_nothing() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let engine = open(dir.path()).expect("opens");
    put(&engine, b"sealed");
    checkpoint(&engine, 4096);
    put(&engine, b"later");
    drop(engine);
    let engine = open(dir.path()).expect("opens");
    assert!(has(&engine, b"sealed") && !has(&engine, b"later"));
    assert_eq!(engine.durable_lsn(), Lsn(4096));
    // As recovery does before it refuses to start.
    let mut trx = engine.begin();
    trx.put(INDEX, b"later", b"x").expect("puts");
    engine.replay(&[trx.prepare().expect("prepares")]).expect("replays");
    // A transaction keeps the database open.
    drop(trx);
    drop(engine);
    assert!(!has(&open(dir.path()).expect("opens"), b"later"));
}

fn manifest(dir: &Path) -> PathBuf {
    let current = std::fs::read_to_string(dir.join("CURRENT")).expect("there is one");
    dir.join(current.trim())
}

/// The log records up to which LSN an engine was durable. An engine whose manifest was cut reports an earlier
/// LSN, or does not open.
#[test]
fn an_engine_that_has_lost_files_is_durable_up_to_an_earlier_place() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let engine = open(dir.path()).expect("opens");
    for n in 1..=5 {
        put(&engine, &[n]);
        checkpoint(&engine, 4096 * u64::from(n));
    }
    drop(engine);
    let whole = std::fs::read(manifest(dir.path())).expect("reads");
    let mut older = 0;
    for cut in (1..=whole.len()).step_by(3) {
        let copy = tempfile::tempdir().expect("temporary directory");
        for entry in std::fs::read_dir(dir.path()).expect("lists") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("known").is_file() {
                std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
            }
        }
        let file = std::fs::OpenOptions::new().write(true).open(manifest(copy.path())).expect("opens");
        file.set_len(whole.len().saturating_sub(cut) as u64).expect("cuts");
        if let Ok(engine) = open(copy.path()) {
            assert!(engine.durable_lsn() < Lsn(5 * 4096) || has(&engine, &[5]), "{cut} bytes");
            older += u32::from(engine.durable_lsn() < Lsn(5 * 4096));
        }
    }
    assert!(older > 0, "some cuts are not RocksDB's to find");
}
