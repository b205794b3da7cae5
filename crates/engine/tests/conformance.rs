//! The engine contract, on the reference engine.

use std::path::PathBuf;
use std::sync::Arc;

use cohort_base::ParticipantId;
use cohort_engine::conformance::{self, Harness};
use cohort_engine::{Engine, ReferenceEngine};
use cohort_vfs::MemFs;

struct InMemory(Arc<MemFs>);

impl Harness for InMemory {
    fn open(&self) -> Arc<dyn Engine> {
        let dir = PathBuf::from("/data");
        Arc::new(ReferenceEngine::open(ParticipantId(0), self.0.clone(), dir).expect("opens"))
    }
}

#[test]
fn the_reference_engine_obeys_the_engine_contract() {
    conformance::run(&|| Box::new(InMemory(Arc::new(MemFs::new()))));
}
