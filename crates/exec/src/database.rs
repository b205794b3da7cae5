//! All that sessions share. A server is a value: source and replica can live in one test process.

use std::sync::Arc;

use cohort_catalog::Catalog;
use cohort_commit::Coordinator;
use cohort_engine::Engine;
use cohort_locks::LockTable;
use cohort_vfs::{SharedClock, SharedRng};
use parking_lot::RwLock;

use crate::process_list::ProcessList;
use crate::table::TableRegistry;
use crate::trx::{BinlogCache, TrxIds};

/// The shared half of the server below the connections.
pub struct Database {
    /// The commit path.
    pub commit: Arc<Coordinator>,
    /// The engines, the default one first.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Row and metadata locks of every engine: one wait-for graph.
    pub locks: Arc<LockTable>,
    /// Written at the order stage by the catalog participant, read by every statement.
    pub catalog: Arc<RwLock<Arc<Catalog>>>,
    /// The time.
    pub clock: SharedClock,
    /// Random numbers.
    pub rng: SharedRng,
    /// The connections.
    pub processes: ProcessList,
    /// Tables that statements have used: codecs and counters.
    pub tables: TableRegistry,
    /// The next transaction's number.
    pub trx_ids: TrxIds,
    /// Binlog events of running transactions.
    pub binlog_cache: BinlogCache,
}

impl Database {
    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }
}
