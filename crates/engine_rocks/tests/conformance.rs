//! The engine contract, on RocksDB.

use std::path::PathBuf;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, ParticipantId};
use cohort_engine::conformance::{self, Harness};
use cohort_engine::{
    Batch, Direction, Engine, KeyRange, Mirror, ReadAt, ReadView, ReferenceEngine, ScanRequest,
};
use cohort_engine_rocks::{RocksEngine, RocksOptions};
use cohort_vfs::{MemFs, Rng, SeededRng};

struct OnDisk(tempfile::TempDir);

impl Harness for OnDisk {
    fn open(&self) -> Arc<dyn Engine> {
        let opened = RocksEngine::open(ParticipantId(1), self.0.path(), RocksOptions::default());
        Arc::new(opened.expect("opens"))
    }
}

#[test]
fn rocksdb_obeys_the_engine_contract() {
    conformance::run(&|| Box::new(OnDisk(tempfile::tempdir().expect("temporary directory"))));
}

/// RocksDB and the reference engine in a mirror: every read of the suite must agree.
struct Mirrored {
    dir: tempfile::TempDir,
    memory: Arc<MemFs>,
}

impl Harness for Mirrored {
    fn open(&self) -> Arc<dyn Engine> {
        let reference = ReferenceEngine::open(ParticipantId(1), self.memory.clone(), PathBuf::from("/data"));
        let rocks = RocksEngine::open(ParticipantId(2), self.dir.path(), RocksOptions::default());
        Arc::new(Mirror::new(Arc::new(reference.expect("opens")), Arc::new(rocks.expect("opens"))))
    }
}

/// Random writes, rollbacks and scans on both engines. The mirror asserts that all results are equal.
#[test]
fn rocksdb_agrees_with_the_reference_engine() {
    let harness =
        Mirrored { dir: tempfile::tempdir().expect("temporary directory"), memory: Arc::new(MemFs::new()) };
    let engine = harness.open();
    let rng = SeededRng::new(7);
    for seq in 1..=300 {
        let view = ReadView::new(CommitSeq(seq), vec![(engine.id(), engine.snapshot())]);
        let mut trx = engine.begin();
        for _ in 0..20 {
            let (index, key) = (IndexId(16 + rng.below(2) as u32), [rng.below(40) as u8]);
            match rng.below(8) {
                0 => trx.delete(index, &key).expect("deletes"),
                1 => {
                    let savepoint = trx.savepoint();
                    trx.put(index, &key, b"to be undone").expect("puts");
                    trx.rollback_to(savepoint);
                }
                2..=4 => trx.put(index, &key, &seq.to_le_bytes()).expect("puts"),
                5 => {
                    trx.get(ReadAt::View(&view), index, &key, &mut Vec::new()).expect("reads");
                }
                _ => {
                    let range = KeyRange { start: Some(key.to_vec()), end: Some(vec![rng.below(60) as u8]) };
                    let direction = if rng.below(2) == 0 { Direction::Forward } else { Direction::Backward };
                    let limit = 1 + rng.below(10) as usize;
                    trx.scan(
                        &ScanRequest { at: ReadAt::Latest, index, range: &range, direction, limit },
                        &mut Batch::default(),
                    )
                    .expect("scans");
                }
            }
        }
        let redo = trx.prepare().expect("prepares");
        engine.commit_ordered(CommitSeq(seq), &[&redo]);
    }
}
