//! Overflow values of a transaction that was rolled back: a checkpoint or the next start frees their space.

use std::path::Path;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId};
use cohort_engine::{Engine, MemoryRedo, Participant};
use cohort_engine_btree::{BtreeEngine, BtreeOptions};
use cohort_vfs::{MemFs, OpenMode, SharedFs};

const TABLE: IndexId = IndexId(16);
const VALUES: u32 = 200;
const VALUE_BYTES: usize = 100_000;
const ALL_BYTES: u64 = VALUES as u64 * VALUE_BYTES as u64;

fn open(fs: &SharedFs) -> BtreeEngine {
    let options = BtreeOptions { has_threads: false, ..BtreeOptions::default() };
    BtreeEngine::open(ParticipantId(1), fs, Path::new("/btree"), options).expect("opens")
}

fn data_bytes(fs: &SharedFs) -> u64 {
    let file = fs.open(Path::new("/btree/btree.data"), OpenMode::Read).expect("the data file");
    file.len().expect("its length")
}

/// Returns an engine with one row, after the rollback of a large transaction.
fn undone(fs: &SharedFs) -> BtreeEngine {
    let engine = open(fs);
    let mut trx = engine.begin();
    trx.put(TABLE, b"row", b"value").expect("puts");
    let redo = trx.prepare().expect("prepares");
    engine.commit_ordered(CommitSeq(1), &[&redo]);
    engine.begin_checkpoint(Lsn(1)).expect("begins").finish().expect("finishes");
    let mut trx = engine.begin();
    for n in 0..VALUES {
        trx.put(TABLE, &n.to_be_bytes(), &vec![n as u8; VALUE_BYTES]).expect("puts");
    }
    trx.install_part(&MemoryRedo::default()).expect("installs");
    assert!(data_bytes(fs) > ALL_BYTES, "they are in the file");
    drop(trx);
    while engine.purge().expect("purges") > 0 {}
    engine
}

#[test]
fn long_values_that_were_undone_ask_for_a_checkpoint_that_frees_them() {
    let fs: SharedFs = Arc::new(MemFs::new());
    let engine = undone(&fs);
    assert!(engine.freeable_bytes() >= ALL_BYTES, "{} bytes", engine.freeable_bytes());
    engine.begin_checkpoint(Lsn(1)).expect("begins").finish().expect("finishes");
    assert_eq!(engine.freeable_bytes(), 0);
    assert!(data_bytes(&fs) < ALL_BYTES / 2, "{} bytes", data_bytes(&fs));
}

#[test]
fn a_start_cuts_off_what_no_checkpoint_has_freed() {
    let memory = MemFs::new();
    let fs: SharedFs = Arc::new(memory.clone());
    drop(undone(&fs));
    let left: SharedFs = Arc::new(memory.kill_clone());
    assert!(data_bytes(&left) > ALL_BYTES);
    let engine = open(&left);
    assert!(data_bytes(&left) < ALL_BYTES / 2, "{} bytes", data_bytes(&left));
    assert_eq!(engine.stats(TABLE).entries, 1);
}
