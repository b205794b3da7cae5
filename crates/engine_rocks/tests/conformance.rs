//! The engine contract, on RocksDB.

use std::sync::Arc;

use cohort_base::ParticipantId;
use cohort_engine::Engine;
use cohort_engine::conformance::{self, Harness};
use cohort_engine_rocks::{RocksEngine, RocksOptions};

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
